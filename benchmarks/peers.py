"""modelplan beside omnimalloc, MiniMalloc's program, Vela, mcufit and TiGrIS, on the same problems and models.

    python -m venv peers && peers/bin/pip install omnimalloc ethos-u-vela mcufit tigris-ml
    python benchmarks/peers.py --python peers/bin/python [--minimalloc PATH] [--seconds 20] [--most 3000]

--python is the Python that has the peers, so that their dependencies do not meet those of modelplan; a peer that it
lacks is named as not available. --minimalloc is the program built from google/minimalloc with its CMakeLists.txt, with
Abseil in external/; MiniMalloc's set A to K has up to 454 buffers, so --most 500 has all of it. Every placement is
checked by the referee. Seconds are processor time, without starting a process where a system is asked through its
Python.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import reporting
from minimalloc_original import ask_original

from modelplan import Budget, ModelPlanError, Options, Placement, Problem, check, height, load_bound, place
from modelplan.model.model_file import Target
from modelplan.planning.pipeline import configured_runtime, plan
from modelplan.primitives.version import __version__
from modelplan.questions.alternatives import load_file, unmodified_requirement
from modelplan.questions.model_fitting import FitRequest, fit
from modelplan.runtimes.tflm.runner import RefusalError, installed, run_tflm, tflm_version

#: A peer's package, what imports it, and what it is asked.
PACKAGES = {
    "omnimalloc": ("omnimalloc", "allocators `omni` (its default) and `supermalloc`, on the problems"),
    "ethos-u-vela": ("ethosu.vela", "its hill-climb allocator, on the problems; its compiler, on the models"),
    "mcufit": ("mcufit", "`mcufit check --json`, on the models"),
    "tigris-ml": ("tigris", "`tigris analyze --json`, on the models"),
}
ALLOCATORS = {"omnimalloc": ("omnimalloc:omni", "omnimalloc:supermalloc"), "ethos-u-vela": ("vela:hillclimb",)}
BOARD = "nano33ble"
ACCELERATOR = "ethos-u55-128"
#: A peer is ended after so many times the limit of our search.
_PATIENCE = 2


@dataclass(frozen=True)
class Answer:
    """A peer's figure in bytes, or why there is none; processor seconds; bytes of a slower memory beside it."""

    bytes: int | None
    seconds: float
    refusal: str = ""
    note: str = ""
    beside: int = 0


@dataclass(frozen=True)
class Peers:
    """Where the peers are, and the version of each that is there."""

    python: Path
    minimalloc: Path | None
    versions: dict[str, str]
    limit: int

    def run(self, words: Sequence[str], given: str = "") -> tuple[subprocess.CompletedProcess[str] | None, float]:
        """A command, None where it took longer than allowed, and the processor seconds of its process."""
        limited = ["prlimit", f"--cpu={self.most_seconds}", *words]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(limited, input=given, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return (None if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL) else done), spent

    @property
    def most_seconds(self) -> int:
        """Processor seconds after which a peer is ended."""
        return _PATIENCE * self.limit


def versions(python: Path) -> dict[str, str]:
    """The version of each peer that a Python has."""
    code = (
        "import importlib, importlib.metadata as m, json, sys\nfound = {}\n"
        "for name, module in json.loads(sys.argv[1]).items():\n"
        "    try:\n        importlib.import_module(module); found[name] = m.version(name)\n"
        "    except ImportError: pass\nprint(json.dumps(found))"
    )
    words = [str(python), "-P", "-c", code, json.dumps({name: module for name, (module, _) in PACKAGES.items()})]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


#: A problem's name, the problem, the answer of each system.
Asked = tuple[str, Problem, dict[str, Answer]]

# Problems ------------------------------------------------------------------------------------------------------------


def own_answer(problem: Problem, seconds: float) -> Answer:
    begin = time.process_time()
    found = place(problem, "modelplan", Budget(seconds=seconds))
    return Answer(height(problem, found), time.process_time() - begin, note=found.ended)


def allocator_answer(peers: Peers, name: str, problem: Problem) -> Answer:
    rows = np.stack([problem.size, problem.start, problem.end], axis=1).tolist()
    script = str(Path(__file__).with_name("peer_process.py"))
    done, spent = peers.run([str(peers.python), "-P", script, name], json.dumps(rows))
    if done is None:
        return Answer(None, spent, f"no answer after {peers.most_seconds} s of processor time")
    if done.returncode:
        return Answer(None, spent, last_line(done.stderr) or f"exit code {done.returncode}")
    answer = json.loads(done.stdout.splitlines()[-1])
    placement = Placement(np.array(answer["offsets"], dtype=np.int64))
    try:
        check(problem, placement)
    except ModelPlanError as broken:
        return Answer(None, answer["seconds"], f"a wrong placement: {broken}")
    return Answer(height(problem, placement), answer["seconds"])


