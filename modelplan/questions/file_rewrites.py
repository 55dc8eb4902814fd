"""`reorder` and `pack`: model files with another order of their operators, or with a plan that TFLM follows."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from modelplan.answers.file_changes import ReorderedFile
from modelplan.checking.verifier.sources import kernels_of_plan
from modelplan.formats import load_model
from modelplan.formats.unpacking import inner_suffix
from modelplan.model import Requirement
from modelplan.model.model_file import USUAL_ABI, ModelFile, Target
from modelplan.planning import pipeline
from modelplan.primitives.errors import RefusedModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import SettledRequest, answers_paths
from modelplan.primitives.showing_answers import Shown
from modelplan.questions.alternatives import load_file, open_on_target, unmodified_requirement, with_proved_plan
from modelplan.questions.model_request import ModelRequest, planning_options, with_deciding_kernels
from modelplan.rewriting import packing, reordering
from modelplan.rewriting.packing import Packing
from modelplan.runtimes import with_kernels
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels.own_kernels import with_library


@answers_paths(ModelRequest)
def reorder(request: ModelRequest) -> ReorderedFile:
    """A model file with its operators in the order that needs the least memory, and no other byte moved.

    Args:
        request: the file, and how it is planned.

    Returns:
        The content of the new file, which was read back, with the plans of both orders.

    Raises:
        ModelError: the file cannot be read.
        RequestError: the file cannot be reordered, or the request names what there is not.
    """
    request, file, target = open_on_target(request)
    needed = with_proved_plan(file, target)
    options = planning_options(with_deciding_kernels(request, needed), file.graph)
    options = replace(options, precedences=reordering.file_precedences(file.content, file.graph))
    before = pipeline.plan(file.graph, replace(options, schedule="file"))
    after = pipeline.plan(file.graph, options)
    content = reordering.reordered(file.content, file.graph, after.schedule.order)
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / f"reordered{inner_suffix(file.path)}"
        draft.write_bytes(content)
        again = load_model(str(draft), request.dims, request.shapes, request.values)
        reordering.check_same(file.graph, again, after.schedule.order)
    needed_after = with_proved_plan(ModelFile(file.path, content, again), target)
    return ReorderedFile(content, before, after, needed, needed_after)


@dataclass(frozen=True, slots=True)
class PackRequest(SettledRequest):
    """Asks for a plan in a .tflite file that TFLM follows.

    Args:
        path: the file.
        alias: what shares bytes: none, views or safe.
        kernels: the kernel library; None: that of the plan in the file, else all.
        abi: for which ABI the arena is sized.
        allocator: a row of `modelplan allocators`; None: modelplan.
    """

    path: str
    alias: str = "views"
    kernels: str | None = None
    abi: str = USUAL_ABI
    allocator: str | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PackedFile(Shown):
    """A file with its plan: `model` is the file as it was, `packed` with the plan, which is proved.

    `before` and `after` are what the two need, `kernels` those that the plan is for.
    """

    kernels: str
    model: FileModel
    packed: FileModel
    plan: Packing
    before: Requirement
    after: Requirement

    @property
    def gains(self) -> bool:
        """Whether the plan lowers what the file needs, with one of several libraries and more with none."""
        pairs = [
            (now.arena - then.arena, now.head - then.head)
            for then, now in zip(self.before.libraries, self.after.libraries, strict=True)
        ] or [(self.after.arena - self.before.arena, self.after.head - self.before.head)]
        several = len(pairs) > 1
        worse = several and any(difference > 0 for pair in pairs for difference in pair)
        return not worse and any(difference < 0 for pair in pairs for difference in pair)


@answers_paths(PackRequest)
def pack(request: PackRequest) -> PackedFile:
    """A .tflite file with the lowest plan that was found, as metadata that TFLM follows.

    Args:
        request: the file, what may share bytes, and what the plan is sized for.

    Returns:
        The file without and with the plan, and what both need.

    Raises:
        ModelError: the file cannot be read, or TFLM would not run it.
        RequestError: no plan can be written into it.
        BrokenPlanError: a stage went wrong; never to be seen.
    """
    file = load_file(request.path)
    model = read_tflite(file.content, file.path)
    kernels = with_library(request.kernels, kernels_of_plan(model))
    target = Target(with_kernels(TFLM, kernels), request.abi)
    before = unmodified_requirement(file, target)
    if before.refusals:
        raise RefusedModelError(
            f"{file.path}: {target.runtime.name} would not run it", before.refusals, before.remedies
        )
    packed, plan = packing.packed(model, file.graph, request.alias, request.allocator, kernels, request.abi)
    after = with_proved_plan(ModelFile(file.path, packed.data, file.graph), target)
    return PackedFile(kernels, model, packed, plan, before, after)
