"""What TFLM would not run, and the lines that tell it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Operators whose numbers a line names.
_NUMBERS = 8


@dataclass(frozen=True, slots=True)
class Refused:
    """What TFLM would not prepare or run, and why.

    `where` is "op", "subgraph 1 op" or "metadata", `name` the kind of operator or the name of the metadata; `index` is
    the operator's number in its subgraph, -1 for metadata.
    """

    where: str
    index: int
    name: str
    reason: str

    @property
    def label(self) -> str:
        """Such as "op 3 CONV_2D"."""
        return " ".join(part for part in (self.where, str(self.index) if self.index >= 0 else "", self.name) if part)


def refusal_lines(refusals: Iterable[Refused]) -> tuple[str, ...]:
    """A line for each kind of operator and reason, with the numbers of the first of many operators.

    Such as "op 3 CONV_2D: why" or "op 0, 1, 4, 5, 7, 8, 12, 13 and 85 more (93 in all) DEQUANTIZE: why".
    """
    groups: dict[tuple[str, str, str], list[Refused]] = {}
    for refusal in refusals:
        groups.setdefault((refusal.where, refusal.name, refusal.reason), []).append(refusal)
    return tuple(f"{_label_of(group)}: {group[0].reason}" for group in groups.values())


#: What a reason says, and how to get a model without it.
_REMEDIES = (
    (" is uint8;", "re-quantise to int8: TFLM's kernels do not take tensors of uint8"),
    (" is float16;", "convert to float32 or quantise to int8: TFLM's kernels do not compute in float16"),
    (" is float32;", "quantise this operator to int8 as well"),
    ("a dynamic one to TFLM", "convert with fixed shapes, such as a batch of 1"),
    ("its kernel takes a constant", "convert with fixed shapes, so that this operand becomes a constant"),
    ("compressed", "compress with TFLM of August 2026 or later, which puts TFLM_DECODE operators instead"),
    ("TFLM has no kernel for it", "convert it to operators that TFLM has, or register a kernel of your own"),
)


def remedy_lines(refusals: Iterable[Refused]) -> tuple[str, ...]:
    """How to get a model that TFLM runs, for the reasons for which a way is known."""
    reasons = [refusal.reason for refusal in refusals]
    return tuple(remedy for part, remedy in _REMEDIES if any(part in reason for reason in reasons))


def _label_of(group: Sequence[Refused]) -> str:
    """The label of operators that are refused for the same reason."""
    if len(group) == 1:
        return group[0].label
    numbers = ", ".join(str(refusal.index) for refusal in group[:_NUMBERS])
    more = f" and {len(group) - _NUMBERS} more ({len(group)} in all)" if len(group) > _NUMBERS else ""
    return f"{group[0].where} {numbers}{more} {group[0].name}"