def minimalloc_answer(peers: Peers, corpus: Path, name: str, problem: Problem) -> Answer:
    """Whether it fits in the load bound, which is what the program can be asked."""
    assert peers.minimalloc is not None
    path, bound = corpus / "problems" / f"{name}.csv", load_bound(problem)
    found = ask_original(peers.minimalloc, path, problem, bound, peers.limit)
    refusal = {"open": "no answer in time", "never": "it says that the load bound cannot be met"}.get(found.verdict, "")
    return Answer(bound if found.verdict == "fits" else None, found.seconds, refusal)


def asked(peers: Peers) -> list[str]:
    """The names of the allocators that are there, ours first."""
    names = ["modelplan", *(one for name in peers.versions for one in ALLOCATORS.get(name, ()))]
    return [*names, "minimalloc"] if peers.minimalloc else names


def problem_rows(peers: Peers, corpus: Path, most: int) -> Iterator[Asked]:
    for name, given in sorted(reporting.problems(corpus), key=lambda pair: len(pair[1])):
        problem = replace(given, capacity=None)
        if len(problem) > most:
            continue
        answers = {}
        for system in asked(peers):
            if system == "modelplan":
                answers[system] = own_answer(problem, peers.limit)
            elif system == "minimalloc":
                answers[system] = minimalloc_answer(peers, corpus, name, problem)
            else:
                answers[system] = allocator_answer(peers, system, problem)
        reporting.progress(f"{name}: {', '.join(f'{k} {v.bytes}' for k, v in answers.items())}")
        yield name, problem, answers


# Models --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figures:
    """What is said of one model; `measured` is the head that TFLM itself reports."""

    name: str
    measured: Answer
    head: Answer
    arena: int | None
    views: Answer
    safe: Answer
    fit: Answer
    mcufit: Answer
    mcufit_arena: Answer
    tigris: Answer
    tigris_tiled: Answer
    vela: Answer


_ABSENT = Answer(None, 0.0, "not available")


def timed(make: Callable[[], int]) -> Answer:
    begin = processor_seconds()
    try:
        return Answer(make(), processor_seconds() - begin)
    except ModelPlanError as problem:
        return Answer(None, processor_seconds() - begin, str(problem))


