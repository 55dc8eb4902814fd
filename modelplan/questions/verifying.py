"""`verify`: proves that a memory plan is safe, or that a rewritten model computes what the original does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from modelplan.answers.proof_outcomes import Proof, Verdict
from modelplan.checking.verifier import proof
from modelplan.checking.verifier.c_execution import LEVEL as C_LEVEL
from modelplan.checking.verifier.c_execution import ONNX_LEVEL as ONNX_C_LEVEL
from modelplan.checking.verifier.c_execution import execute_c, execute_network, interface_of
from modelplan.checking.verifier.network_formulas import formulas_verdict
from modelplan.checking.verifier.rewrites.executing import ExecutionEffort
from modelplan.checking.verifier.rewrites.proving import rewrite_levels
from modelplan.checking.verifier.sources import kernels_of_plan, load_subject
from modelplan.checking.verifier.verdicts import verdict_of
from modelplan.formats.whole_files import fingerprint, read_model, read_text
from modelplan.primitives.errors import BrokenPlanError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import SettledRequest, answers_paths
from modelplan.primitives.units import milliseconds
from modelplan.questions.option_files import overlaps_of
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.kernels.own_kernels import with_library
from modelplan.runtimes.tflm.metadata import write_plan


@dataclass(frozen=True, slots=True)
class VerifyRequest(SettledRequest):
    """Asks for a proof that a memory plan is safe, or that a rewritten model computes what the original does.

    Args:
        path: a packed .tflite, a plan or a layout in several memories as .json, a .csv with offsets, or a .h with a
            BufferPlan; with `against` the original .tflite.
        against: a .tflite that must compute what `path` does, with its own plan, or a .c that `fit_c` wrote of it.
        model: the model that a .json, .csv or .h plan is for.
        runtime: whose alignment and kernels hold for a .csv.
        kernels: the kernel library; None: that of the plan in a .tflite, else all, and reference kernels for a .h or
            .csv.
        overlaps: for a .csv, the path of a file that declares outputs which may run into inputs.
        quick: whether the levels that run kernels are left out.
        seed: of the random inputs.
    """

    path: str
    against: str | None = None
    model: str | None = None
    runtime: str | None = None
    kernels: str | None = None
    overlaps: str | None = None
    quick: bool = False
    seed: int = 0


@answers_paths(VerifyRequest)
def verify(request: VerifyRequest) -> Proof:
    """The verdict of each level of proof, from lifetimes to runs on real kernels.

    Args:
        request: the plan, or the two files to compare.

    Returns:
        The levels up to the first that failed; `fault` says why, and is empty where all is proved.

    Raises:
        BrokenPlanError: the plan does not fit the model at all, or was made for another file.
        ModelError: a file cannot be read or is not what its suffix says.
        RequestError: an unknown kind of file, a model is needed, or choices that do not go together.
    """
    if request.against:
        return _compared(request, request.against)
    path, model = Path(request.path), Path(request.model) if request.model else None
    if path.suffix.lower() == ".json" and path.is_file():
        from modelplan.questions.memories.region_document import kind_of

        text = read_text(path)
        if kind := kind_of(text):
            return _moving(str(path), text, model) if kind == "moves" else _placed(str(path), text, model)
    declared = partial(overlaps_of, request.overlaps)
    subject, model = load_subject(path, model, request.kernels, request.runtime, declared)
    verdicts = list(proof.quick_levels(subject))
    if not request.quick and not any(verdict.outcome == "broken" for verdict in verdicts):
        parts = any(verdict.level == proof.BY_BYTE for verdict in verdicts)
        verdicts += proof.deep_levels(subject, model, write_plan, request.seed, parts=parts)
    broken = [f"{request.path}: {verdict.details}" for verdict in verdicts if verdict.outcome == "broken"]
    head = subject.offline.head if subject.offline else None
    library = subject.program.library if subject.offline else ""
    return Proof(request.path, tuple(verdicts), broken[-1] if broken else "", head=head, kernels=library)


def _placed(path: str, text: str, model: Path | None) -> Proof:
    """Proves a layout for several memories: the referee, and a replay of each model in it."""
    from modelplan.questions.memories.region_document import read

    region_plan = read(text, path)
    _check_model(path, model, [plan.graph.fingerprint for plan in region_plan.plans])
    stays, copies = len(region_plan.layout.stays), len(region_plan.layout.copies)
    replays = (Verdict("replay", "ok", plan.graph.name) for plan in region_plan.plans)
    verdicts = (Verdict("referee", "ok", f"{stays:,} stays, {copies:,} copies"), *replays)
    return Proof(path, verdicts, layout=region_plan)


def _moving(path: str, text: str, model: Path | None) -> Proof:
    """Proves a layout that moves: the referee, and the simulator's replay with time."""
    from modelplan.questions.memories.moves_document import read

    moving_plan = read(text, path)
    _check_model(path, model, [moving_plan.plan.graph.fingerprint])
    verdicts = (
        Verdict("plan", "ok", f"{moving_plan.title}: order and sharing"),
        Verdict("simulator", "ok", f"one run takes {milliseconds(moving_plan.simulated.seconds)}, as promised"),
        Verdict("referee", "ok", f"{len(moving_plan.layout.stays):,} stays, {len(moving_plan.layout.copies):,} copies"),
    )
    return Proof(path, verdicts, layout=moving_plan)


