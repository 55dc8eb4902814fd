"""Inputs of a model that firmware can make again by a few lines of C++: numbers of splitmix64, by run and input.

The generator starts at `seed * 0x100000001b3 + (run << 32) + input` in 64 bits, and its first number is dropped. Each
element takes one number Z: float32 `(Z >> 40) / 2^23 - 1`; int16 `Z >> 48`; int32 and int64 `Z >> 61`, 0 to 7, for they
may be indices; bool `Z >> 63`; int8, uint8 and bytes of any other type `Z >> 56`.
"""

import numpy as np
import numpy.typing as npt

from modelplan.runtimes.tflm.file import FileModel, FileTensor

#: Types of the schema: float32, int32, int64, bool, int16.
_FLOAT32, _INT32, _INT64, _BOOL, _INT16 = 0, 2, 4, 6, 7
_STEP = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def generated_inputs(model: FileModel, seed: int, run: int) -> list[bytes]:
    """The bytes of every input of the main subgraph for a run, counted from 0."""
    main = model.subgraphs[0]
    return [_generated(main.tensors[t], seed, run, number) for number, t in enumerate(main.inputs)]


def _generated(tensor: FileTensor, seed: int, run: int, number: int) -> bytes:
    start = (seed * 0x100000001B3 + (run << 32) + number) & _MASK
    if tensor.type == _FLOAT32:
        values = (numbers(start, tensor.nbytes // 4) >> 40).astype(np.float32)
        return (values / np.float32(1 << 23) - np.float32(1)).astype("<f4").tobytes()
    kind, shift = {_INT32: ("<i4", 61), _INT64: ("<i8", 61), _BOOL: ("u1", 63), _INT16: ("<u2", 48)}.get(
        tensor.type, ("u1", 56)
    )
    return (numbers(start, tensor.nbytes // np.dtype(kind).itemsize) >> shift).astype(kind).tobytes()


def numbers(start: int, count: int) -> npt.NDArray[np.uint64]:
    """The first numbers of splitmix64 that is seeded with `start`, without the very first."""
    with np.errstate(over="ignore"):
        mixed = np.uint64(start) + np.arange(2, count + 2, dtype=np.uint64) * np.uint64(_STEP)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))
