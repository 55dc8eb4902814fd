"""Whether a .tflite file computes what another does, row by row, by symbolic runs of both."""

from collections.abc import Collection

from modelplan.checking.verifier.rewrites.contents import Catalogue, Content, Fault, Unproved, row_words
from modelplan.checking.verifier.rewrites.interface import HostSide, host_side
from modelplan.checking.verifier.rewrites.reading import Cell, Source, surroundings_of
from modelplan.checking.verifier.rewrites.running import Trace, fault_of, trace_run
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.metadata import INTERFACE


@dataclass(frozen=True)
class Compared:
    """Both runs, in which equal rows have equal coordinates; `host` is what the second file's program converts."""

    catalogue: Catalogue
    original: Trace
    rewritten: Trace
    host: HostSide


def compare_rows(original: Source, rewritten: Source, stated: Collection[str] = ()) -> Compared:
    """Follows the rows of every tensor through both files; returns what was followed.

    `stated` are custom operators for which somebody has kernels.

    Raises:
        Fault: an output of the second file is not, row by row, that of the first.
        Unproved: an operator is not known, or the first file contradicts itself.
        RequestError: the files have other inputs or outputs, or seem to be swapped.
    """
    host = host_side(original, rewritten)
    _check_interface(original, rewritten, host)
    catalogue = Catalogue()
    try:
        first = trace_run(original, catalogue, stated=stated)
    except Fault as fault:
        raise Unproved(f"cannot be proved: {original.name} itself cannot be followed: {fault}") from None
    pieces = max((base.uses for base in catalogue.bases), default=0)
    catalogue.close()
    second = trace_run(rewritten, catalogue, host, stated)
    if pieces > 1 >= max((base.uses for base in catalogue.bases), default=0):  # a model is in one piece
        raise RequestError(
            f"{original.name} is computed in stripes and {rewritten.name} is not: were the two files swapped?"
        )
    for position, (wanted, content) in enumerate(zip(first.outputs, second.returned, strict=True)):
        cell = rewritten.parts[0].cells[rewritten.parts[0].outputs[position]]
        _check_output(catalogue, rewritten, cell, wanted, content)
    _check_same_around(original, rewritten, host)
    for variable in {kept[0] for kept in (*first.keeping, *second.keeping)}:
        sides = ([kept for kept in trace.keeping if kept[0] == variable] for trace in (first, second))
        if next(sides) != next(sides):
            raise Fault("the file", "runs operators that keep values between runs in another order or number")
    return Compared(catalogue, first, second, host)


def _check_interface(original: Source, rewritten: Source, host: HostSide) -> None:
    for what in ("inputs", "outputs"):
        cells = [[part.cells[t] for t in getattr(part, what)] for part in (original.parts[0], rewritten.parts[0])]
        if len(cells[0]) != len(cells[1]):
            raise RequestError(
                f"{rewritten.name} is no rewrite of {original.name}: it has {len(cells[1])} {what}, not {len(cells[0])}"
            )
        for position, (a, b, end) in enumerate(zip(*cells, getattr(host, what), strict=True)):
            for name in ("name", "shape") if end is not None else ("name", "shape", "coding"):
                if getattr(a, name) != getattr(b, name):
                    raise RequestError(
                        f"{rewritten.name} is no rewrite of {original.name}: {what[:-1]} {position} has"
                        f" {name} {_shown(b, name)}, the model's has {_shown(a, name)}"
                    )


def _check_same_around(original: Source, rewritten: Source, host: HostSide) -> None:
    """Checks what programs find beside the operators: signatures with their names, and metadata but for the plan."""
    before, after = surroundings_of(original), surroundings_of(rewritten)
    if host.converts:
        for said in (before, after):
            said.pop(f"metadata {INTERFACE!r}", None)
    for what in sorted(before.keys() | after.keys()):
        if what not in after:
            raise Fault("the file", f"has no {what}, which the model has")
        if before.get(what) != after[what]:
            difference = "which the model has not" if what not in before else "and not what the model says there"
            raise Fault("the file", f"has {what}, {difference}")


def _shown(cell: Cell, name: str) -> str:
    if name != "coding":
        return f"{getattr(cell, name)!r}"
    coding = cell.coding
    return f"{coding.dtype}, scales {list(coding.scales)}, zero points {list(coding.zero_points)}"


def _check_output(catalogue: Catalogue, source: Source, cell: Cell, wanted: Content, content: Content) -> None:
    if wanted == content:
        return
    part = source.parts[0]
    makers = [op for op in part.ops if part.outputs and cell.number in op.outputs]
    where = makers[-1].label if makers else "the file"
    reason = catalogue.explain(cell.label, content)
    if reason is not None:
        raise fault_of(catalogue, where, reason, f", and this stays in output {cell.name!r}")
    if wanted.base != content.base:
        base_name = catalogue.bases[content.base].name if content.base >= 0 else "nothing"
        raise Fault(
            where, f"gives {cell.label} the values of {base_name!r}, not of {catalogue.bases[wanted.base].name!r}"
        )
    for axis, (a, b) in enumerate(zip(wanted.axes, content.axes, strict=True)):
        if a != b:
            first = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
            raise Fault(
                where,
                f"puts {row_words(axis, b[first:])} of {catalogue.bases[content.base].name!r} into {cell.label} from"
                f" place {first} on, where the model has {row_words(axis, a[first:])}",
            )
