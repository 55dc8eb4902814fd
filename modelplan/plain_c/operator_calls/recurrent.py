"""UNIDIRECTIONAL_SEQUENCE_LSTM as a call of a C kernel."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from modelplan.plain_c.kernel_records import (
    C_TYPES,
    CKernel,
    ConstTable,
    COperator,
    Parameters,
    StateReference,
    const_table,
)
from modelplan.plain_c.operator_calls.fixed_point import SIGMOID, quantized_multiplier
from modelplan.plain_c.operator_calls.reading import OperatorReader
from modelplan.plain_c.operator_calls.variables import state_reference
from modelplan.plain_c.operator_calls.windowed import wrapped_bias

#: Operands of the gates forget, input, cell and output: weights, weights of the state, biases; then the states.
_WEIGHTS, _RECURRENT, _BIASES, _HIDDEN, _CELL = (2, 1, 3, 4), (6, 5, 7, 8), (13, 12, 14, 15), 18, 19
#: Operands of forms that TFLM does not run.
_ABSENT = (9, 10, 11, 16, 17, 20, 21, 22, 23)
_TANH = 4


def lstm(r: OperatorReader) -> COperator:
    """An LSTM of 8 or 16 bits whose weights have 8 and whose cells have 16."""
    element, cells = r.dtype(r.input(0)), r.dtype(r.input(_CELL))
    weights = {r.dtype(r.input(i)) for i in (*_WEIGHTS, *_RECURRENT)}
    known = element in ("int8", "int16") and r.dtype(r.input(_HIDDEN)) == element
    known = known and weights == {"int8"} and cells == "int16"
    r.require(holds=known, why="types other than int8 or int16 with weights of int8 and cells of int16")
    single = all(r.input(i).quantization.scales == 1 for i in (*_WEIGHTS, *_RECURRENT))
    r.require(holds=single, why="scales by channel")
    tables = {
        **_gates(r, r.input(_HIDDEN).shape[1]),
        **_cells(r),
        "sigmoid": const_table("sigmoid", "uint16_t", SIGMOID),
    }
    return _lstm(r, "lstm", element, "int16_t", tables)


def float_lstm(r: OperatorReader) -> COperator:
    """An LSTM of floats."""
    positions = (0, *_WEIGHTS, *_RECURRENT, *_BIASES, _HIDDEN, _CELL)
    r.require(holds={r.dtype(r.input(i)) for i in positions} == {"float32"}, why="types other than float32")

    def table(name: str, positions: Sequence[int]) -> ConstTable:
        return const_table(name, "float", np.stack([r.constant(position) for position in positions]))

    parameters: Parameters = {
        "weights": table("weights", _WEIGHTS),
        "recurrent_weights": table("recurrent_weights", _RECURRENT),
        "bias": table("bias", _BIASES),
        "cell_clip": float(r.option("CellClip")),
    }
    return _lstm(r, "float_lstm", "float", "float", parameters)


def _lstm(r: OperatorReader, source: str, variant: str, cells: str, more: Parameters) -> COperator:
    r.require(holds=not any(r.has(i) for i in _ABSENT), why="peepholes, a projection or normalised layers")
    r.require(holds=int(r.option("FusedActivationFunction")) == _TANH, why="an activation that is no tanh")
    depth, units = r.input(0).shape[2], r.input(_HIDDEN).shape[1]
    steps, batches = r.input(0).shape[:2] if r.option("TimeMajor") else r.input(0).shape[1::-1]
    hidden = state_reference(r, r.op.inputs[_HIDDEN], r.input(_HIDDEN).nbytes)
    cell = state_reference(r, r.op.inputs[_CELL], r.input(_CELL).nbytes)
    parameters: Parameters = {
        **more,
        "batches": batches,
        "steps": steps,
        "depth": depth,
        "units": units,
        "batch_pitch": 1 if r.option("TimeMajor") else steps,
        "step_pitch": batches if r.option("TimeMajor") else 1,
    }
    kept = C_TYPES[r.dtype(r.input(_HIDDEN))]
    states = StateReference(hidden.offset, kept), StateReference(cell.offset, cells)
    kernel = CKernel(source, variant, parameters, (0, *states))
    return COperator(r.index, r.op.kind, (r.row_operand(0),), r.row_results(), (kernel,))


def _gates(r: OperatorReader, units: int) -> Parameters:
    """Weights, biases and multipliers of the four gates, whose sums have 12 bits behind the point."""
    multipliers: list[tuple[int, int]] = []
    tables: dict[str, list[npt.NDArray[np.int64]]] = {"weights": [], "bias": []}
    for source, positions in ((0, _WEIGHTS), (_HIDDEN, _RECURRENT)):
        scale, zero = r.quantised(r.input(source))
        for gate, position in enumerate(positions):
            weights = r.constant(position).astype(np.int64)
            bias = r.constant(_BIASES[gate]).astype(np.int64) if source == 0 else np.zeros(units, np.int64)
            tables["weights"].append(weights)
            tables["bias"].append(bias - zero * weights.sum(1))
            product = float(scale) * float(r.quantised(r.input(position))[0])
            multipliers.append(quantized_multiplier(product / 2.0**-12))
    return {
        "weights": const_table("weights", "int8_t", np.stack(tables["weights"][:4])),
        "recurrent_weights": const_table("recurrent_weights", "int8_t", np.stack(tables["weights"][4:])),
        "bias": _biases(r, "bias", tables["bias"][:4]),
        "recurrent_bias": _biases(r, "recurrent_bias", tables["bias"][4:]),
        "multipliers": const_table("multipliers", "int32_t", [m for m, _ in multipliers]),
        "shifts": const_table("shifts", "int8_t", [s for _, s in multipliers]),
    }


def _biases(r: OperatorReader, name: str, gates: Sequence[npt.NDArray[np.int64]]) -> ConstTable:
    """The biases of all gates, of as many bits as sums have."""
    biases = np.concatenate(gates)
    return wrapped_bias(name, biases) if r.dtype(r.input(0)) == "int8" else const_table(name, "int64_t", biases)


def _cells(r: OperatorReader) -> Parameters:
    """How cells are updated, and the state that follows from them."""
    scale = r.quantised(r.input(_CELL))[0]
    hidden, zero = r.quantised(r.input(_HIDDEN))
    ones = 2.0**-15
    power = 12 + round(math.log2(scale))
    clip = float(r.option("CellClip"))
    parameters: Parameters = {"hidden_zero": zero, "cell_clip": int(min(clip / scale, 32767.0)) if clip > 0 else 0}
    parameters |= {"cell_factor": 3 if power < 0 else 3 << power, "cell_shift": max(-power, 0)}
    for name, real in (("forget", ones), ("input", ones * ones / scale), ("hidden", ones * ones / hidden)):
        multiplier, shift = quantized_multiplier(real)
        parameters |= {f"{name}_multiplier": multiplier, f"{name}_shift": shift}
    return parameters
