"""Compares predictions with TFLM itself.

    python benchmarks/tflm.py

Runs every .tflite of the corpus and of models/ on the tflite-micro wheel (extra `tflm`), as it is and packed: heads,
tails by row, outputs, the number for `tensor_arena`; then public totals of 32-bit boards by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import reporting

from modelplan.planning.aliasing.rules import MODES
from modelplan.primitives.errors import ModelPlanError
from modelplan.rewriting.packing import Packing, answer, question_of
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.arena import Arena, arena
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.metadata import write_plan
from modelplan.runtimes.tflm.runner import RefusalError, TflmRun, run_tflm, tflm_version

#: Public arena totals of boards: model, kernels, board, bytes. Sources: mcufit-bench; TFLM's benchmark README.
BOARDS = [
    ("person_detect", "reference", "ESP32", 82300), ("kws_ref_model", "reference", "ESP32", 22780),
    ("pretrainedResnet_quant", "reference", "ESP32", 54364), ("ad01_int8", "reference", "ESP32", 2380),
    ("person_detect", "cmsis-dsp", "nRF52840", 82740), ("kws_ref_model", "cmsis-dsp", "nRF52840", 24164),
    ("pretrainedResnet_quant", "cmsis-dsp", "nRF52840", 55188), ("ad01_int8", "cmsis-dsp", "nRF52840", 2596),
    ("person_detect", "cmsis-mve", "Corstone-300", 84436),
]  # fmt: skip

#: The rows of the public report for person_detect on the Corstone-300; the last is what its rows leave of the tail.
CORSTONE = {
    "head": 55296, "TfLiteEvalTensor data": 1068, "Persistent TfLiteTensor data": 64,
    "Persistent TfLiteTensor quantization data": 40, "Persistent buffer data": 25872,
    "NodeAndRegistration struct": 992, "all other": 1104,
}  # fmt: skip


_HEADS = (
    "Bytes; `packed` is what TFLM reports for the file of `modelplan fit --only plan`. Outputs are compared over four",
    "runs on random inputs without a reset, after a run that fills the arena with other data.",
    "",
)
_SAVED = ("The best of the alias modes above; the smallest that needs fewest aliases.", "")
_TAILS = ("`loads`: TFLM accepts an arena of exactly the bytes in the column before.", "")
_BOARDS = (
    "Totals that others measured with releases of their time, against the arena of the release that",
    "`reports/arena.md` names.",
    "",
)


@dataclass
class Measured:
    """One model, as it is and packed."""

    path: Path
    model: FileModel
    plans: dict[str, Packing]
    own: TflmRun
    packed: dict[str, TflmRun]
    parts: Arena
    loads: bool


def measure(path: Path) -> Measured:
    model = read_tflite(path.read_bytes(), path.name)
    own = run_tflm(model.data)
    plans, packed = {}, {}
    for alias in (mode for mode in MODES if mode in ("none", "views", "safe")):
        plans[alias] = answer(question_of(model, reporting.graph_of(path), alias))
        packed[alias] = run_tflm(write_plan(model, plans[alias].offsets))
    parts = arena(model, "wheel")
    return Measured(path, model, plans, own, packed, parts, loads(model, parts.size()))


def loads(model: FileModel, size: int) -> bool:
    try:
        run_tflm(model.data, rounds=1, arena=size)
    except RefusalError:
        return False
    return True


def heads(rows: list[Measured]) -> Iterator[str]:
    modes = list(rows[0].plans)
    by_mode = (heading for m in modes for heading in (f"packed, aliases {m}", "predicted", "bound"))
    headings = ("model", "TFLM's own head", "predicted", *by_mode, "outputs")
    yield from reporting.table(headings, ([*_heads(r)] for r in rows), "<" + ">" * (len(headings) - 2) + "<")


def _heads(r: Measured) -> Iterator[str]:
    yield from (r.path.stem, f"{r.own.head:,}", f"{planner.predicted_head(r.model):,}")
    for mode, packed in r.packed.items():
        yield from (f"{packed.head:,}", f"{r.plans[mode].head:,}", f"{r.plans[mode].lower_bound:,}")
    yield "bit-equal" if all(run.outputs == r.own.outputs for run in r.packed.values()) else "DIFFER"


def smaller(rows: list[Measured]) -> Iterator[str]:
    """Which models the plan helps, and why it cannot help the others."""
    headings = ("model", "TFLM's own", "packed", "saved", "why not less")
    yield from reporting.table(headings, (_smaller(r) for r in rows), "<>>><")


def _smaller(r: Measured) -> Sequence[str]:
    mode, best = min(r.plans.items(), key=lambda item: item[1].head)
    saved = r.own.head - best.head
    part = f"{saved:,} ({100 * saved / r.own.head:.0f} %)"
    return r.path.stem, f"{r.own.head:,}", f"{best.head:,} ({mode})", part, reason(r.model, best)


def reason(model: FileModel, best: Packing) -> str:
    if best.head > best.lower_bound:
        return f"not proven; at least {best.lower_bound:,}"
    peak = max(
        ((sum(row.size for row in best.rows if row.first <= t <= row.last), t) for t in {r.last for r in best.rows}),
    )[1]
    rows = zip(best.rows, best.places, strict=True)
    alive = {at for row, at in rows if row.first <= peak <= row.last}  # tensors that share bytes count once
    op = model.subgraphs[0].ops[peak - 1] if len(model.subgraphs) == 1 and peak > 0 else None
    where = f"op {peak - 1} {op.kind}" if op else f"scope {peak}"
    return f"the bound: {len(alive)} buffers are alive at {where}"


def tails(rows: list[Measured]) -> Iterator[str]:
    headings = ("model", "tail reported", "modelled", "rows that differ", "`tensor_arena`", "loads")
    yield from reporting.table(headings, (_tails(r) for r in rows), "<>><><")


def _tails(r: Measured) -> Sequence[str]:
    modelled = {row.name: row for row in r.parts.rows}
    odd = [
        f"{row.name}: {row.used:,} reported, {modelled[row.name].used:,} modelled"
        for row in r.own.rows
        if modelled[row.name].used != row.used
    ]
    loads = "yes" if r.loads else "no: " + estimate(r.parts)
    size = f"{r.parts.size():,}"
    return r.path.stem, f"{r.own.tail:,}", f"{r.parts.tail:,}", "; ".join(odd) or "none", size, loads


def estimate(parts: Arena) -> str:
    return next((row.trust for row in parts.rows if row.trust.startswith("estimated")), "unexplained")


def boards(corpus: Path) -> Iterator[str]:
    headings = ("model", "board", "kernels", "public total", "head", "tail", "modelled total", "difference")
    yield from reporting.table(headings, (_board(corpus, *row) for row in BOARDS), "<<<>>>>>")


def _board(corpus: Path, name: str, kernels: str, board: str, total: int) -> Sequence[str]:
    abi = "xtensa" if board == "ESP32" else "cortex-m"
    parts = arena(read_tflite((corpus / "tflite" / f"{name}.tflite").read_bytes(), name), abi, kernels)
    off = f"{parts.total - total:+,} ({100 * (parts.total - total) / total:+.2f} %)"
    return name, board, kernels, *(f"{size:,}" for size in (total, parts.head, parts.tail, parts.total)), off


def corstone(corpus: Path) -> Iterator[str]:
    data = (corpus / "tflite" / "person_detect.tflite").read_bytes()
    parts = arena(read_tflite(data, "person_detect"), "cortex-m", "cmsis-mve")
    used = {"head": parts.head} | {row.name: row.used for row in parts.rows}
    used["all other"] = sum(size for name, size in used.items() if name not in CORSTONE)
    rows = ((name, f"{size:,}", f"{used[name]:,}", f"{used[name] - size:+,}") for name, size in CORSTONE.items())
    yield from reporting.table(("row", "public report", "modelled", "difference"), rows)


def page(corpus: Path) -> Iterator[str]:
    rows, skipped = [], []
    for _, path in reporting.tflite_files(corpus):
        try:
            rows.append(measure(path))
        except ModelPlanError as problem:
            skipped.append(f"* {path.name}: {problem}")
    sections = (
        ("TFLM: predicted and reported", _HEADS, heads(rows)),
        ("What a plan saves", _SAVED, smaller(rows)),
        ("Not run", (), skipped),
        ("Tails", _TAILS, tails(rows)),
        ("Boards", _BOARDS, boards(corpus)),
        ("Corstone-300, person_detect, by row", (), corstone(corpus)),
    )
    for number, (title, text, lines) in enumerate(sections):
        yield from ([""] if number else [])
        yield f"## {title}"
        yield ""
        yield from text
        yield from lines


PARSER = reporting.command_line(__file__, __doc__, "tflm.md")


def main() -> None:
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments, f" with tflite-micro {tflm_version()}, x86-64")
    reporting.save(arguments.output, first, "TFLM's arena: predicted and reported", page(arguments.corpus))


if __name__ == "__main__":
    main()
