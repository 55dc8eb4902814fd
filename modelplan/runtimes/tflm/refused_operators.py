"""What TFLM would not run, and the lines that tell it."""

import re
import shlex
from collections.abc import Iterable, Sequence

from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.performing import NO_KERNEL

#: The place of what is refused for a tensor.
AT_TENSOR = "tensor"
#: Characters of a tensor's name that a line shows.
LONGEST_NAME = 48
#: Operators whose numbers a line names.
_NUMBERS = 8


@dataclass(frozen=True, slots=True)
class Refused:
    """What TFLM would not prepare or run, and why.

    `where` is "op", "subgraph 1 op", "tensor" or "metadata", `name` the kind of operator, the name of the tensor or of
    the metadata; `index` is the operator's number in its subgraph, the tensor's over all subgraphs, -1 for metadata.
    `custom`: it is an operator outside of the schema.
    """

    where: str
    index: int
    name: str
    reason: str
    custom: bool = False

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
        name = "" if refusal.where == AT_TENSOR else refusal.name
        groups.setdefault((refusal.where, name, refusal.reason), []).append(refusal)
    return tuple(f"{_label_of(group)}: {group[0].reason}" for group in groups.values())


#: Custom operators that no firmware has a kernel for, by how their names begin: what they are.
_COMPILED = {
    "edgetpu-custom-op": "a part of the model compiled for the Edge TPU",
    "DISPATCH_OP": "a part of the model compiled for an NPU",
    "Flex": "an operator of TensorFlow itself (Select TF ops)",
}


def missing_kernel(kind: str) -> str:
    """Why a custom operator is refused that is none of TFLM's.

    >>> missing_kernel("FlexErf")
    'an operator of TensorFlow itself (Select TF ops); TFLM has no kernel for it'
    """
    what = next((f"{words}; " for begin, words in _COMPILED.items() if kind.startswith(begin)), "")
    return what + NO_KERNEL


_FIXED = "convert with a fixed batch of 1, recurrent layers with unroll=True, and without SELECT_TF_OPS"
_INTEGER = (
    "quantise in full: representative data and supported_ops = [TFLITE_BUILTINS_INT8] give int8 activations, and no"
    " `optimizations` give float32"
)
_DECODED = "compress with TFLM of August 2026 or later, which puts TFLM_DECODE operators instead"
_ELSEWHERE = "replace it in the model by operators that TFLM has; LiteRT has more (`--runtime litert`)"

#: What a label and its reason say, as a regular expression, and how to get a model without it; the first that is found
#: counts. Of a remedy {name} is the operator.
_REMEDIES = tuple(
    (re.compile(pattern), remedy)
    for pattern, remedy in (
        (r"hybrid", _INTEGER),
        (r"Select TF ops|VARIANT|STRING|TensorList", _FIXED),
        (r"Edge TPU", "use the .tflite file that the Edge TPU compiler was given"),
        (r"an NPU", "use the .tflite file that was compiled for the NPU"),
        (r"behind the flatbuffer|in another file", "convert again with all weights inside of the flatbuffer"),
        (r"without their zeros", "convert again with dense weights: no sparsity, pruning stripped"),
        (r"which TFLM cannot hold", "quantise to int8 or convert to float32: TFLM does not have this type"),
        (
            r"(?:is|of|types|,) uint8[;, ]|uint8 weights|: uint8",
            "convert again as int8: TFLM's kernels do not compute with uint8, which older converters wrote",
        ),
        (
            r"(?:is|of|types|,) float16[;, ]|float16 weights",
            "convert to float32 or quantise to int8: TFLM's kernels do not compute in float16",
        ),
        (r"is int16;", "quantise to int8, or leave it float32: this kernel does not compute in int16"),
        (r"float64|is u?int\d+; its|is bool;|of types? .*one type", "cast it, in the model, to a type that is taken"),
        (r"is float32;", "quantise this operator to int8 as well"),
        (r"without scales|scale|zero point", "quantise again with the converter of today, from representative data"),
        (r"a dynamic one to TFLM|is computed;|shape|condition", "convert with fixed shapes, such as a batch of 1"),
        (r"dimensions|axis|axes|batch", "reshape to the dimensions that its kernel takes, in the model"),
        (r"\d+ (?:inputs|outputs)", "split it into several operators with as many operands as its kernel takes"),
        (r"fused activation", "give the activation an operator of its own"),
        (r"bias", "give it a bias, of zeros where it has none"),
        (r"COMPRESSION|compressed", _DECODED),
    )
)


def remedy_lines(refusals: Iterable[Refused]) -> tuple[str, ...]:
    """How to get a model that TFLM runs: for each refusal a way out, each way once."""
    return tuple(dict.fromkeys(map(_remedy, refusals)))


def _remedy(refused: Refused) -> str:
    if refused.custom and refused.reason == NO_KERNEL:
        return f"register a kernel of your own and say what it asks for: --custom {shlex.quote(refused.name)}=BYTES"
    said = f"{refused.label}: {refused.reason}"
    return next((remedy for pattern, remedy in _REMEDIES if pattern.search(said)), _ELSEWHERE)


def _label_of(group: Sequence[Refused]) -> str:
    """The label of operators that are refused for the same reason."""
    if len(group) == 1:
        return group[0].label
    numbers = ", ".join(str(refusal.index) for refusal in group[:_NUMBERS])
    more = f" and {len(group) - _NUMBERS} more ({len(group)} in all)" if len(group) > _NUMBERS else ""
    names = f"({group[0].name}, ...)" if group[0].where == AT_TENSOR else group[0].name
    return f"{group[0].where} {numbers}{more} {names}"
