"""Finds values of inputs with which a run reaches the extents of a plan that depend on values.

Runs in the process of `session_process`, in a session whose outputs are the values in question.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from modelplan.formats.onnx.onnx_functions import inlined
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.ort.feeding import Rule, arrays_in, fed, rules_for

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

#: Inputs that rules are tried for one by one, constants that are tried, and elements of a constant that has some.
_MOST_INPUTS, _MOST_CONSTANTS, _FEW = 8, 8, 16
_INT64, _INT32 = 7, 6
#: Nodes of a model whose functions are put in place at most.
_MOST_NODES = 1_000_000
#: Runs with rules at most.
MOST_RUNS = 200
#: Words of the errors that speak of this machine's memory.
_OF_MEMORY = ("bad_alloc", "allocate", "bad allocation")
#: What is said of a run that took the processor time it may take.
OUT_OF_SECONDS = "it takes more processor time than it may"


@dataclass(frozen=True, slots=True)
class Aim:
    """What a run has to reach: `shapes` of values by name, and `truths`: whether a value is above zero.

    `ends` are sequences of tokens, with a number and a place: one row has to be without the number from there on, since
    a search goes on until all rows have it.
    """

    shapes: Mapping[str, Sequence[int]]
    truths: Mapping[str, bool]
    ends: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The values that it is about."""
        return list({**self.shapes, **self.truths, **self.ends})

    def plain(self) -> dict[str, Any]:
        """The same as plain data."""
        shapes = {n: list(s) for n, s in self.shapes.items()}
        return {"shapes": shapes, "truths": dict(self.truths), "ends": {n: list(e) for n, e in self.ends.items()}}

    def without(self, names: Collection[str]) -> Aim:
        """The aim but for some values."""
        shapes = {name: shape for name, shape in self.shapes.items() if name not in names}
        truths = {name: truth for name, truth in self.truths.items() if name not in names}
        return Aim(shapes, truths, {name: end for name, end in self.ends.items() if name not in names})


@dataclass(frozen=True, slots=True)
class _Run:
    """What a run with some rules had of the aim; `problem` where it failed. `ends`: whether a sequence was longest."""

    rules: Mapping[str, Rule]
    shapes: Mapping[str, Sequence[int]]
    truths: Mapping[str, bool]
    ends: Mapping[str, bool] = field(default_factory=dict)
    problem: str = ""

    def distance(self, aim: Aim) -> tuple[int, float]:
        """How many of the aims are missed, and by how much; a run that failed is worst."""
        if self.problem:
            return len(aim.shapes) + len(aim.truths) + len(aim.ends) + 1, 0.0
        missed = [name for name, shape in aim.shapes.items() if list(self.shapes.get(name, ())) != list(shape)]
        wrong = [name for name, truth in aim.truths.items() if self.truths.get(name) is not truth]
        wrong += [name for name in aim.ends if not self.ends.get(name)]
        far = sum(_far(self.shapes.get(name, ()), aim.shapes[name]) for name in missed)
        return len(missed) + len(wrong), far


def _far(shape: Sequence[int], wanted: Sequence[int]) -> float:
    """How far a shape is from another one, 0 where they are equal."""
    if len(shape) != len(wanted):
        return 1.0
    return sum(abs(x - y) / max(x, y, 1) for x, y in zip(shape, wanted, strict=True))


def reached(request: dict[str, Any]) -> dict[str, Any]:
    """The rules with which a run comes nearest to the aim of a request, and what it has there.

    `hidden` are values of the aim that no output can show, since they stand in a body; `problem` is why no run ended.
    """
    import onnx

    os.chdir(Path(request["model"]).parent)  # where a session that is made of bytes looks for weights
    proto = onnx.load(request["model"], load_external_data=False)
    if proto.functions:
        proto = inlined(proto, _MOST_NODES)
    aim = Aim(**request["aim"])
    hidden = _add_outputs(proto, set(aim.names))
    trials = _Trials(proto, request, aim.without(hidden))
    best = trials.nearest(_constants(proto.graph))
    return {
        "rules": dict(best.rules), "shapes": dict(best.shapes), "truths": dict(best.truths), "ends": dict(best.ends),
        "hidden": sorted(hidden), "problem": best.problem,
    }  # fmt: skip


def _add_outputs(proto: ModelProto, names: set[str]) -> set[str]:
    """Makes values outputs of the model, or leaves inputs as they are; returns those of `names` that cannot be."""
    graph = proto.graph
    computed = {name for node in graph.node for name in node.output}
    there = {value.name for value in graph.output}
    graph.output.extend(type(graph.output[0])(name=name) for name in sorted((names & computed) - there))
    return names - computed - {value.name for value in graph.input}


def _constants(graph: GraphProto) -> list[int]:
    """Small whole numbers of the model's own, and the rows of tables that are gathered from."""
    from onnx import numpy_helper

    numbers: dict[int, None] = {}
    tables = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    for tensor in graph.initializer:
        if tensor.name in tables and tensor.dims:
            numbers.setdefault(int(tensor.dims[0]))
        elif tensor.data_type in (_INT64, _INT32) and np.prod(tensor.dims) <= _FEW and not tensor.external_data:
            numbers.update(dict.fromkeys(map(int, numpy_helper.to_array(tensor).reshape(-1))))
    return [n for n in numbers if n not in (0, 1)][:_MOST_CONSTANTS]


