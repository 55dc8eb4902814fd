"""Networks that others published as plain C: which are accepted, and whether outputs are those of TFLM.

    python benchmarks/plain_c_networks.py [--found FOLDER] [--seconds S]

FOLDER has .tflite files of public repositories, each in a folder of its repository's name; the corpus and the project's
own models are added. A network has four operators or more; files with fewer stand in one line. Each is fitted for at
most so many seconds, compiled with sanitizers and run beside TFLM on random and on extreme inputs.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import reporting

from modelplan import FitCRequest, fit_c
from modelplan.checking.verifier.c_execution import execute_c
from modelplan.formats import load_model
from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.kernel_records import MissingKernelError
from modelplan.primitives.errors import ModelPlanError
from modelplan.runtimes.tflm.file import FileModel, load_tflite
from modelplan.runtimes.tflm.generated_inputs import generated_inputs
from modelplan.runtimes.tflm.planner import without_plan
from modelplan.runtimes.tflm.runner import tflm_values

#: Operators from which on a file counts as a network.
LEAST = 4
_COLUMNS = ("network", "from", "SHA-256", "type", "operators", "TFLM", "plain C", "outputs")
_HEAD = (
    "All files are named by their repository and path, files of equal content once. TFLM runs what its kernels take in",
    "the version of the extra `tflm`. What TFLM does not run counts for nothing.",
    "",
)

PARSER = reporting.command_line(__file__, __doc__, "plain_c_networks.md")
PARSER.add_argument("--found", type=Path, metavar="FOLDER", help="files of public repositories")
PARSER.add_argument("--seconds", type=float, metavar="S", default=6.0, help="of each search (default: 6)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file: whether TFLM runs it, why plain C refuses it if it does, and how outputs compare."""

    name: str
    origin: str
    digest: str
    dtype: str
    operators: int
    tflm: str
    refused: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    compared: str = ""

    @property
    def accepted(self) -> bool:
        """Whether plain C was written."""
        return not self.refused and not self.reason

    @property
    def equal(self) -> bool:
        """Whether it computes what TFLM computes."""
        return self.compared == "equal"

    def cells(self) -> Sequence[str]:
        """Its line."""
        why = "; ".join(sorted({kind for kind, _ in self.refused})) or self.reason
        plain = "accepted" if self.accepted else f"refused: {why}"
        tflm = "runs" if not self.tflm else f"refuses: {self.tflm}"
        return self.name, self.origin, self.digest, self.dtype, str(self.operators), tflm, plain, self.compared


def files(folders: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, Path]]:
    """Each file once, with where it is from."""
    seen = set[str]()
    for origin, folder in folders:
        for path in sorted(folder.rglob("*.tflite")):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if digest not in seen:
                seen.add(digest)
                yield origin or path.relative_to(folder).parts[0].replace("_", "/", 1), path


def type_of(model: FileModel) -> str:
    """The element type of what most operators compute."""
    main = model.subgraphs[0]
    types = Counter(DTYPES[main.tensors[t].type] for op in main.ops for t in op.writes)
    return types.most_common(1)[0][0] if types else "none"


def outcome(origin: str, path: Path, seconds: float) -> Outcome:
    """What becomes of a file."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    try:
        model = load_tflite(path)
    except ModelPlanError as problem:
        return Outcome(path.stem, origin, digest, "unread", 0, said(problem))
    about = path.stem, origin, digest, type_of(model), len(model.subgraphs[0].ops)
    tflm = ""
    try:
        tflm_values(without_plan(model.data), [generated_inputs(model, 0, 0)])
    except ModelPlanError as problem:
        tflm = said(problem)
    try:
        CModel(load_model(str(path)), model)
    except MissingKernelError as problem:
        return Outcome(*about, tflm, tuple((kind, why) for kind, why, _ in problem.missing))
    except ModelPlanError as problem:
        return Outcome(*about, tflm, reason=said(problem))
    try:
        return Outcome(*about, tflm, compared=compared(model, path, seconds) if not tflm else "")
    except ModelPlanError as problem:
        return Outcome(*about, tflm, reason=said(problem))


def compared(model: FileModel, path: Path, seconds: float) -> str:
    """How the outputs of plain C compare with those of TFLM."""
    ladder = fit_c(FitCRequest(str(path), seconds=seconds))
    if ladder.chosen is None:
        raise TypeError("a ladder without a budget chose nothing")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "net.c"
        source.write_text(ladder.chosen.files.source)
        source.with_suffix(".h").write_text(ladder.chosen.files.header)
        try:
            execute_c(model, source)
        except ModelPlanError as problem:
            return f"DIFFER: {said(problem)}"
    return "equal"


def said(problem: ModelPlanError) -> str:
    """The end of what an error says, short enough for a table."""
    return str(problem).splitlines()[0].rpartition("tflite: ")[2].replace("|", "/")[-90:]


def share(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """How many of some networks, all of which TFLM runs, are accepted, and equal."""
    accepted, equal = sum(o.accepted for o in outcomes), sum(o.equal for o in outcomes)
    part = f"{accepted / len(outcomes):.1%}" if outcomes else ""
    return name, str(len(outcomes)), str(accepted), part, str(equal)


def reasons(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, ...]]:
    """Which operators are refused, of networks that TFLM runs and others, and why; the most frequent first."""
    run, others = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for o in outcomes:
        (others if o.tflm else run).update({(kind, re.sub(r" '[^']*'", "", why)) for kind, why in o.refused})
    for key in sorted(run | others, key=lambda key: (-run[key], -others[key], key)):
        yield *key, str(run[key]), str(others[key])


def page(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The lines of the page."""
    networks = [o for o in outcomes if o.operators >= LEAST]
    small = [o for o in outcomes if 0 < o.operators < LEAST]
    run, types = [o for o in networks if not o.tflm], ("int8", "float32", "int16")
    yield from _HEAD
    rows = [share(f"of {dtype}", [o for o in run if o.dtype == dtype]) for dtype in types]
    rows += [share("of other types", [o for o in run if o.dtype not in types]), share("all that TFLM runs", run)]
    rows.append(share(f"files with fewer than {LEAST} operators", [o for o in small if not o.tflm]))
    yield from reporting.table(("networks", "that TFLM runs", "accepted", "", "equal"), rows)
    yield from ("", "## What is refused", "")
    yield from reporting.table(("operator", "why", "networks that TFLM runs", "others"), reasons(networks), "<<>>")
    yield from ("", "## Networks", "")
    yield from reporting.table(_COLUMNS, [o.cells() for o in networks], "<<<<><<<")
    bad = [o for o in small if not o.tflm and not o.equal]
    yield from ("", f"## Files with fewer than {LEAST} operators that are refused or differ", "")
    yield from reporting.table(_COLUMNS, [o.cells() for o in bad], "<<<<><<<") if bad else ["None."]


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    folders = [("corpus", arguments.corpus), ("models/", reporting.ROOT / "models")]
    folders = [*([("", arguments.found)] if arguments.found else []), *folders]
    outcomes = []
    for origin, path in files(folders):
        reporting.progress(f"{origin} {path.stem}")
        outcomes.append(outcome(origin, path, arguments.seconds))
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "Networks as plain C", page(outcomes))


if __name__ == "__main__":
    main()
