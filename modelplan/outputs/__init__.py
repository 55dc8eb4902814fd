"""The table of outputs: which files show which answer, and `render`, the only door to them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass

#: What the name of a figure's file may end in.
FIGURE_KINDS = (".svg", ".png", ".pdf")
#: The suffix of the page that is zoomed and clicked.
PAGE = ".html"


@dataclass(frozen=True, slots=True)
class Output:
    """One row: a file that shows an answer.

    Args:
        suffix: how the file's name ends; of a figure .svg, .png or .pdf follows. What an option asks for by name
            has that name in its place, such as the formats of `check --format`.
        of: the name of the class of the answer.
        make: the function that makes the content, as "module:name". Of a figure it is the
            function that draws the sheet.
        shows: what one sees, in a few words.
        prepare: the function that makes of the answer what `make` takes, as "module:name"; empty
            where it takes the answer itself.
        figure: whether it is a picture.
        report: whether `make` returns a report, which the file shows as text.
    """

    suffix: str
    of: str
    make: str
    shows: str
    prepare: str = ""
    figure: bool = False
    report: bool = False

    @property
    def suffixes(self) -> tuple[str, ...]:
        """All that the file's name may end in."""
        return tuple(self.suffix + kind for kind in FIGURE_KINDS) if self.figure else (self.suffix,)

    def prepared(self, answer: object) -> Any:
        """The argument of `make`, derived from the answer."""
        return _function(self.prepare)(answer) if self.prepare else answer

    def content(self, answer: object, suffix: str) -> str | bytes:
        """The content of the file that ends in `suffix`, one of `suffixes`."""
        if self.figure:
            return self.pictures(answer, [suffix])[0]
        content = _function(self.make)(self.prepared(answer))
        if self.report:
            from modelplan.outputs.report import plain

            return plain(content)
        file_content: str | bytes = content
        return file_content

    def pictures(self, answer: object, suffixes: Sequence[str]) -> list[bytes]:
        """The files of one figure, such as .map.svg and .map.png, laid out once."""
        from modelplan.outputs.figures import canvas  # which imports matplotlib

        draw = _function(self.make)
        return canvas.saved(draw, self.prepared(answer), [suffix.rpartition(".")[2] for suffix in suffixes])


