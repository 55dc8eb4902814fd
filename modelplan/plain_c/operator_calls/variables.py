"""Operators that read and write what a network remembers."""

import math

import numpy as np

from modelplan.plain_c.kernel_records import CKernel, COperator, Parameters, StateReference, const_table
from modelplan.plain_c.operator_calls.fixed_point import float_limits, quantized_multiplier
from modelplan.plain_c.operator_calls.reading import OperatorReader
from modelplan.plain_c.operator_calls.state_layout import StateKey, StatePlace, state_layout, variable_of


def state_reference(r: OperatorReader, key: StateKey, nbytes: int) -> StateReference:
    """Where a variable lies."""
    place: StatePlace | None = state_layout(r.model).places.get(key)
    if place is None or place.nbytes != nbytes:
        raise r.refuse("a variable of another size, or one that nothing is assigned to")
    return StateReference(place.offset)


def nothing(r: OperatorReader) -> COperator:
    """VAR_HANDLE and CALL_ONCE: handles are addresses, and first values are set by a reset."""
    state_layout(r.model)
    return COperator(r.index, r.op.kind, (), (), ())


def read_variable(r: OperatorReader) -> COperator:
    """READ_VARIABLE: a copy of the variable."""
    nbytes = r.output().nbytes
    source = state_reference(r, variable_of(r), nbytes)
    kernel = CKernel("copy_bytes", "bytes", {"bytes": nbytes}, (source,))
    return COperator(r.index, r.op.kind, (), r.row_results(), (kernel,))


def assign_variable(r: OperatorReader) -> COperator:
    """ASSIGN_VARIABLE: a copy to the variable."""
    nbytes = r.input(1).nbytes
    target = state_reference(r, variable_of(r), nbytes)
    r.require(holds=not r.is_constant(1), why="a constant that is assigned in each run")
    kernel = CKernel("copy_bytes", "bytes", {"bytes": nbytes}, (0,), target)
    return COperator(r.index, r.op.kind, (r.row_operand(1),), (), (kernel,))


def svdf(r: OperatorReader) -> COperator:
    """SVDF: features of the newest input go to the state, whose times are weighted and summed up."""
    types = [r.dtype(r.input(i)) for i in (0, 1, 2, 4)]
    known = types[:2] == ["int8", "int8"] and types[2] == types[3] in ("int8", "int16")
    r.require(holds=known and r.dtype(r.output()) == "int8", why=f"types {', '.join(types)}")
    (batches, depth), (filters, _), memory = r.input(0).shape, r.input(1).shape, r.input(2).shape[1]
    rank = int(r.option("Rank"))
    units = filters // rank
    bias = r.constant(3) if r.has(3) else np.zeros(units, np.int32)
    state = state_reference(r, r.op.inputs[4], r.input(4).nbytes)
    (source, in_zero), (feature, _), (time, _), (kept, zero) = (r.quantised(r.input(i)) for i in (0, 1, 2, 4))
    result, out_zero = r.quantised(r.output())
    f = np.float32
    first = quantized_multiplier(float(f(source) * f(feature) / f(kept)))
    second = quantized_multiplier(float(f(kept) * f(time) / f(result)))
    ctype = f"{types[3]}_t"
    parameters: Parameters = {
        "features": const_table("features", "int8_t", r.constant(1)),
        "times": const_table("times", ctype, r.constant(2)),
        "bias": const_table("bias", "int32_t", bias),
        "batches": batches,
        "depth": depth,
        "units": units,
        "rank": rank,
        "memory": memory,
        "in_zero": in_zero,
        "state_zero": zero,
        "out_zero": out_zero,
        "feature_multiplier": first[0],
        "feature_shift": first[1],
        "multiplier": second[0],
        "shift": second[1],
    }
    kernel = CKernel("svdf", types[3], parameters, (0, StateReference(state.offset, ctype)))
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), (kernel,))


def float_svdf(r: OperatorReader) -> COperator:
    """SVDF of floats."""
    types = {r.dtype(r.input(i)) for i in range(5) if r.has(i)}
    r.require(holds=types == {"float32"}, why=f"types {', '.join(sorted(types))}")
    (batches, depth), (filters, _), memory = r.input(0).shape, r.input(1).shape, r.input(2).shape[1]
    rank = int(r.option("Rank"))
    units, activation = filters // rank, r.activation()
    state = state_reference(r, r.op.inputs[4], r.input(4).nbytes)
    unbound: Parameters = {"least": -math.inf, "most": math.inf}
    parameters: Parameters = {
        "features": const_table("features", "float", r.constant(1)),
        "times": const_table("times", "float", r.constant(2)),
        "bias": const_table("bias", "float", r.constant(3) if r.has(3) else np.zeros(units, np.float32)),
        "batches": batches,
        "depth": depth,
        "units": units,
        "rank": rank,
        "memory": memory,
        **(float_limits(activation) if activation else unbound),
    }
    kernel = CKernel("float_svdf", "float", parameters, (0, StateReference(state.offset, "float")))
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), (kernel,))
