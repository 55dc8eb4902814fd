"""What the kernels of a whole model do while TFLM prepares it, and why they would refuse it."""

from functools import lru_cache

import numpy as np

from modelplan.model import IntArray
from modelplan.runtimes.tflm.abi import Abi
from modelplan.runtimes.tflm.arena_memory import ArenaMemory
from modelplan.runtimes.tflm.file import FileModel, FileOp, SameFile
from modelplan.runtimes.tflm.kernels import Call, Others
from modelplan.runtimes.tflm.kernels.preparation import ResourceVariables
from modelplan.runtimes.tflm.performing import Done, Kernels, Taken, kernels_of
from modelplan.runtimes.tflm.scratch import call_of, calls_of

#: The limit on the requests for scratch of one operator.
_MOST_REQUESTS = 12

#: How many models are remembered as their kernels prepare them, one for each library and release.
_REMEMBERED = 16


class PreparedModel:
    """What the kernels of a library do for a model: it follows from the tables of the file, not from its plan.

    `taken` are the distinct things that operators take; `numbers` says for each operator, over all subgraphs, which of
    them it is. `requests` counts those for scratch. `refusals` are the reasons of operators that are refused, by the
    same number of the operator; `unknown` are the numbers of those refused for want of a kernel that a build with the
    user's own might have. `shapes` are those that kernels give to tensors, numbered over all subgraphs. `alone`
    remembers for an ABI what each of `taken` leaves of an empty arena.
    """

    def __init__(self, model: FileModel, kernels: Kernels) -> None:
        self.variables = ResourceVariables()
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.refusals: dict[int, str] = {}
        self.unknown: set[int] = set()
        self.requests = 0
        self.alone: dict[Abi, list[ArenaMemory]] = {}
        self._model, self._kernels = model, kernels
        known: dict[int, int] = {}  # by identity: equal ones are one object
        taken: list[Taken] = []
        numbers: list[int] = []
        calls = calls_of(model)
        for subgraph, called in enumerate(calls.numbers):
            for op, number in zip(model.subgraphs[subgraph].ops, called, strict=True):
                call = calls.distinct[number]
                done = self._prepare(subgraph, op, call)
                at = known.get(id(done.taken))
                if at is None:
                    at = known[id(done.taken)] = len(taken)
                    taken.append(done.taken)
                refusal = done.refusal or self._refused_operands(subgraph, op, done.scratch)
                if done.unknown:
                    self.unknown.add(len(numbers))
                if refusal is not None:
                    self.refusals[len(numbers)] = refusal
                numbers.append(at)
        self.taken = tuple(taken)
        self.numbers: IntArray = np.array(numbers, dtype=np.int64)

    def _prepare(self, subgraph: int, op: FileOp, call: Call) -> Done:
        """What is done for one operator, with the shapes that kernels before it gave to its operands."""
        base = self._model.firsts[subgraph]
        if self.shapes and any(base + t in self.shapes for t in (*op.reads, *op.writes)):
            call = call_of(self._model, subgraph, op, self.shapes)
        done = self._kernels.of(call)
        if done is None:
            inputs, outputs = (tuple(base + t if t >= 0 else None for t in ts) for ts in (op.inputs, op.outputs))
            done = self._kernels.perform(call, Others(self.variables, (inputs, outputs), self.requests))
        self.requests += done.scratch
        if done.reshaped is not None and op.writes:
            self.shapes[base + op.outputs[0]] = done.reshaped
        return done

    def _refused_operands(self, subgraph: int, op: FileOp, requests: int) -> str | None:
        """What the interpreter itself refuses once a kernel is prepared."""
        tensors = self._model.subgraphs[subgraph].tensors
        for t in op.outputs:
            if t >= 0 and 0 in (shape := tensors[t].shape) and shape != (0,):
                return f"tensor {t} of shape {list(shape)}, a dynamic one to TFLM"
        for t in op.intermediates:
            if 0 <= t < len(tensors) and tensors[t].nbytes:
                return f"an intermediate tensor {t} with bytes, which TFLM does not plan"
        return f"{requests} scratch buffers; TFLM allows {_MOST_REQUESTS}" if requests > _MOST_REQUESTS else None


def prepared_model(model: FileModel, library: str, *, later: bool) -> PreparedModel:
    """What the kernels of a library do for a model; the models that were asked for last are remembered.

    Raises:
        RequestError: no such kernel library.
        ModelError: the options of an operator cannot be read.
    """
    return _prepared(SameFile(model), library, later)


@lru_cache(maxsize=_REMEMBERED)
def _prepared(file: SameFile, library: str, later: bool) -> PreparedModel:  # noqa: FBT001 - part of the key
    return PreparedModel(file.model, kernels_of(library, later=later))
