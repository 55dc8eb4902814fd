"""The table of outputs by suffix, and `render`, the only door to them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from modelplan.model import Plan
from modelplan.primitives.errors import RequestError


@dataclass(frozen=True, slots=True)
class Output:
    """One row: files ending in `suffix` are made by function `function` of module `module`, imported when used."""

    suffix: str
    module: str
    function: str
    shows: str

    def __call__(self, plan: Plan) -> str | bytes:
        """The content of the file."""
        content: str | bytes = getattr(import_module(self.module), self.function)(plan)
        return content


OUTPUTS: dict[str, Output] = {
    o.suffix: o
    for o in (
        Output(".txt", "modelplan.outputs.reports.plan_report", "render", "the plan in words"),
        Output(".json", "modelplan.outputs.exchange.json_plan", "render", "the whole plan, readable back"),
        Output(".csv", "modelplan.outputs.exchange.buffers_csv", "render", "buffers and offsets, MiniMalloc's columns"),
        Output(
            ".map.svg", "modelplan.outputs.figures.memory_map", "svg", "addresses by step, one rectangle per buffer"
        ),
        Output(".map.png", "modelplan.outputs.figures.memory_map", "png", "the same as pixels"),
        Output(".lifetimes.svg", "modelplan.outputs.figures.lifetime_chart", "svg", "when each buffer is alive"),
        Output(".lifetimes.png", "modelplan.outputs.figures.lifetime_chart", "png", "the same as pixels"),
        Output(
            ".curve.svg", "modelplan.outputs.figures.memory_curve", "svg", "live bytes by step, the arena, the bound"
        ),
        Output(".curve.png", "modelplan.outputs.figures.memory_curve", "png", "the same as pixels"),
        Output(
            ".order.svg",
            "modelplan.outputs.figures.order_chart",
            "svg",
            "live bytes in file order and in this, what moved",
        ),
        Output(".order.png", "modelplan.outputs.figures.order_chart", "png", "the same as pixels"),
        Output(
            ".reuse.svg", "modelplan.outputs.figures.reuse_chart", "svg", "every buffer its own bytes, and the plan"
        ),
        Output(".reuse.png", "modelplan.outputs.figures.reuse_chart", "png", "the same as pixels"),
        Output(
            ".ascii", "modelplan.outputs.exchange.ascii_map", "render", "addresses by step in the form of TFLM's log"
        ),
        Output(
            ".pftrace",
            "modelplan.outputs.exchange.perfetto_trace",
            "render",
            "counters, operators and tensors for Perfetto",
        ),
        Output(".html", "modelplan.outputs.page.html_file", "render", "the map to zoom and click, in one file"),
    )
}


def render(plan: Plan, suffix: str) -> str | bytes:
    """The content of a file that ends in `suffix`: same plan, same bytes.

    Raises:
        RequestError: no output has that suffix; the message lists them.
    """
    if suffix not in OUTPUTS:
        raise RequestError(f"no output {suffix!r}; there are: {', '.join(OUTPUTS)}")
    return OUTPUTS[suffix](plan)
