"""Operators whose places are known when the network runs, and constants that become results, as calls of C kernels."""

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from modelplan.plain_c.kernel_records import (
    C_TYPES,
    CKernel,
    ConstTable,
    COperator,
    Parameters,
    RowOperand,
    const_table,
)
from modelplan.plain_c.operator_calls.moving import fill, moved
from modelplan.plain_c.operator_calls.reading import OperatorReader
from modelplan.runtimes.tflm.kernels.calls import ELEMENT_BYTES


def gather(r: OperatorReader) -> COperator:
    """GATHER: at constant places that are those of all batches a copy of runs, else of what operand 1 names."""
    shape, names = r.input(0).shape, r.input(1).shape
    axis, batches = int(r.option("Axis")) % max(len(shape), 1), int(r.option("BatchDims"))
    batches += len(names) * (batches < 0)
    if r.is_constant(1) and batches == 0:
        return moved(r)
    r.require(holds=batches <= min(axis, len(names)) and len(shape) > 0, why=f"axis {axis} and {batches} batches")
    return _picked(r, 0, 1, batches=prod(shape[:batches]), outer=prod(shape[batches:axis]), axes=(axis,))


def gather_slices(r: OperatorReader) -> COperator:
    """GATHER_ND: the parts of operand 0 at places along its first axes."""
    shape, names = r.input(0).shape, r.input(1).shape
    r.require(holds=len(names) > 0 and names[-1] <= len(shape), why=f"places of shape {list(names)}")
    return _picked(r, 0, 1, batches=1, outer=1, axes=range(names[-1]))


def embedded(r: OperatorReader) -> COperator:
    """EMBEDDING_LOOKUP: the rows of operand 1 that operand 0 names."""
    return _picked(r, 1, 0, batches=1, outer=1, axes=(0,))


def _picked(r: OperatorReader, data: int, names: int, *, batches: int, outer: int, axes: Sequence[int]) -> COperator:
    """Runs of operand `data` at the places along `axes` that operand `names` has, counted before each of `outer`."""
    source, picks, result = r.input(data), r.input(names), r.output()
    types = r.dtype(source), r.dtype(result), r.dtype(picks)
    r.require(holds=types[0] == types[1] and types[2] == "int32", why=f"types {', '.join(types)}")
    width, shape = ELEMENT_BYTES[types[0]], source.shape
    behind = [prod(shape[axis + 1 :]) * width for axis in axes]
    parameters: Parameters = {
        "batches": batches,
        "outer": outer,
        "block": prod(shape[axes[0] :]) * width,
        "places": picks.elements // max(batches * len(axes), 1),
        "axes": len(axes),
        "extents": const_table("extents", "int32_t", [shape[axis] for axis in axes]),
        "strides": const_table("strides", "int32_t", behind),
        "run": behind[-1],
    }
    copied = batches * outer * picks.elements // max(batches * len(axes), 1) * behind[-1]
    r.require(holds=copied == result.nbytes > 0, why=f"a result of shape {list(result.shape)}")
    sources, operands = _sources(r, (data, names))
    return COperator(r.index, r.op.kind, operands, r.row_results(), (CKernel("pick", "bytes", parameters, sources),))


def _sources(
    r: OperatorReader, positions: Sequence[int]
) -> tuple[tuple[int | ConstTable, ...], tuple[RowOperand, ...]]:
    """Operands as a kernel is handed them, tables where they are constants, and those that are none."""
    dynamic = [position for position in sorted(positions) if not r.is_constant(position)]
    sources = tuple(
        dynamic.index(p) if p in dynamic else const_table("constant", C_TYPES[r.dtype(r.input(p))], r.constant(p))
        for p in positions
    )
    return sources, tuple(r.row_operand(position) for position in dynamic)


def filled(r: OperatorReader) -> COperator:
    """FILL: one number everywhere."""
    types = r.dtype(r.input(1)), r.dtype(r.output())
    r.require(holds=types[0] == types[1], why=f"types {', '.join(types)}")
    sources, operands = _sources(r, (1,))
    return COperator(r.index, r.op.kind, operands, r.row_results(), (fill(r, sources[0]),))


def shape_of(r: OperatorReader) -> COperator:
    """SHAPE: the extents of operand 0, which are constants."""
    dtype = r.dtype(r.output())
    r.require(holds=dtype == "int32", why=f"type {dtype}")
    table = const_table("extents", "int32_t", np.array(r.input(0).shape, np.int32))
    kernel = CKernel("copy_bytes", "bytes", {"bytes": r.output().nbytes}, (table,))
    return COperator(r.index, r.op.kind, (), r.row_results(), (kernel,))


def updated(r: OperatorReader) -> COperator:
    """DYNAMIC_UPDATE_SLICE: operand 0 with operand 1 from the places on that operand 2 has, moved inside."""
    shape, part = r.input(0).shape, r.input(1).shape
    types = [r.dtype(t) for t in (r.input(0), r.input(1), r.output(), r.input(2))]
    known = len({*types[:3]}) == 1 and types[3] == "int32" and len(shape) == len(part) > 0
    r.require(holds=known and 0 not in (*shape, *part), why=f"types {', '.join(types)}, shapes {shape} and {part}")
    width = ELEMENT_BYTES[types[0]]
    strides: npt.NDArray[np.int32] = np.array([prod(shape[k + 1 :]) * width for k in range(len(shape))], np.int32)
    parameters: Parameters = {
        "axes": len(shape),
        "extents": const_table("extents", "int32_t", shape),
        "part": const_table("part", "int32_t", part),
        "strides": const_table("strides", "int32_t", strides),
        "runs": prod(part[:-1]),
        "run": part[-1] * width,
        "bytes": r.input(0).nbytes,
    }
    sources, operands = _sources(r, (0, 1, 2))
    kernel = CKernel("update", "bytes", parameters, sources)
    in_place = () if r.is_constant(0) else (0,)
    return COperator(r.index, r.op.kind, operands, r.row_results(), (kernel,), in_place=in_place)
