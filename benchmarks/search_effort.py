"""Shows what each number of the searches gives: what comes out, and the time that it takes, with others in its place.

    python benchmarks/search_effort.py [--record tflite]

A number is halved and doubled, one near 1 goes half as far from it and twice as far, of several every other one is left
out. Networks are searched again with each; a network counts as higher where more bytes come out than with the number
that is used.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import reporting

from modelplan.formats import load_model
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.ladder import CGoal, least_rung
from modelplan.rewriting.striped_onnx.onnx_search import OnnxSearch
from modelplan.rewriting.striped_onnx.writing import parsed, reading_of
from modelplan.rewriting.striped_tflite.ladder import climb
from modelplan.rewriting.striped_tflite.rungs import Goal
from modelplan.rewriting.stripes.search_effort import USUAL, SearchEffort
from modelplan.runtimes.ort.measuring import kept_values
from modelplan.runtimes.tflm.file import load_tflite

#: Networks of the corpus for stripes of .tflite files and for plain C, and of models/ for those of .onnx files.
_NETWORKS = (
    "tflite/kws_ref_model", "tflite/person_detect", "tflite/pretrainedResnet_quant", "camera/fomo_face_detection",
    "wild/weather_cnn_v3",
)  # fmt: skip
_OWN = ("resnet8", "mobilenet_v2_like", "quantised/resnet8_int8")
#: The kernels that arenas of .tflite files are for, and the work that stripes of .onnx models may add.
_KERNELS, _MORE_WORK = "cmsis-dsp", 0.25

Search = Callable[[SearchEffort], int]


def other_values(value: Any) -> Iterator[Any]:
    """The values that are tried in place of one."""
    if isinstance(value, tuple):
        yield value[::2]
        yield value[1::2]
    elif isinstance(value, int):
        yield from (value // 2, value * 2)
    elif 0.5 < value < 2:
        yield from (1 + (value - 1) / 2, 1 + (value - 1) * 2)
    elif math.isfinite(value):
        yield from (value / 2, value * 2)


def variants(record: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """The name of each number of a record, the number, another one, and the record with that."""
    for field in fields(record):
        value = getattr(record, field.name)
        if is_dataclass(value):
            for name, old, new, changed in variants(value):
                yield f"{field.name}.{name}", old, new, replace(record, **{field.name: changed})
        else:
            for new in other_values(value):
                if new not in ((), value):
                    yield field.name, value, new, replace(record, **{field.name: new})


def tflite_searches(corpus: Path) -> Iterator[Search]:
    """The least arena of each network."""
    for name in _NETWORKS:
        yield partial(_least_arena, load_model(corpus / f"{name}.tflite"))


def _least_arena(graph: Any, effort: SearchEffort) -> int:
    ladder = climb(graph, Goal(kernels=_KERNELS, effort=effort), proved=False)
    return min(rung.arena for rung in ladder.allowed)


def c_searches(corpus: Path) -> Iterator[Search]:
    """The least RAM of each network as plain C, without work that is added and with half as much again."""
    for name in _NETWORKS:
        path = corpus / f"{name}.tflite"
        model = CModel(load_model(path), load_tflite(path))
        for more in (0.0, 0.5):
            yield partial(_least_ram, model, more)


def _least_ram(model: CModel, more: float, effort: SearchEffort) -> int:
    goal = CGoal(max_macs=more, max_time=more, time_per_ram=math.inf, effort=effort)
    return least_rung(model, goal, proved=False).ram


def onnx_searches(corpus: Path) -> Iterator[Search]:  # noqa: ARG001
    """The bytes that are expected to be alive at once in the lowest plan of each .onnx model."""
    for name in _OWN:
        path = reporting.ROOT / "models" / f"{name}.onnx"
        yield partial(_least_peak, reading_of(parsed(path), load_model(path), kept_values(path, "extended")))


def _least_peak(reading: Any, effort: SearchEffort) -> int:
    search = OnnxSearch(reading, most_macs=_MORE_WORK, threads=1, effort=effort.onnx)
    return min((plan.peak for plan in search.plans()), default=search.plain.peak)


#: What is searched for each record.
_SEARCHES: dict[str, tuple[str, Callable[[Path], Iterator[Search]]]] = {
    "tflite": ("Stripes of .tflite models: the arena", tflite_searches),
    "onnx": ("Stripes of .onnx models: bytes alive at once", onnx_searches),
    "c": ("Plain C: RAM", c_searches),
}


def measured(searches: Sequence[Search], effort: SearchEffort) -> tuple[list[int], float]:
    """What each search finds, and the processor seconds of all."""
    before = time.process_time()
    answers = [search(effort) for search in searches]
    return answers, time.process_time() - before


def rows(record: str, searches: Sequence[Search]) -> Iterator[Sequence[object]]:
    """A row for each other number of a record."""
    measured(searches[:1], USUAL)  # imports what it needs
    usual, seconds = measured(searches, USUAL)
    for name, value, new, changed in variants(getattr(USUAL, record)):
        answers, taken = measured(searches, replace(USUAL, **{record: changed}))
        pairs = list(zip(answers, usual, strict=True))
        mean = math.exp(sum(math.log(new / old) for new, old in pairs) / len(pairs)) - 1
        higher, lower = (sum(sign * new > sign * old for new, old in pairs) for sign in (1, -1))
        reporting.progress(f"{record} {name} {shown(new)}: {higher} higher, {lower} lower")
        yield name, shown(value), shown(new), higher, lower, f"{mean:+.2%}", f"{taken / seconds:.2f}"


def shown(value: Any) -> str:
    """A number, or several, in few characters."""
    return " ".join(map(shown, value)) if isinstance(value, tuple) else f"{value:,.3g}" if value < 1 else f"{value:,g}"


def lines(corpus: Path, records: Sequence[str]) -> Iterator[str]:
    """The tables of some records."""
    yield "What comes out of each search with another number in place of the one that is used; `mean` is the change of"
    yield "all networks together, `time` is the processor time beside that of the usual numbers in the same run."
    for record in records:
        title, subjects = _SEARCHES[record]
        searches = list(subjects(corpus))
        yield from ("", f"## {title}", "", f"{len(searches)} searches.", "")
        columns = ("number", "used", "tried", "higher", "lower", "mean", "time")
        yield from reporting.table(columns, rows(record, searches))


PARSER = reporting.command_line(__file__, __doc__, "search_effort.md")
PARSER.add_argument("--record", choices=tuple(_SEARCHES), help="one of the records alone")


def main() -> int:
    """Writes the page."""
    arguments: argparse.Namespace = reporting.parse(PARSER)
    records = [arguments.record] if arguments.record else list(_SEARCHES)
    text = list(lines(arguments.corpus, records))
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "What the searches look at", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