def processor_seconds() -> float:
    """Processor seconds of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])


def measured_head(path: Path) -> Answer:
    if not installed():
        return Answer(None, 0.0, "tflite-micro is not installed")
    try:
        return Answer(run_tflm(path.read_bytes(), rounds=1).head, 0.0)
    except RefusalError as problem:
        return Answer(None, 0.0, str(problem))


def figures(peers: Peers, name: str, path: Path) -> Figures:
    arenas: list[int | None] = [None]

    def stands() -> int:
        file = load_file(str(path))
        needed = unmodified_requirement(file, Target(configured_runtime(file.graph, Options()), "32"))
        arenas.append(needed.arena)
        return needed.head

    def planned(alias: str) -> Callable[[], int]:
        def make() -> int:
            made = plan(load_file(str(path)).graph, Options(alias=alias))
            return height(made.problem, made.placement)

        return make

    def of(package: str, ask: Callable[[Peers, Path], tuple[Answer, Answer]]) -> tuple[Answer, Answer]:
        return ask(peers, path) if package in peers.versions else (_ABSENT, _ABSENT)

    head = timed(stands)
    views, safe = timed(planned("views")), timed(planned("safe"))
    fits, tiles, npu = of("mcufit", mcufit), of("tigris-ml", tigris), of("ethos-u-vela", vela)
    striped = timed(partial(striped_head, path))
    return Figures(name, measured_head(path), head, arenas[-1], views, safe, striped, *fits, *tiles, npu[0])


def striped_head(path: Path) -> int:
    """The least head of a file that computes in stripes; TFLM ran it with the outputs of the model."""
    ladder = fit(FitRequest(path, kernels="reference", objective="head"))
    before, least = ladder.rungs[0], ladder.chosen or ladder.rungs[0]
    if installed() and run_tflm(least.model).outputs != run_tflm(before.model).outputs:
        raise SystemExit(f"{path}: the outputs of the file that fit wrote differ")
    return least.head


def command(peers: Peers, name: str) -> str:
    return str(peers.python.parent / name)


def mcufit(peers: Peers, path: Path) -> tuple[Answer, Answer]:
    """Its activations and its arena."""
    done, spent = peers.run([command(peers, "mcufit"), "check", str(path), "-b", BOARD, "--json"])
    if done is None or done.returncode not in (0, 1) or not done.stdout.strip().startswith("{"):
        why = "no answer in time" if done is None else last_line(done.stderr + done.stdout)
        return Answer(None, spent, why), Answer(None, spent, why)
    found = json.loads(done.stdout)["estimate"]
    note = found["method"]
    return (
        Answer(found["peak_activation_bytes"], spent, note=note),
        Answer(found["total_arena_bytes"], spent, note=note),
    )


def tigris(peers: Peers, path: Path) -> tuple[Answer, Answer]:
    """Its figure for TFLM's arena, and the least fast memory that it tries with success, slow memory beside it."""
    done, spent = peers.run([command(peers, "tigris"), "analyze", str(path), "--json", "-m", "32K"])
    if done is None or not done.stdout.strip().startswith("{"):
        why = "no answer in time" if done is None else last_line(done.stderr + done.stdout)
        return Answer(None, spent, why), Answer(None, spent, why)
    found: dict[str, Any] = json.loads(done.stdout)
    refused = found["model"]["unsupported_operators"] or found["model"]["dtype_errors"]
    why = f"its runtime: {json.dumps(refused)[:120]}" if refused else ""
    arena = (found.get("tflite_micro") or {}).get("tensor_arena_bytes")
    tried = [one["budget_bytes"] for one in found.get("budgets_tried") or [] if one["fits"]]
    slow = found["slow"]["peak_bytes"]
    tiled = Answer(min(tried), spent, beside=slow) if tried and not refused else Answer(None, spent, why or "none")
    return Answer(arena, spent, "" if arena is not None else why or "no figure"), tiled


def vela(peers: Peers, path: Path) -> tuple[Answer, Answer]:
    """The SRAM of the network compiled for an Ethos-U55, operators left to the processor as a note."""
    with tempfile.TemporaryDirectory() as folder:
        words = [command(peers, "vela"), str(path), "--accelerator-config", ACCELERATOR, "--output-dir", folder]
        done, spent = peers.run(words)
        tables = list(Path(folder).glob("*_summary_*.csv"))
        if done is None or done.returncode or not tables:
            why = "no answer in time" if done is None else last_line(done.stderr + done.stdout)
            return Answer(None, spent, why), _ABSENT
        heads, values = (line.split(",") for line in tables[0].read_text().splitlines()[:2])
    facts = dict(zip(heads, values, strict=False))
    on_cpu = next((line for line in done.stdout.splitlines() if line.startswith("CPU operators")), "")
    return Answer(round(float(facts["sram_memory_used"]) * 1024), spent, note=on_cpu), _ABSENT


def last_line(text: str) -> str:
    lines = [line.strip(" │╭╮╰╯─") for line in text.splitlines()]
    return next((line[:160] for line in reversed(lines) if line), "no message")


# The page ------------------------------------------------------------------------------------------------------------


def page(peers: Peers, problems: Sequence[Asked], models: Sequence[Figures]) -> Iterator[str]:
    yield "What is compared, with which version, and what it was asked. Everything ran in one go on one machine."
    yield ""
    yield from reporting.table(("system", "version", "asked"), system_rows(peers), "<<<")
    yield ""
    yield from problem_page(peers, problems)
    yield from model_page(models)


def system_rows(peers: Peers) -> Iterator[Sequence[str]]:
    yield "modelplan", __version__, f"allocator `modelplan`, {peers.limit} s a problem; plans of the models"
    for name, (_, what) in PACKAGES.items():
        absent = f"**not available here**: `pip install {name}`, `--python PATH`"
        yield name, peers.versions.get(name, absent), what
    absent = "**not available here**: build google/minimalloc, `--minimalloc PATH`"
    path = absent
    if peers.minimalloc:
        path = f"the program given, SHA-256 {hashlib.sha256(peers.minimalloc.read_bytes()).hexdigest()[:12]}"
    yield "google/minimalloc", path, f"does it fit in the load bound, {peers.limit} s"
    yield "tflite-micro", tflm_version(), "the head of its arena, run on this machine"


