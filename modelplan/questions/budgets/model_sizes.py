"""What models need: each file is loaded once, and sized once for each runtime, ABI and kernel library."""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from modelplan.answers.analysis import Search
from modelplan.answers.check_outcomes import CheckSetting
from modelplan.answers.explanation import Suggestion
from modelplan.model import Alternative, Requirement
from modelplan.model.model_file import ModelFile, Target
from modelplan.primitives.errors import ModelPlanError
from modelplan.questions.alternatives import Rewritten, rewritten_files, sized, unmodified_requirement
from modelplan.questions.alternatives import load_file as read_model
from modelplan.questions.budgets.earlier_figures import Revision
from modelplan.questions.model_request import SessionAsked
from modelplan.questions.session_needs import sized_by_session

Answer = TypeVar("Answer")
#: A model file of a revision, or why there is none.
Before = ModelFile | str


@dataclass(slots=True)
class Measurements:
    """A cache of answers. Once alternatives have taken `seconds`, no more are planned (None: no limit)."""

    seconds: float | None = None
    spent: float = 0.0
    answers: dict[Hashable, Any] = field(default_factory=dict)

    def file(
        self, path: str, dims: tuple[str, ...] = (), shapes: tuple[str, ...] = (), values: tuple[str, ...] = ()
    ) -> ModelFile:
        """The model file `path`, with extents that it leaves open."""
        return self._memoised(("file", path, dims, shapes, values), lambda: read_model(path, dims, shapes, values))

    def earlier_file(self, revision: Revision, path: str, dims: tuple[str, ...], shapes: tuple[str, ...]) -> Before:
        """The model file as a revision has it, or why there is none that can be read."""
        key = ("earlier", revision.commit, path, dims, shapes)
        return self._memoised(key, lambda: _from_revision(revision, path, dims, shapes))

    def requirement(self, file: ModelFile, target: Target, asked: SessionAsked) -> Requirement:
        """What the runtime needs to run the unmodified file; of a session, by the settings that are asked for."""
        key = ("needed", *_key(file, target), target.abi, asked)
        return self._memoised(key, lambda: sized_by_session(file, target, unmodified_requirement(file, target), asked))

    def others(self, file: ModelFile, target: Target) -> tuple[Alternative, ...] | None:
        """What other forms of the file need; None where no time is left to make them."""
        key = ("rewritten", file.path, *_key(file, target))
        if key not in self.answers and self.seconds is not None and self.spent >= self.seconds:
            return None
        start = time.monotonic()
        files: tuple[Rewritten, ...] = self._memoised(key, lambda: tuple(rewritten_files(file, target)))
        sizes = ("others", file.path, *_key(file, target), target.abi)
        alternatives = self._memoised(sizes, lambda: tuple(sized(rewritten, target) for rewritten in files))
        self.spent += time.monotonic() - start
        return alternatives

    def ways(
        self, file: ModelFile, target: Target, needed: Requirement, budget: int | None
    ) -> tuple[tuple[Suggestion, ...], tuple[Search, ...]]:
        """The changes with which a file that runs fits the budget, the least first, and searches that take longer.

        None where no time is left.
        """
        whole = target.runtime.offline_plans and file.graph.format == target.runtime.default_for
        late = self.seconds is not None and self.spent >= self.seconds
        if budget is None or needed.fits(budget) or not whole or late:
            return (), ()
        from modelplan.questions.fitting_help import WaysOut, quick_ways_that_fit  # here, since most models fit

        start = time.monotonic()
        key = ("ways", file.path, *_key(file, target), target.abi, budget)
        out: WaysOut = self._memoised(key, lambda: quick_ways_that_fit(file, target, needed, budget))
        self.spent += time.monotonic() - start
        return out

    def causes(self, old: ModelFile, new: ModelFile, target: Target, asked: SessionAsked) -> tuple[str, ...]:
        """What made a model need more or less than an earlier form of it; nothing where it is the same file."""
        if old.graph.fingerprint == new.graph.fingerprint:
            return ()
        from modelplan.questions.differences.models import causes  # here, since without a baseline nothing is compared

        key = ("causes", old.graph.fingerprint, *_key(new, target), target.abi, asked)
        return self._memoised(key, lambda: causes(old, new, target, asked))

    def _memoised(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        if key not in self.answers:
            self.answers[key] = make()
        answer: Answer = self.answers[key]
        return answer


def _from_revision(revision: Revision, path: str, dims: tuple[str, ...], shapes: tuple[str, ...]) -> Before:
    content = revision.content(path)
    if isinstance(content, str):
        return content
    from tempfile import TemporaryDirectory  # with what it imports it takes as long as all of the command line

    name = f"{revision.name}:{path}"
    with TemporaryDirectory() as folder:
        draft = Path(folder) / Path(path).name
        draft.write_bytes(content)
        try:
            return replace(read_model(str(draft), dims, shapes), path=name)
        except ModelPlanError as problem:
            return str(problem).replace(str(draft), name)


def setting_of(target: Target, dims: tuple[str, ...], shapes: tuple[str, ...]) -> CheckSetting:
    """What a model is sized for, by the names in a baseline."""
    return CheckSetting(target.runtime.name, target.abi, target.runtime.kernels, dims, shapes)


def _key(file: ModelFile, target: Target) -> tuple[Hashable, ...]:
    """What decides the size of a file; the options of the target hold what binds its open extents."""
    return file.graph.fingerprint, target.runtime.name, target.runtime.kernels, target.options
