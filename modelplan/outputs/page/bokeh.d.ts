/** What the page uses of BokehJS, for `tsc --checkJs`. */
declare const Bokeh: {
  Range1d: new (fields: { start: number; end: number }) => any;
  PanTool: new (fields: object) => any;
  WheelZoomTool: new (fields: object) => any;
  ColumnDataSource: new (fields: { data: Record<string, any> }) => any;
  FixedTicker: new (fields: { ticks: number[] }) => any;
  Arrow: new (fields: object) => any;
  VeeHead: new (fields: object) => any;
  Document: new () => { add_root(model: any): void };
  Plotting: { figure(fields: object): any };
  embed: { add_document_standalone(document: any, element: Element, roots: Element[]): Promise<any> };
};