def problem_page(peers: Peers, rows: Sequence[Asked]) -> Iterator[str]:
    names = asked(peers)
    yield "## Problems"
    yield ""
    yield "Height over the load bound, which not every problem allows, and processor seconds. modelplan stops at a"
    yield f"proof or after {peers.limit} s by the clock; the others end by their own rules, and are ended after"
    yield f"{peers.most_seconds} s of processor time. Processor seconds count all threads."
    yield ""
    headings = ("problem", "buffers", *(word for name in names for word in (name, "s")))
    cells = (
        (name, f"{len(problem):,}", *(word for system in names for word in told(answers[system], load_bound(problem))))
        for name, problem, answers in rows
    )
    yield from reporting.table(headings, cells)
    yield ""
    summed = []
    for system in names:
        placed = [(a[system].bytes or 0) / max(load_bound(p), 1) for _, p, a in rows if a[system].bytes is not None]
        mean = f"{sum(placed) / len(placed):.4f}" if placed else ""
        seconds = sum(a[system].seconds for _, _, a in rows)
        summed.append((system, len(placed), mean, f"{max(placed, default=0):.4f}", f"{seconds:.1f}"))
    yield from reporting.table(("system", "placed", "mean height/load", "worst", "s in all"), summed)
    yield ""
    yield from where_others_win(names[1:], rows)
    yield from refusals("problems", [(system, name, a[system]) for name, _, a in rows for system in names])


def told(answer: Answer, bound: int) -> tuple[str, str]:
    shown = "refused" if answer.bytes is None else f"{answer.bytes / max(bound, 1):.4f}"
    return shown, f"{answer.seconds:.2f}"


def where_others_win(names: Sequence[str], rows: Sequence[Asked]) -> Iterator[str]:
    yield "Where others win:"
    yield ""
    for system in names:
        pairs = [(name, a[system], a["modelplan"]) for name, _, a in rows if a[system].bytes is not None]
        lower = [name for name, other, own in pairs if (other.bytes or 0) < (own.bytes or 0)]
        faster = [name for name, other, own in pairs if other.bytes == own.bytes and other.seconds < own.seconds / 2]
        higher = sum((other.bytes or 0) > (own.bytes or 0) for _, other, own in pairs)
        yield f"* {system}: lower on {len(lower)}{listed(lower)}; as low in less than half of the time on"
        yield f"  {len(faster)}{listed(faster)}; higher on {higher} of {len(pairs)}."
    yield ""