def _function(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


def _figure(suffix: str, of: str, module: str, shows: str, prepare: str = "") -> Output:
    prepare = prepare and f"modelplan.outputs.figures.{module}:{prepare}"
    return Output(suffix, of, f"modelplan.outputs.figures.{module}:draw", shows, prepare, figure=True)


def _exchanged(suffix: str, make: str, shows: str) -> Output:
    return Output(suffix, "Plan", f"modelplan.outputs.exchange.{make}:render", shows)


def _source(name: str, of: str, make: str, shows: str) -> Output:
    return Output(name, of, f"modelplan.outputs.firmware.{make}", shows)


def _checked(name: str, make: str, shows: str) -> Output:
    return Output(name, "Findings", f"modelplan.outputs.checks.{make}", shows)


def _words(of: str, module: str) -> Output:
    return Output(".txt", of, f"modelplan.outputs.reports.{module}:sections_of", "it in words", report=True)


def _reports(of: str, module: str) -> tuple[Output, Output]:
    """An answer in words and as JSON."""
    return _words(of, module), Output(".json", of, f"modelplan.outputs.reports.{module}:as_json", "all of it")


#: Every output. Of several figures of one answer the first is drawn where a file's name ends in .svg alone.
OUTPUTS = (
    _words("Plan", "plan_report"),
    _exchanged(".json", "json_plan", "the whole plan, readable back"),
    _exchanged(".csv", "buffers_csv", "buffers and offsets, MiniMalloc's columns"),
    *_reports("Solution", "solution_report"),
    *_reports("TargetVerdicts", "verdicts_report"),
    Output(".csv", "Solution", "modelplan.outputs.exchange.buffers_csv:of_solution", "buffers and offsets"),
    _figure(".map", "Drawing", "memory_map", "addresses by step, one rectangle per buffer"),
    _figure(".lifetimes", "Drawing", "lifetime_chart", "when each buffer is alive"),
    _figure(".curve", "Drawing", "memory_curve", "live bytes by step, the arena, the bound"),
    _figure(".order", "Plan", "order_chart", "live bytes in file order and in this, what moved", "of_plan"),
    _figure(".reuse", "Drawing", "reuse_chart", "every buffer its own bytes, and the plan"),
    _exchanged(".ascii", "ascii_map", "addresses by step in the form of TFLM's log"),
    _exchanged(".pftrace", "perfetto_trace", "counters, operators and tensors for Perfetto"),
    Output(PAGE, "Plan", "modelplan.outputs.page.html_file:render", "the map to zoom and click, in one file"),
    Output(
        PAGE,
        "Solution",
        "modelplan.outputs.page.html_file:html",
        "the map to zoom and click",
        "modelplan.answers.page_views:page_of_solution",
    ),
    Output(PAGE, "Page", "modelplan.outputs.page.html_file:html", "plans to zoom and click"),
    _figure(".curve", "DifferenceChart", "difference_chart", "both memory curves over one axis"),
    _figure(".front", "Front", "front_chart", "the bytes of each plan against the work it adds"),
    _figure(".ladder", "LadderChart", "ladder_chart", "what each step of fit needs: head, tail, budget, bound"),
    _figure(".standing", "Standing", "standing_chart", "how high each allocator ends, and two maps"),
    _figure(".matrix", "SweepMatrix", "sweep_matrix", "which model fits which target, with bytes"),
    _figure(".field", "Field", "field_chart", "every allocator by height and time"),
    _figure(".map", "RegionPlan", "region_map", "addresses in each memory on one time axis"),
    _figure(".arenas", "RegionPlan", "arenas_map", "TFLM's two arenas in their memories"),
    _words("Analysis", "analysis_summary"),
    Output(
        ".json",
        "Analysis",
        "modelplan.outputs.exchange.json_plan:render",
        "the whole plan",
        "modelplan.answers.analysis:plan_of",
    ),
    *_reports("Explanation", "explanation_report"),
    *_reports("AllocatorAnswers", "comparison_report"),
    *_reports("Difference", "difference_report"),
    *_reports("Curve", "recompute_report"),
    _words("Proof", "proof_report"),
    *_reports("SharedPlan", "shared_report"),
    Output(".csv", "SharedPlan", "modelplan.outputs.reports.shared_report:as_csv", "a line for each buffer"),
    *_reports("RegionPlan", "region_report"),
    Output(".csv", "RegionPlan", "modelplan.outputs.reports.region_report:as_csv", "a line for each buffer"),
    _source("header", "RegionPlan", "region_sources:c_header", "arrays in sections, in C"),
    _source("linker", "RegionPlan", "region_sources:linker_sections", "sections for GNU ld"),
    _source("copies", "MovingPlan", "copies_source:render", "the copies, in C"),
    _source("arenas", "RegionPlan", "region_sources:tflm_header", "TFLM's two arenas, in C"),
    _source("memory_ids", "RegionPlan", "region_sources:executorch_ids", "mem_id and offset of each tensor"),
    _source("self-test", "SelfTest", "self_test_source:render", "runs of a model for firmware to repeat, in C++"),
    Output(PAGE, "RegionPlan", "modelplan.outputs.page.region_views:layout_html", "the memories to zoom and click"),
    _figure(".map", "MovingPlan", "moves_map", "where each content is in each step, and the copies"),
    *_reports("MovingPlan", "moves_report"),
    Output(".csv", "MovingPlan", "modelplan.outputs.reports.moves_report:as_csv", "the stays with their addresses"),
    Output(PAGE, "MovingPlan", "modelplan.outputs.page.region_views:layout_html", "the memories to zoom and click"),
    _figure(".curve", "StreamCurve", "stream_chart", "the time of a run against the memory of the device"),
    *_reports("StreamCurve", "stream_report"),
    Output(".csv", "StreamCurve", "modelplan.outputs.reports.stream_report:as_csv", "the curve"),
    Output(
        "text", "Findings", "modelplan.outputs.checks.check_report:sections_of", "the verdicts in words", report=True
    ),
    _checked("json", "for_servers:json_rows", "an object for each limit"),
    _checked("markdown", "markdown:pull_request_comment", "a comment to paste"),
    _checked("junit", "for_servers:junit_document", "a test case for each limit"),
    _checked("github", "for_servers:workflow_commands", "an annotation for each failure"),
)

#: What else shows an answer: its class, the class of what shows it, and the function that makes that.
_SHOWN_AS = {
    "Plan": ("Drawing", "modelplan.answers.drawing:of_plan"),
    "SharedPlan": ("Drawing", "modelplan.answers.drawing:of_shared"),
    "Solution": ("Drawing", "modelplan.answers.placement_answers:drawing_of"),
}


def outputs_of(kind: str) -> dict[str, Output]:
    """The outputs of answers of the class `kind`, by suffix, in the order of the table."""
    shown_as, made_by = _SHOWN_AS.get(kind, ("", ""))
    by_suffix: dict[str, Output] = {}
    for row in OUTPUTS:
        if row.of == kind:
            by_suffix |= dict.fromkeys(row.suffixes, row)
        elif row.of == shown_as and row.figure:
            drawn = Output(row.suffix, kind, row.make, row.shows, made_by, figure=True)
            by_suffix |= dict.fromkeys(row.suffixes, drawn)
    return by_suffix


def names_of(kind: str) -> list[str]:
    """The outputs of answers of the class `kind` that options ask for by name."""
    return [name for name in outputs_of(kind) if not name.startswith(".")]


def figure_suffixes(kind: str, *, page: bool = False) -> list[str]:
    """What the names of the figures of an answer may end in, the page among them where there is one."""
    figures = [suffix for suffix, row in outputs_of(kind).items() if row.figure]
    return [*figures, *([PAGE] if page else [])]


def suffix_of(path: str, kind: str, *, page: bool = False, more: Sequence[str] = ()) -> str:
    """The suffix that tells which figure of an answer belongs into the file `path`; `more` are other suffixes.

    A name that says no more than .svg, .png or .pdf stands for the first figure.

    Raises:
        RequestError: none does, or it says a figure of other answers; the message lists those of this.
    """
    known = [*more, *figure_suffixes(kind, page=page)]
    for suffix in known:
        if path.endswith(suffix):
            return suffix
    drawn = list(
        dict.fromkeys(name.removesuffix(ending) for ending in FIGURE_KINDS for name in known if name.endswith(ending))
    )
    for suffix in FIGURE_KINDS:
        if path.endswith(suffix):
            if other := next((row.suffix for row in OUTPUTS if row.figure and path.endswith(row.suffix + suffix)), ""):
                raise RequestError(f"{path}: there is no figure {other} of this, expected one of {', '.join(drawn)}")
            return next(name for name in known if name.endswith(suffix))
    ends = [*FIGURE_KINDS, *(name for name in known if not name.endswith(FIGURE_KINDS))]
    which = f" ({', '.join(drawn)} before it say which figure)" if len(drawn) > 1 else ""
    raise RequestError(f"{path}: cannot tell what to draw; the name must end in {', '.join(ends)}{which}")


def render(answer: object, suffix: str) -> str | bytes:
    """The content of a file that shows `answer` and ends in `suffix`: same answer, same bytes.

    Raises:
        RequestError: no output of such an answer has that suffix; the message lists them.
    """
    rows = outputs_of(type(answer).__name__)
    if suffix not in rows:
        raise RequestError(f"no output {suffix!r} of a {type(answer).__name__}; there are: {', '.join(rows)}")
    return rows[suffix].content(answer, suffix)


def import_matplotlib() -> None:
    """Imports what figures are drawn with: once for all processes that this one is then copied to."""
    for name in ("figure", "backends.backend_agg", "backends.backend_svg"):
        import_module(f"matplotlib.{name}")
