"""What a model file needs on its runtime as it stands, and what it would need as `reorder` and `pack` write it.

Every figure is that of a file that was made: planned, written, read back and sized as the runtime would.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from modelplan import bounds, pipeline
from modelplan.errors import ModelError, RequestError
from modelplan.lifetimes import padded
from modelplan.loaders import load_model
from modelplan.loaders.files import read_bytes
from modelplan.pipeline import Options
from modelplan.rewriting import packing, reordering
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.planner import read_plan, requests
from modelplan.types import Alternative, Graph, Part, Requirement, Runtime
from modelplan.verifier import proof
from modelplan.verifier.subject import offline_subject

#: What the commands of an alternative call the files that they write.
_ORDERED, _PACKED = "ordered", "packed.tflite"
#: The plans that are tried, by alias mode: with one subgraph, and with several, which share no bytes.
_PLANS = {"views": "plan: views share bytes", "safe": "plan: outputs over operands too"}
_APART = {"none": "plan"}


@dataclass(frozen=True, slots=True)
class Target:
    """A runtime, the name of the ABI that it is built for, and the options that tell `reorder` of the runtime."""

    runtime: Runtime
    abi: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model file: its path, its content, the graph in it."""

    path: str
    content: bytes
    graph: Graph


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file made of another one: what changes, and the commands that write it; without a file, why there is none."""

    change: str
    commands: tuple[str, ...]
    file: ModelFile | None
    refusal: str = ""


def load_file(path: str, dims: Sequence[str] = (), shapes: Sequence[str] = ()) -> ModelFile:
    """The model file `path`, with extents that it leaves open as `load` takes them."""
    return ModelFile(path, read_bytes(path), load_model(path, dims, shapes))


def as_it_stands(file: ModelFile, target: Target) -> Requirement:
    """What the runtime needs to run the file, with the order and the plan that it carries.

    Raises:
        BrokenPlanError: the file carries a plan by which an operator would read what it should not.
    """
    runtime, found = target.runtime, with_proved_plan(file, target)
    if not found.refusals and carries_plan(file, runtime):
        proof.prove(offline_subject(read_tflite(file.content, file.path), runtime.kernels))
    return found


def with_proved_plan(file: ModelFile, target: Target) -> Requirement:
    """The same for a file whose plan has been proved, or that carries none."""
    runtime = target.runtime
    if runtime.requires is None or file.graph.format != runtime.default_for:
        return planned_by_itself(file.graph, runtime)
    return runtime.requires(file.content, file.path, target.abi, runtime.kernels)


def planned_by_itself(graph: Graph, runtime: Runtime) -> Requirement:
    """What the runtime plans for the activations of a graph; it takes that memory by itself."""
    plan = pipeline.runtime_plan(graph, runtime)
    height = bounds.height(plan.problem, plan.placement)
    arena = padded(height, replace(runtime, pad="tensor"))
    basis = f"what {runtime.name} plans by itself: its own order, sharing and allocator ({runtime.allocator})"
    return Requirement(arena, height, (Part("activations", height), Part("rounded up", arena - height)), basis)


def carries_plan(file: ModelFile, runtime: Runtime) -> bool:
    """Whether the file carries a plan that the runtime follows."""
    if not runtime.offline_plans or file.graph.format != runtime.default_for:
        return False
    return read_plan(read_tflite(file.content, file.path)) is not None


def carried_offsets(file: ModelFile, runtime: Runtime) -> tuple[int, ...]:
    """The offsets of the plan that the file carries for the runtime, one for each tensor of the graph; else none.

    Where other subgraphs need memory too, all run on one clock, and the plan says nothing of the graph alone. A plan
    that keeps parts of tensors, as for models in stripes, is none of the graph's tensors either.
    """
    if not carries_plan(file, runtime):
        return ()
    model = read_tflite(file.content, file.path)
    if not proof.keeps_whole_tensors(offline_subject(model, runtime.kernels)):
        return ()
    rows, own = requests(model, runtime.kernels), len(model.subgraphs[0].tensors)
    alone = all(row.op[0] == 0 if row.scratch else row.tensor < own for row in rows)
    return (read_plan(model) or ())[:own] if alone else ()


def alternatives(file: ModelFile, target: Target) -> Iterator[Alternative]:
    """The file in its best order, packed with views and with overwrites, and both together."""
    return (sized(one, target) for one in rewritten_files(file, target))


def sized(one: Rewritten, target: Target) -> Alternative:
    """What a file that was made needs; its kernels are those that it was made for."""
    if one.file is None:
        return Alternative(one.change, one.commands, None, one.refusal)
    needed = with_proved_plan(one.file, target)
    return Alternative(one.change, one.commands, needed, file_bytes=len(one.file.content))


def rewritten_files(file: ModelFile, target: Target) -> Iterator[Rewritten]:
    """The files that `reorder` and `pack` make of a file; they are the same for every ABI."""
    if target.runtime.sorts:
        return
    reorder = shlex.join(("modelplan", "reorder", file.path, "-o", _ORDERED + Path(file.path).suffix, *target.options))
    ordered = _in_best_order(file, target)
    if isinstance(ordered, str):
        yield Rewritten("best order", (reorder,), None, ordered)
    else:
        yield Rewritten("best order", (reorder,), ordered)
    if not target.runtime.offline_plans or file.graph.format != target.runtime.default_for:
        return
    shares = len(read_tflite(file.content, file.path).subgraphs) == 1
    for alias, change in (_PLANS if shares else _APART).items():
        yield _packed(file, target, alias, change, ())
    if isinstance(ordered, ModelFile) and ordered.content != file.content:
        yield _packed(ordered, target, "safe", f"best order, {_PLANS['safe']}", (reorder,))


def _packed(file: ModelFile, target: Target, alias: str, change: str, before: tuple[str, ...]) -> Rewritten:
    """The file with a plan under an alias mode; the commands in `before` write the file itself."""
    kernels = target.runtime.kernels
    words = ("modelplan", "pack", file.path, "-o", _PACKED, "--alias", alias, "--kernels", kernels)
    usual = kernels == target.runtime.libraries[0].name
    commands = (*before, shlex.join(words[:-2] if usual else words))
    try:
        packed, _ = packing.packed(read_tflite(file.content, file.path), file.graph, alias, kernels=kernels)
    except ModelError as problem:
        return Rewritten(change, commands, None, str(problem))
    return Rewritten(change, commands, replace(file, content=packed.data))


def _in_best_order(file: ModelFile, target: Target) -> ModelFile | str:
    """The file in the order that needs the least memory, or why it cannot be reordered."""
    options = Options(target.runtime.name, kernels=target.runtime.kernels)
    try:
        precedences = reordering.file_precedences(file.content, file.graph)
        plan = pipeline.plan(file.graph, replace(options, precedences=precedences))
        content = reordering.reordered(file.content, file.graph, plan.schedule.order)
    except RequestError as problem:
        return str(problem)
    ops = tuple(file.graph.ops[index] for index in plan.schedule.order)
    path = _ORDERED + Path(file.path).suffix
    return ModelFile(path, content, replace(file.graph, ops=ops))
