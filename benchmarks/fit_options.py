"""Shows that the plan of fit does not depend on what has nothing to do with it.

    python benchmarks/fit_options.py

Each network is fitted for either objective as it is and with one such change at a time.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import reporting
import tflite

from modelplan.formats import load_model
from modelplan.model import Graph
from modelplan.questions.model_fitting import FitRequest, fit
from modelplan.rewriting.packing import packed
from modelplan.rewriting.reordering import reordered
from modelplan.runtimes.tflm.file import read_tflite

NETWORKS = (
    "tflite/vww_96_int8", "tflite/pretrainedResnet_quant", "tflite/kws_ref_model", "tflite/person_detect",
    "tflite/mcu/mcunet_vww0", "tflite/mcu/micronet_vww2", "tflite/mcu/micronet_vww3", "tflite/mcu/kws_cnn_l",
    "tflite/mcu/kws_micronet_l", "camera/fomo_face_detection", "camera/blazeface_front_128",
)  # fmt: skip
OBJECTIVES = ("arena", "head")
_HEADINGS = ("model", "least", "change", ">arena", ">head", "as without it")


def renamed(data: bytes, graph: Graph) -> bytes:  # noqa: ARG001
    """The file with other names of tensors, as long as before."""
    changed = bytearray(data)
    main = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    for number in range(main.TensorsLength()):
        table = main.Tensors(number)._tab  # noqa: SLF001
        _overwrite(changed, table, table.Offset(10), f"{number:x}_".encode())
    return bytes(changed)


def without_metadata(data: bytes, graph: Graph) -> bytes:  # noqa: ARG001
    """The file with metadata under names that nobody knows."""
    changed = bytearray(data)
    model = tflite.Model.GetRootAs(data, 0)
    for number in range(model.MetadataLength()):
        table = model.Metadata(number)._tab  # noqa: SLF001
        _overwrite(changed, table, table.Offset(4), b"?")
    return bytes(changed)


def _overwrite(data: bytearray, table: Any, field: int, text: bytes) -> None:
    """Repeats a text over a string of a table."""
    if field:
        start, length = table.Vector(field), table.VectorLen(field)
        data[start : start + length] = (text * length)[:length]


def permuted(data: bytes, graph: Graph) -> bytes:
    """The file with its operators in another order, drawn at random, that makes each value before it is read."""
    drawn, order, done = random.Random(1), list[int](), set[int]()
    while len(order) < len(graph.ops):
        ready = [
            op for op in range(len(graph.ops))
            if op not in done and all(graph.producers[t] in done or graph.producers[t] < 0 for t in graph.ops[op].reads)
        ]  # fmt: skip
        order.append(drawn.choice(ready))
        done.add(order[-1])
    return reordered(data, graph, order)


def packed_before(data: bytes, graph: Graph) -> bytes:
    """The file with a plan of its memory."""
    return packed(read_tflite(data, graph.name), graph, "views")[0].data


#: What has nothing to do with a plan: how the file is changed, and options of the request.
CHANGES: dict[str, tuple[Callable[[bytes, Graph], bytes] | None, dict[str, Any]]] = {
    "": (None, {}),
    "one process": (None, {"processes": 1}),
    "other names of tensors": (renamed, {}),
    "no metadata": (without_metadata, {}),
    "operators in another order": (permuted, {}),
    "packed before": (packed_before, {}),
}


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments)
    chosen = [name for name in NETWORKS if arguments.only in name]
    reporting.save(arguments.output, first, "Fit: what does not matter", page(chosen, arguments.corpus))


def page(chosen: list[str], corpus: Path) -> Iterator[str]:
    """The lines of the report."""
    yield (
        "Bytes of arena and head by `fit` for the reference kernels, as the network is and with one change that has"
        " nothing to do with its plan. Each objective has to find what the other one finds, or better."
    )
    yield ""
    found = {name: {least: dict(plans_of(corpus / f"{name}.tflite", least)) for least in OBJECTIVES} for name in chosen}
    aligned = "".join(">" if heading.startswith(">") else "<" for heading in _HEADINGS)
    names = [heading.lstrip(">") for heading in _HEADINGS]
    rows = (row for name in chosen for least in OBJECTIVES for row in cells(name, least, found[name][least]))
    yield from reporting.table(names, rows, aligned)
    yield ""
    yield from reporting.table(
        ("model", "arena by arena", "arena by head", "head by head", "head by arena", "each the lowest by its own"),
        (compared(name, found[name]["arena"][""], found[name]["head"][""]) for name in chosen),
        "<>>>><",
    )


def plans_of(path: Path, least: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Arena and head under each change that makes a difference to the file or the request."""
    data, graph = path.read_bytes(), load_model(path)
    for change, (edit, options) in CHANGES.items():
        edited = data if edit is None else edit(data, graph)
        if edit is not None and edited == data:
            continue
        reporting.progress(f"{path.stem} {least} {change}")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / path.name
            file.write_bytes(edited)
            ladder = fit(FitRequest(file, kernels="reference", objective=least, **options))
        chosen = ladder.chosen or ladder.rungs[0]
        yield change, (chosen.arena, chosen.head)


def cells(name: str, least: str, found: dict[str, tuple[int, int]]) -> Iterator[list[object]]:
    """A row for each change."""
    for change, (arena, head) in found.items():
        same = "" if not change else "equal" if (arena, head) == found[""] else "DIFFERENT"
        yield [Path(name).name, least, change or "none", f"{arena:,}", f"{head:,}", same]


def compared(name: str, by_arena: tuple[int, int], by_head: tuple[int, int]) -> list[object]:
    """What each objective finds of both."""
    lowest = by_arena[0] <= by_head[0] and by_head[1] <= by_arena[1]
    bytes_found = (by_arena[0], by_head[0], by_head[1], by_arena[1])
    return [Path(name).name, *(f"{found:,}" for found in bytes_found), "yes" if lowest else "NO"]


PARSER = reporting.command_line(__file__, __doc__, "fit_options.md")
PARSER.add_argument("--only", default="", metavar="WORD", help="only networks whose path has this word")


if __name__ == "__main__":
    main()
