"""What was proved as text: a line for each level."""

from __future__ import annotations

from modelplan.answers.moving_layout import MovingPlan
from modelplan.answers.proof import Proof
from modelplan.outputs.report import Section
from modelplan.outputs.reports import moves_report, region_report
from modelplan.primitives.units import human


def sections_of(proof: Proof) -> list[Section]:
    """The verdicts, and a layout in several memories as its own report shows it."""
    lines = [f"{verdict.level:18}  {verdict.outcome:7}  {verdict.details}" for verdict in proof.verdicts]
    if proof.head is not None:
        lines.append(f"{'head on TFLM':18}  {human(proof.head)}")
    title = f"{proof.against} against {proof.path}" if proof.against else f"{proof.path}: levels of proof"
    shown, layout = [Section(title, tuple(lines))], proof.layout
    if isinstance(layout, MovingPlan):
        return shown + moves_report.sections_of(layout)
    return shown if layout is None else shown + region_report.sections_of(layout)
