"""Says whether models fit a budget on their runtime as they stand: exit 0 when all do, 1 when one does not.

For TensorFlow Lite Micro the whole arena counts: with exactly the budget the model allocates and runs there, or it does
not. A model that its runtime would refuse fits no budget. Beside a model that does not fit stands what `reorder` and
`pack` would make of it.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from modelplan.cli import files, model_options, terminal
from modelplan.errors import RequestError
from modelplan.outputs.arena_report import lower_alternatives
from modelplan.outputs.report import Section
from modelplan.outputs.units import human, parse_bytes
from modelplan.rewriting.alternatives import alternatives, as_it_stands, load_file
from modelplan.types import Alternative, Requirement

if TYPE_CHECKING:
    from modelplan.targets.choosing import Chosen


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a model needs as it stands, the bytes there are, and what other forms of a model that does not fit need."""

    model: str
    budget: int
    needed: Requirement
    others: tuple[Alternative, ...]

    @property
    def fits(self) -> bool:
        """Whether the model runs in the budget as it stands."""
        return self.needed.fits(self.budget)

    @property
    def remedies(self) -> list[Alternative]:
        """The alternatives that fit."""
        return [a for a in self.others if a.requirement is not None and a.requirement.fits(self.budget)]


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("models", metavar="MODEL", nargs="+", help="a .tflite or .onnx file")
    parser.add_argument(
        "--budget", metavar="BYTES", help="such as 64KiB or 1MiB (default: the largest block of the target)"
    )
    model_options.add_runtime(parser)
    model_options.add_abi(parser, default=None)
    model_options.add_target(parser)
    parser.add_argument("--json", metavar="FILE", help="the verdicts as JSON; - for standard output")


def run(arguments: Namespace) -> int:
    """Runs the command."""
    files.check_outputs([arguments.json], arguments.models)
    chosen = model_options.chosen_target(arguments)
    budget = budget_of(arguments.budget, chosen)
    arguments = model_options.on_target(arguments, chosen)
    found: list[Verdict] = []
    if chosen and arguments.json != "-":
        terminal.show([Section("", tuple(available(arguments.budget, chosen)))])

    def judge(path: str) -> int:
        found.append(judged(arguments, path, budget, chosen))
        if arguments.json != "-":
            terminal.show([section(found[-1])])
        return 0 if found[-1].fits else 1

    code = terminal.each(arguments.models, judge)
    if arguments.json:
        document = {
            "budget": budget,
            **model_options.target_facts(chosen),
            "models": [as_json(verdict) for verdict in found],
        }
        files.write(arguments.json, json.dumps(document, indent=1) + "\n")
    return code


def budget_of(text: str | None, chosen: Chosen | None) -> int:
    """The bytes that --budget states, else those of the target's block.

    Raises:
        RequestError: neither is given.
    """
    if text is not None:
        return parse_bytes(text)
    if chosen is None:
        raise RequestError("--budget BYTES or --target NAME has to say how much memory there is")
    return chosen.budget


def available(text: str | None, chosen: Chosen) -> list[str]:
    """Which block of the target counts, and that a budget in bytes is taken in its place."""
    instead = [f"budget    {human(parse_bytes(text))} as --budget says, in place of the block"] if text else []
    return [*model_options.target_lines(chosen), *instead]


def judged(arguments: Namespace, path: str, budget: int, chosen: Chosen | None = None) -> Verdict:
    """The verdict on one model; alternatives are planned where it does not fit although its runtime would run it."""
    file = load_file(path, arguments.dim, arguments.shape)
    target = model_options.target_of(model_options.on_target(arguments, chosen, file.graph), file.graph)
    needed = as_it_stands(file, target)
    short = not needed.refusals and needed.arena > budget
    return Verdict(path, budget, needed, tuple(alternatives(file, target)) if short else ())


def section(verdict: Verdict) -> Section:
    """Required, available and excess bytes, and what would fit."""
    needed, budget = verdict.needed, verdict.budget
    if needed.refusals:
        return Section(f"{verdict.model}: does not run, and so does not fit", (*needed.refusals, needed.basis))
    spare = budget - needed.arena
    lines = [f"required  {human(needed.arena)}: {needed.basis}", f"available {human(budget)}"]
    if verdict.fits:
        return Section(f"{verdict.model}: fits", (*lines, f"spare     {human(spare)}"))
    lines += [f"excess    {human(-spare)}", *_outlook(verdict)]
    commands = [f"fits after: {' && '.join(a.commands)}" for a in verdict.remedies[:1]]
    return Section(f"{verdict.model}: does not fit", tuple(lines), commands=tuple(commands))


def _outlook(verdict: Verdict) -> list[str]:
    """What would fit, the least change first, or how far the best is from fitting."""
    if verdict.remedies:
        first = verdict.remedies[0]
        assert first.requirement is not None
        return [f"{first.change}: {human(first.requirement.arena)}"]
    lower = lower_alternatives(verdict.needed, verdict.others)
    if not lower or lower[-1].requirement is None:
        return ["no other order and no plan of this file needs less"] if verdict.others else []
    best = lower[-1].requirement.arena
    return [f"{lower[-1].change}: {human(best)}, still {human(best - verdict.budget)} too much; nothing tried fits"]


def as_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as an object."""
    return {
        "model": verdict.model,
        "fits": verdict.fits,
        "required": None if verdict.needed.refusals else verdict.needed.arena,
        "excess": None if verdict.needed.refusals else verdict.needed.arena - verdict.budget,
        "refusals": verdict.needed.refusals,
        "basis": verdict.needed.basis,
        "parts": [asdict(part) for part in verdict.needed.parts],
        "alternatives": [_alternative(one, verdict.budget) for one in verdict.others],
    }


def _alternative(one: Alternative, budget: int) -> dict[str, Any]:
    needed = one.requirement
    figures = {"required": needed.arena, "head": needed.head, "fits": needed.fits(budget)} if needed else {}
    commands: Sequence[str] = one.commands
    return {"change": one.change, "commands": commands, "refusal": one.refusal, **figures}