def _check_model(path: str, model: Path | None, fingerprints: Sequence[str]) -> None:
    if model is not None and fingerprint(read_model(model)) not in fingerprints:
        raise BrokenPlanError(f"{path}: was not made for {model}: SHA-256 differs")


def _compared(request: VerifyRequest, against: str) -> Proof:
    """Proves that the file `against` computes what that of the request does."""
    given = [f"--{name}" for name in ("model", "runtime", "overlaps") if getattr(request, name)]
    if given:
        raise RequestError(f"{given[0]} is for plans, --against compares two .tflite files")
    if against.lower().endswith(".c"):
        return _compared_with_c(request, against)
    files = load_tflite(request.path), load_tflite(against)
    effort = None if request.quick else ExecutionEffort(request.seed)
    kernels = with_library(request.kernels, kernels_of_plan(files[1]))
    verdicts = list(rewrite_levels(*files, kernels, effort))
    failed = next((verdict for verdict in verdicts if verdict.outcome in ("broken", "unproved")), None)
    if request.quick:
        verdicts.append(Verdict("TFLM, LiteRT", "skipped", "--quick: no kernel was run"))
    fault = failed.details if failed else ""
    if failed and failed.outcome == "unproved":
        fault = f"{against} is not proved equal to {request.path}: {fault}"
    elif failed:
        fault = f"{against} does not compute what {request.path} does: {fault}"
    return Proof(request.path, tuple(verdicts), fault, against, kernels=kernels)


def _compared_with_c(request: VerifyRequest, against: str) -> Proof:
    """Proves the plan that a network in plain C states, and compares what it computes with what TFLM does."""
    from modelplan.plain_c.writing.plan_data import stated_request
    from modelplan.questions.c_fitting import (  # here, since few are C
        is_onnx,
        network_of_source,
        source_verdict,
        with_stated_interface,
    )

    path, onnx = Path(against), is_onnx(request.path)
    model = None if onnx else load_tflite(request.path)
    source, header = read_text(path), read_text(path.with_suffix(".h"))
    interface_of(header, str(path.with_suffix(".h")))
    verdicts, level = [source_verdict(request.path, source, header)], ONNX_C_LEVEL if onnx else C_LEVEL
    if onnx:
        verdicts.append(formulas_verdict(request.path, network_of_source(request.path, source)))
    if "broken" not in {verdict.outcome for verdict in verdicts}:
        stated = model and with_stated_interface(model, request.path, header)
        if request.quick:
            verdicts.append(Verdict(level, "skipped", "--quick: no kernel was run"))
        elif stated:
            verdicts.append(verdict_of(level, lambda: execute_c(stated, path, request.seed)))
        else:
            verdicts.append(
                verdict_of(level, lambda: execute_network(request.path, stated_request(source), path, request.seed))
            )
    words = {"broken": "does not compute what {} does", "unproved": "is not proved equal to {}"}
    failed = [v for outcome in words for v in verdicts if v.outcome == outcome]
    details = "; ".join(verdict.details for verdict in failed)
    fault = f"{against} {words[failed[0].outcome].format(request.path)}: {details}" if failed else ""
    return Proof(request.path, tuple(verdicts), fault, against)