def listed(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def refusals(what: str, answers: Sequence[tuple[str, str, Answer]]) -> Iterator[str]:
    """What each system gave no answer to, and why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for system, name, answer in answers:
        if answer.bytes is None and answer is not _ABSENT:
            reasons.setdefault((system, answer.refusal), []).append(name)
    yield f"Refused or without an answer, {what}:"
    yield ""
    yield from (f"* {system}: {why} ({', '.join(names)})" for (system, why), names in reasons.items())
    if not reasons:
        yield "* nothing"
    yield ""


def model_page(models: Sequence[Figures]) -> Iterator[str]:
    yield "## Models"
    yield ""
    yield "Bytes. `TFLM` is the head that tflite-micro reports when it runs the file; `head` what modelplan predicts"
    yield "for the file as it stands, `mcufit` and `TiGrIS` what they say of the same (TiGrIS without scratch)."
    yield "`views` and `safe` are plans that modelplan can write into the file, `fit` the least head of a file that"
    yield "it rewrites in stripes, run by TFLM with the model's outputs. The arenas are not one quantity:"
    yield f"modelplan's is sized for 32-bit targets, mcufit's for {BOARD}. `TiGrIS tiled` is another runtime: the least"
    yield "fast memory of those that it tries, and the slow memory beside it. `Vela` is another machine: the SRAM of"
    yield f"the network compiled for {ACCELERATOR}, weights in flash; 0 where it leaves all operators to the processor."
    yield "mcufit, TiGrIS and Vela are asked as commands: their seconds hold the start of a process, ours do not."
    yield ""
    headings = (
        "model",
        "TFLM",
        "head",
        "mcufit",
        "TiGrIS",
        "views",
        "safe",
        "fit",
        "arena",
        "mcufit arena",
        "TiGrIS tiled",
        "Vela",
    )
    cells = (
        (m.name, *map(shown, (m.measured, m.head, m.mcufit, m.tigris, m.views, m.safe, m.fit)),
         f"{m.arena:,}" if m.arena else "", shown(m.mcufit_arena), shown(m.tigris_tiled), shown(m.vela))
        for m in models
    )  # fmt: skip
    yield from reporting.table(headings, cells)
    yield ""
    known = [m for m in models if m.measured.bytes is not None]
    yield from reporting.table(
        ("head of", "answers", "the same as TFLM", "below TFLM", "above TFLM", "s in all"), right_rows(known)
    )
    yield ""
    yield "Where others win:"
    yield ""
    tiled = [(m, m.tigris_tiled.bytes, m.fit.bytes) for m in models if m.tigris_tiled.bytes and m.fit.bytes]
    less = [m.name for m, fast, own in tiled if fast < own]
    yield f"* TiGrIS needs less fast memory than `fit` on {len(less)} of {len(tiled)}{listed(less)}, with slow memory"
    less = [m.name for m, fast, own in tiled if fast + m.tigris_tiled.beside < own]
    yield f"  beside it and a runtime of its own; both memories together are less on {len(less)}{listed(less)}."
    less = [m.name for m in models if None not in (m.vela.bytes, m.fit.bytes) and m.vela.bytes < m.fit.bytes]  # type: ignore[operator]
    yield f"* Vela's SRAM is below `fit` on {len(less)}{listed(less)}."
    yield f"* `fit` took {sum(m.fit.seconds for m in models):.1f} s for all models; no peer writes such files for TFLM."
    yield ""
    columns = ("measured", "head", "views", "safe", "fit", "mcufit", "tigris", "tigris_tiled", "vela")
    names = {"measured": "TFLM", "head": "modelplan", "tigris_tiled": "tigris tiled"}
    rows = [(names.get(c, c), m.name, getattr(m, c)) for c in columns for m in models]
    yield from refusals("models", rows)


def right_rows(models: Sequence[Figures]) -> Iterator[Sequence[object]]:
    """How often each prediction of the head is what TFLM reports."""
    for name in ("head", "mcufit", "tigris"):
        pairs = [(getattr(m, name).bytes, m.measured.bytes) for m in models if getattr(m, name).bytes is not None]
        seconds = sum(getattr(m, name).seconds for m in models)
        same = sum(said == true for said, true in pairs)
        below = sum(said < true for said, true in pairs)
        system = "modelplan" if name == "head" else name
        yield system, len(pairs), same, below, len(pairs) - same - below, f"{seconds:.1f}"


def shown(answer: Answer) -> str:
    if answer.bytes is None:
        return "n/a" if answer is _ABSENT else "refused"
    return f"{answer.bytes:,}" + (f" + {answer.beside:,}" if answer.beside else "")


PARSER = reporting.command_line(__file__, __doc__, "peers.md")
PARSER.add_argument(
    "--python", type=Path, metavar="PATH", default=Path(sys.executable), help="the Python with the peers"
)
PARSER.add_argument("--minimalloc", type=Path, metavar="PATH", help="the program of google/minimalloc")
PARSER.add_argument("--seconds", type=int, default=20, metavar="S", help="of our search for one problem")
PARSER.add_argument("--most", type=int, default=3000, metavar="BUFFERS", help="the most buffers of a problem")
PARSER.add_argument("--only", default="", metavar="PART", help="a part of the name of the models")


def main() -> None:
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments)
    for path in filter(None, (arguments.python, arguments.minimalloc)):
        if not path.is_file():
            PARSER.error(f"{path}: no such file")
    python = Path(arguments.python).absolute()
    peers = Peers(python, arguments.minimalloc, versions(python), arguments.seconds)
    chosen = [(name, path) for name, path in reporting.tflite_files(arguments.corpus) if arguments.only in name]
    problems: list[Asked] = []
    models: list[Figures] = []

    def save(left: str) -> None:
        """The page after every step: a run that is broken off leaves what it did, and says so."""
        told = [f"**Broken off before {left}.**", ""] if left else []
        lines = [*told, *page(peers, problems, models)]
        reporting.save(arguments.output, first, "Beside the peers", lines)

    for asked_one in problem_rows(peers, arguments.corpus, arguments.most):
        problems.append(asked_one)
        save(f"larger problems than {asked_one[0]}, and before the models")
    for number, (name, path) in enumerate(chosen, 1):
        models.append(figures(peers, name, path))
        reporting.progress(f"{name}: {[shown(getattr(models[-1], c)) for c in ('measured', 'head', 'mcufit', 'vela')]}")
        save(f"{len(chosen) - number} of {len(chosen)} models" if number < len(chosen) else "")


if __name__ == "__main__":
    main()
