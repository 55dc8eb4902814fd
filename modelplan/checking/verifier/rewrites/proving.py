"""The levels of proof that one .tflite file computes what another does, with the verdict of each."""

from collections.abc import Iterator

from modelplan.answers.proof_outcomes import Verdict
from modelplan.checking.verifier.litert import litert_installed, start_litert
from modelplan.checking.verifier.rewrites.comparing import Compared, compare_rows
from modelplan.checking.verifier.rewrites.contents import Fault, Unproved
from modelplan.checking.verifier.rewrites.executing import ExecutionEffort, execute_on_litert, execute_on_tflm
from modelplan.checking.verifier.rewrites.memory import replay_memory
from modelplan.checking.verifier.rewrites.reading import Source, read_source
from modelplan.checking.verifier.verdicts import verdict_of
from modelplan.primitives.errors import BrokenPlanError
from modelplan.primitives.units import counted
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels.own_kernels import own_kernels
from modelplan.runtimes.tflm.runner import installed as tflm_installed
from modelplan.runtimes.tflm.runner import start_tflm

NAMES = ("rows", "memory", "TFLM", "LiteRT")


def prove_rewrite(
    original: bytes, rewritten: bytes, kernels: str = "reference", effort: ExecutionEffort | None = None
) -> list[Verdict]:
    """The verdicts of the levels rows and memory, which need the two files alone; with `effort` of all levels.

    Raises:
        BrokenPlanError: the second file does not compute what the first does; names the operator.

    Cost: the bytes that all operators of the second file read and write.
    """
    files = read_tflite(original, "the model"), read_tflite(rewritten, "the rewritten model")
    verdicts = list(rewrite_levels(*files, kernels, effort))
    for verdict in verdicts:
        if verdict.outcome == "broken":
            raise BrokenPlanError(f"the rewritten model is not equal to the model: {verdict.details}")
    return verdicts


def rewrite_levels(
    original: FileModel, rewritten: FileModel, kernels: str = "reference", effort: ExecutionEffort | None = None
) -> Iterator[Verdict]:
    """The verdict of each level, up to the first that fails; without `effort` only those that run no kernel.

    Raises:
        ModelError: a file holds what cannot be compared.
        RequestError: the files have other inputs or outputs, or seem to be swapped.
    """
    if effort is not None:
        _start_runtimes()
    before, after = read_source(original), read_source(rewritten)
    try:
        compared = compare_rows(before, after, own_kernels(kernels))
    except Fault as fault:
        yield Verdict(NAMES[0], "broken", str(fault))
        return
    except Unproved as reason:
        yield Verdict(NAMES[0], "unproved", str(reason))
        return
    yield Verdict(NAMES[0], "ok", _counted(after, compared))
    verdict = verdict_of(NAMES[1], lambda: _replayed(after, compared, kernels), (BrokenPlanError, Fault))
    yield verdict
    if effort is None or verdict.outcome != "ok":
        return
    from concurrent.futures import ThreadPoolExecutor  # here, since it takes time to import

    with ThreadPoolExecutor(2) as runtimes:  # TFLM runs in a process of its own, LiteRT without Python's lock
        tflm = runtimes.submit(verdict_of, NAMES[2], lambda: execute_on_tflm(before, after, compared, effort, kernels))
        litert = runtimes.submit(verdict_of, NAMES[3], lambda: execute_on_litert(before, after, compared, effort))
        verdicts = tflm.result(), litert.result()
    yield from verdicts


def _start_runtimes() -> None:
    """Starts the processes of the runtimes that are installed, before this one has threads."""
    if tflm_installed():
        start_tflm()
    if litert_installed():
        start_litert()


def _counted(source: Source, compared: Compared) -> str:
    """What was followed: subgraphs, operators and how often they ran, tensors, rows, iterations."""
    trace = compared.rewritten
    ran = sum(not event.passes for event in trace.events)
    rows = sum(max(content.shape[1:3], default=1) for event in trace.events for _, content in event.writes)
    counts = [
        counted(len(source.parts), "subgraph"),
        f"{counted(sum(len(part.ops) for part in source.parts), 'operator')} run {ran:,} times",
        counted(sum(len(part.cells) for part in source.parts), "tensor"),
        counted(rows, "row"),
    ]
    if trace.iterations:
        counts.append(counted(sum(trace.iterations.values()), "iteration"))
    if compared.host.converts:
        counts.append(f"equal where the program converts: {compared.host}")
    return ", ".join(counts)


def _replayed(source: Source, compared: Compared, kernels: str) -> str:
    replay = replay_memory(source, compared.rewritten, compared.catalogue, kernels)
    by = "the file's plan" if replay.planned else "TFLM's own planner"
    loops = f", {counted(replay.loops, 'loop')} with one address for each value" if replay.loops else ""
    return f"{replay.arena:,} bytes placed by {by}, {counted(replay.operators, 'run')} of operators and copies{loops}"
