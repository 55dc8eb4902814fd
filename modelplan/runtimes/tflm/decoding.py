"""Weights that are unpacked at run time: into the arena, or into memory that the application gives for them.

`MicroInterpreter::SetDecompressionMemory` names such memory. Each operator fills it from the start, so that what a
TFLM_DECODE unpacks must be read before the next one runs; TFLM's planner then leaves these tensors out. Kernels that
unpack their own weights, as metadata say, request no scratch then.
"""

from collections.abc import Iterable
from dataclasses import replace

from modelplan.runtimes.tflm.arena import Arena, Interpreter, builds, largest_arena
from modelplan.runtimes.tflm.file import DECODE, FileModel, FileTensor
from modelplan.runtimes.tflm.planner import padded


def decode_region(model: FileModel) -> int:
    """Bytes of the memory, aligned to 16 bytes, that holds what any one operator unpacks; 0 where no memory can.

    It can where the model has such operators, in one subgraph alone, and what they unpack is read in time.
    """
    main = model.subgraphs[0]
    if not model.decodes or len(model.subgraphs) > 1:
        return 0
    needed, valid = 0, dict[int, int]()  # the operator that has unpacked a tensor last
    last = -1
    for number, op in enumerate(main.ops):
        if any(valid.get(t, last) != last for t in op.reads):
            return 0
        if op.kind == DECODE:
            last = number
            valid |= dict.fromkeys(op.writes, number)
            needed = max(needed, _taken(main.tensors[t] for t in op.writes))
    return needed if all(valid.get(t, last) == last for t in main.outputs) else 0


def _taken(tensors: Iterable[FileTensor]) -> int:
    """Bytes of tensors one after the other, each aligned."""
    size = 0
    for tensor in tensors:
        size = padded(size) + tensor.nbytes
    return size


def arena_beside_region(model: FileModel, abi: str, kernels: str) -> Arena:
    """What the arena holds where all that is unpacked lies in such memory.

    Raises:
        RequestError: no such ABI or kernel library.
        ModelError: the offline plan in the file does not fit the model.
    """
    main = model.subgraphs[0]
    unpacked = {t for op in main.ops if op.kind == DECODE for t in op.writes}
    tensors = tuple(replace(tensor, nbytes=0) if t in unpacked else tensor for t, tensor in enumerate(main.tensors))
    return _with_one_region(replace(model, subgraphs=(replace(main, tensors=tensors),)), abi, kernels)


def _with_one_region(model: FileModel, abi: str, kernels: str) -> Arena:
    """What the arena holds beside one such memory, in the build of the library that takes most."""
    return largest_arena([Interpreter(model, *build, regions=1).arena() for build in builds(abi, kernels)])


def unpacking_region(model: FileModel) -> int:
    """Bytes of the memory, aligned to 16 bytes, that holds what any one kernel unpacks of its own inputs."""
    unpacked = (
        _taken(subgraph.tensors[t] for t in op.inputs if t >= 0 and subgraph.tensors[t].compressed)
        for subgraph in model.subgraphs
        for op in subgraph.ops
    )
    return max(unpacked, default=0)


def arena_beside_unpacked(model: FileModel, abi: str, kernels: str) -> Arena:
    """What the arena holds where all that kernels unpack of their own inputs lies in such memory."""
    subgraphs = (
        replace(subgraph, tensors=tuple(replace(t, compressed=False) for t in subgraph.tensors))
        for subgraph in model.subgraphs
    )
    return _with_one_region(replace(model, subgraphs=tuple(subgraphs)), abi, kernels)
