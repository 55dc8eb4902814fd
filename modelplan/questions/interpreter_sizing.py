"""What an interpreter of LiteRT takes for a model: measured where LiteRT is installed, else its planned arena alone."""

from __future__ import annotations

from dataclasses import replace

from modelplan.model import Part, Requirement
from modelplan.model.model_file import ModelFile
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.units import human
from modelplan.questions.model_request import SessionAsked
from modelplan.runtimes.litert.measuring import KERNELS, litert_version, measure_interpreters

_ALONE = "the arena of LiteRT's reference kernels alone, by its own plan"


def interpreter_requirement(file: ModelFile, planned: Requirement, asked: SessionAsked) -> Requirement:
    """The requirement of an interpreter with default kernels; `planned` has the arena of LiteRT's reference kernels.

    Where it is not measured, `planned` says so and counts that arena.
    """
    graph = file.graph
    try:
        if not asked.seconds:
            raise RequestError("--measure 0 asks for the plan")
        shapes = [graph.tensors[t].shape for t in graph.inputs]
        needs = measure_interpreters(file.content, shapes, asked.threads, asked.seconds)
    except (ModelError, RequestError) as problem:
        return replace(planned, basis=f"{_ALONE} ({problem})")
    usual, *others = needs
    parts = (
        Part("arena, packed weights and what kernels work with", usual.aligned, trust="measured"),
        Part("the interpreter's own bookkeeping", usual.heap - usual.aligned, trust="measured"),
    )
    remarks = (
        *(f"{human(need.heap)} with {KERNELS[need.kernels]} (OpResolverType.{need.kernels})" for need in others),
        f"{human(planned.arena)}: {_ALONE}",
        *planned.remarks,
    )
    basis = (
        f"measured: ai-edge-litert {litert_version()}, {KERNELS[usual.kernels]}, heap from AllocateTensors to the"
        " second run, without the model"
    )
    return replace(planned, arena=usual.heap, parts=parts, basis=basis, remarks=remarks, measured=True)