class _Trials:
    """Runs of one session with different rules."""

    def __init__(self, proto: ModelProto, request: dict[str, Any], aim: Aim) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self.shapes, self.feeds, self.aim = request["shapes"], request["feeds"], aim
        self.deadline = time.monotonic() + request["seconds"]
        self.left = request["tries"]
        outputs = {value.name for value in self.session.get_outputs()}
        self.names = [name for name in aim.names if name in outputs]

    def nearest(self, constants: Sequence[int]) -> _Run:
        """The run that comes nearest to the aim: with one rule for all free inputs, then with another for some."""
        rules = list(rules_for(_extents(self.aim), constants))
        given = set(arrays_in(self.feeds.path)) if self.feeds.path else set()
        free = [value.name for value in self.session.get_inputs() if value.name not in {*self.feeds.values, *given}]
        best = self._run({})
        for assigned in _assignments(free, rules):
            if best.distance(self.aim)[0] == 0 or not self.left or time.monotonic() > self.deadline:
                break
            best = min(best, self._run(assigned), key=lambda run: run.distance(self.aim))
        for name in free[:_MOST_INPUTS]:
            for rule in (*rules, *self._shapes_for(name)):
                if best.distance(self.aim)[0] == 0 or not self.left or time.monotonic() > self.deadline:
                    return best
                best = min(best, self._run({**best.rules, name: rule}), key=lambda run: run.distance(self.aim))
        return best

    def _shapes_for(self, name: str) -> list[Rule]:
        """Rules that make an input a shape that is planned, or so often as another input goes into that."""
        shape = self.shapes[name]
        if len(shape) != 1:
            return []
        planned = [tuple(wanted) for wanted in self.aim.shapes.values() if len(wanted) == shape[0]]
        others = [other for other in self.shapes.values() if len(other) == shape[0] and all(other)]
        times = [tuple(n // m for n, m in zip(wanted, other, strict=True)) for wanted in planned for other in others]
        return [("numbers", numbers) for numbers in dict.fromkeys((*planned, *times))]

    def _run(self, rules: Mapping[str, Rule]) -> _Run:
        self.left -= 1
        inputs = self.session.get_inputs()
        given = fed(inputs, self.shapes, 0, replace(self.feeds, rules=rules))
        try:
            results = dict(zip(self.names, self.session.run(self.names or None, given), strict=bool(self.names)))
        except Exception as problem:  # noqa: BLE001 - ONNX Runtime's own, one of many kinds
            words = f"{type(problem).__module__}.{type(problem).__name__}: {problem}"
            self.left = 0 if is_out_of_memory(words) else self.left  # other values would take as much
            return _Run(rules, {}, {}, {}, words)
        arrays = {
            name: np.asarray(value) for name, value in {**given, **results}.items() if not isinstance(value, list)
        }
        shapes = {name: list(arrays[name].shape) for name in self.aim.shapes if name in arrays}
        tested = {name: arrays[name].reshape(-1) for name in self.aim.truths if name in arrays}
        truths = {name: bool(values[0] > 0) for name, values in tested.items() if values.size}
        ends = {
            name: bool((arrays[name][..., start:] != end).all(-1).any())
            for name, (end, start) in self.aim.ends.items()
            if name in arrays
        }
        return _Run(rules, shapes, truths, ends)


def is_out_of_memory(problem: str) -> bool:
    """Whether an error of ONNX Runtime says that memory was not enough."""
    return any(word in problem for word in _OF_MEMORY)


def _extents(aim: Aim) -> list[int]:
    return sorted({n for shape in aim.shapes.values() for n in shape}, reverse=True)


def _assignments(free: Sequence[str], rules: Sequence[Rule]) -> Iterator[dict[str, Rule]]:
    for rule in rules:
        yield dict.fromkeys(free, rule)


def unreached(aim: Aim, answer: Mapping[str, Any]) -> list[str]:
    """What of an aim a run did not reach, in words; `answer` is that of `reached`."""
    unseen = {*answer["hidden"], *(aim.shapes.keys() - answer["shapes"].keys())}
    early = [f"{name} of fewer tokens" for name in aim.ends if name not in unseen and not answer["ends"].get(name)]
    hidden = [f"{name}, which no output shows" for name in sorted(unseen)]
    shapes = [
        f"{name} {list(answer['shapes'][name])} where {list(shape)} is planned"
        for name, shape in aim.shapes.items()
        if name in answer["shapes"] and list(answer["shapes"][name]) != list(shape)
    ]
    wrong = [
        f"{name} {'false' if truth else 'true'}, so that the larger body does not run"
        for name, truth in aim.truths.items()
        if name not in unseen and answer["truths"].get(name) is not truth
    ]
    return [*shapes, *wrong, *early, *hidden]
