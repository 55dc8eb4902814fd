"""The record behind every row of the operator tables; docs/aliasing.md and docs/rows.md say what follows from it."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from modelplan.model import Graph, Op
from modelplan.ops.access.builders import Builder
from modelplan.primitives.lazy_records import dataclass

Condition = Callable[[Graph, Op], bool]
#: The least bytes by which output 0 must start before an operand that it overlaps; None where it must not overlap.
Lead = Callable[[Graph, Op, int], int | None]
#: The axis along which the parts are joined or split; None where only the run decides it.
Axis = Callable[[Graph, Op], int | None]

#: Multiply-accumulates of one element of output 0.
Count = Callable[[Graph, Op], int]
#: Elements read of each input, in the order of operands; those beyond are read once. None: the rule does not apply.
Reads = Callable[[Graph, Op], tuple[int, ...] | None]

Group = Literal[
    "view", "elementwise", "row", "update", "stream", "join", "split", "generator", "shape", "control", "state",
    "opaque", "never",
]  # fmt: skip
#: Which operators go by rows, as their maps say: a rule of this name in the `layers.py` of each format says what its
#: writer takes.
RowRule = Literal[
    "pointwise", "window", "spread", "resize", "blocks", "pad", "join", "slice", "gather", "permute",
    "reshape", "reduce", "product", "gemm", "quantise", "softmax", "normalise", "normalise batch", "by channel",
    "along channels",
]  # fmt: skip

#: The operators whose result is operand 0 with other extents, whatever their options: views in most runtimes.
TFLITE_RESHAPES = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})
ONNX_RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True, slots=True)
class KernelReads:
    """How a kernel reads: anew for each element of the result what the access map says, where it has no rule.

    `source` is where its loops stand, in TFLM below lite/kernels/internal/reference.
    """

    reads: Reads | None
    source: str


class Amounts(NamedTuple):
    """What an operator does in one run.

    Elements of its output, positions of its windows inside its operand for all of them (of a PAD the elements of its
    operand), multiply-accumulates at these, and contiguous runs of bytes that it copies.
    """

    outputs: int
    taps: int = 0
    macs: int = 0
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Terms:
    """Nanoseconds of a kernel for one run, and for each of what it does."""

    run: float
    output: float = 0.0
    tap: float = 0.0
    mac: float = 0.0
    copy: float = 0.0

    def time(self, amounts: Amounts) -> float:
        """Nanoseconds of one run."""
        outputs, taps, macs, runs = amounts
        return self.run + self.output * outputs + self.tap * taps + self.mac * macs + self.copy * runs


@dataclass(frozen=True, slots=True)
class OpFacts:
    """What an operator does, to memory above all. The default says nothing, which shares nothing.

    `access` makes the map that says which elements of the operands each element of a result is made of; views, parts
    of joins, products and reads follow from it (`ops/access`).

    `view` is the operand whose bytes output 0 is, unchanged, where `view_if` agrees. Of joins, and where the operator
    `passes_on` bytes of operand 0, the map says for which options output 0 is a view of it, which only mode max uses:
    "all" of them, or "part" where the output may be less than the operand.
    `overwrite` lists operands that output 0 may replace byte for byte, where `overwrite_if` agrees: in group
    "elementwise" element i of the result depends on element i of each operand alone, in "row" on its row, in
    "update" on what is not replaced yet. `lead`: how far output 0 must start before an operand that it overlaps, for
    kernels that write front to back; in group "never" only for kernels that are the plain nest of loops. Group
    "opaque" orders its own reads and writes: its compiler decided what may overlap.
    `parts` is the axis of a join's inputs or a split's outputs, `whole` the split operand. `operands` are those
    whose constant values these conditions and `diff` ask for; `same_quantisation` that they ask for equal scales.

    `effects`: it may touch more than its outputs, such as variables or a stream of random numbers. `macs` counts the
    multiply-accumulates of an element of output 0 where the map does not, `reads` how the kernel reads its operands;
    without it each is read once. `weights` is the operand with the weights of a convolution of ONNX, 0 where there is
    none. `time` is what TFLM's reference kernel takes. `activation`: layers end in it.

    `rows` is the rule by which stripes take its rows; without one `unsplit` says why it is not split.
    `any_values`: its kernel runs alike whatever rows hold that no result depends on, since it does not divide, take a
    root or round a float. `fused`: the runtime may compute it inside of a neighbour's kernel.
    """

    group: Group = "never"
    access: Builder | None = None
    view: int | None = None
    view_if: Condition | None = None
    overwrite: tuple[int, ...] = ()
    overwrite_if: Condition | None = None
    lead: Lead | None = None
    parts: Axis | None = None
    whole: int = 0
    operands: tuple[int, ...] = ()
    same_quantisation: bool = False
    passes_on: Literal["", "all", "part"] = ""
    effects: bool = False
    macs: Count | None = None
    reads: KernelReads | None = None
    weights: int = 0
    time: Terms | None = None
    rows: RowRule | None = None
    unsplit: str = "{kind} is not computed row by row"
    any_values: bool = False
    fused: bool = False
    activation: bool = False

    @property
    def may_be_view(self) -> bool:
        """Whether output 0 is a view of an operand for some options."""
        return self.view is not None or (self.access is not None and (self.group == "join" or bool(self.passes_on)))
