"""What was proved as text: a line for each level."""

from collections.abc import Sequence

from modelplan.answers.moving_layout import MovingPlan
from modelplan.answers.proof_outcomes import Proof, Verdict
from modelplan.outputs.report import Section
from modelplan.outputs.reports import moves_report, region_report
from modelplan.primitives.units import human
from modelplan.runtimes.tflm.kernels import ALL
from modelplan.runtimes.tflm.kernels.own_kernels import library_of, own_part


def executed_lines(verdicts: Sequence[Verdict], kernels: str) -> list[str]:
    """What was not executed of a file that is to be right with these kernels, and what was, with which kernels."""
    library, own = library_of(kernels), own_part(kernels)
    named = "CMSIS-NN and ESP-NN" if library == ALL else library
    missing = [f"the kernels of {named}"] if library != "reference" else []
    missing += ["your own kernels"] if own else []
    missing += [] if any(verdict.planned for verdict in verdicts) else ["the plan"]
    missing += ["your firmware"]
    ran = [verdict.executed for verdict in verdicts if verdict.executed]
    return [
        f"not executed        {', '.join(missing)}; --self-test FILE.cc writes a test that runs on your device",
        f"executed            {'; '.join(ran) or 'on no runtime; the levels below say why'}",
    ]


def sections_of(proof: Proof) -> list[Section]:
    """The verdicts, and a layout in several memories as its own report shows it."""
    lines = executed_lines(proof.verdicts, proof.kernels) if proof.kernels else []
    lines += [f"{verdict.level:18}  {verdict.outcome:7}  {verdict.details}" for verdict in proof.verdicts]
    if proof.head is not None:
        lines.append(f"{'head on TFLM':18}  {human(proof.head)}")
    title = f"{proof.against} against {proof.path}" if proof.against else f"{proof.path}: levels of proof"
    shown, layout = [Section(title, tuple(lines))], proof.layout
    if isinstance(layout, MovingPlan):
        return shown + moves_report.sections_of(layout)
    return shown if layout is None else shown + region_report.sections_of(layout)
