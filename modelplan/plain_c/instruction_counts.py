"""How many instructions a plan in C executes, as they are expected of what was counted on cores.

A call of a kernel has terms: for the call itself, for each four elements of the result, for each multiply-accumulate,
for each weight, where a library sums all of them again in each call, for each line of a window that is read by itself,
for each place of the result, of all of its channels, and for each element of a window that is copied. They were fitted
to the counts of single operators of person_detect, vww_96, kws_ref, ResNet-8, okay_nabu, mcunet_vww0 and str_ww, whole
and in parts, of arm-none-eabi-gcc 12.2 at -O2 and CMSIS-NN of June 2026: those of DSP instructions on a Cortex-M4, of
Helium on an M55; those of plain C on an M3 to the counts by function of kws_ref, person_detect and okay_nabu.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from math import prod

from modelplan.model.c_program import CProgram, KernelCall, Step
from modelplan.plain_c.kernel_records import CKernel, ConstTable, COperator
from modelplan.plain_c.kernel_sources import kernel_name
from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, slots=True)
class CallWork:
    """What calls of a kernel do; as terms the instructions that one of each takes."""

    calls: float = 0
    fours: float = 0
    macs: float = 0
    weights: float = 0
    lines: float = 0
    places: float = 0
    copied: float = 0

    def times(self, terms: CallWork) -> float:
        """The instructions of this work by the terms of one of each."""
        pairs = zip(self._numbers, terms._numbers, strict=True)
        return sum(a * b for a, b in pairs)

    @property
    def _numbers(self) -> tuple[float, ...]:
        return self.calls, self.fours, self.macs, self.weights, self.lines, self.places, self.copied


def _portable(dense: CallWork, depthwise: CallWork) -> dict[str, CallWork]:
    """The terms of portable kernels with weights, and of those that copy and add."""
    others = dict.fromkeys(("copy_block_bytes", "copy_bytes_bytes", "fill_bytes"), CallWork(100, 1.5))
    others |= dict.fromkeys(("add_int8", "multiply_int8", "cmsis_add_int8", "cmsis_multiply_int8"), CallWork(100, 300))
    sources = ("conv_2d", "pooled_conv_2d", "fully_connected")
    return {**others, **{f"{source}_int8": dense for source in sources}, "depthwise_conv_2d_int8": depthwise}


def _library(product: CallWork, columns: CallWork, depthwise: Mapping[str, CallWork]) -> dict[str, CallWork]:
    """The terms of the library's kernels with weights."""
    products = {f"cmsis_{source}_int8": replace(product, weights=0) for source in ("connected", "connected_by_channel")}
    products |= {"cmsis_pointwise_int8": product, "cmsis_columns_int8": columns, "cmsis_convolve_int8": columns}
    return {**products, **{f"cmsis_depthwise_{variant}": terms for variant, terms in depthwise.items()}}


#: The library's kernels of depthwise convolutions that no core computes otherwise than in C.
_DEPTHWISE_C = {"3x3": CallWork(240, 0, 7.5, places=112), "any": CallWork(150, 160, 17)}
_DSP = {
    **_portable(CallWork(190, 111, 1.75, lines=59, places=92, copied=14), CallWork(300, 141, 4.3, places=160)),
    **_library(
        CallWork(720, 177, 1.36, 3.9),
        CallWork(300, 243, 1.47, 1.8, places=200),
        {**_DEPTHWISE_C, "opt": CallWork(150, 200, 5)},
    ),
}
_HELIUM = {
    **_portable(CallWork(165, 23, 0.162, lines=26, places=146, copied=22), CallWork(200, 10, 2.0, places=145)),
    **_library(
        CallWork(560, 64, 0.122, 0.66),
        CallWork(1300, 78, 0.161, 0.17, places=250),
        {**_DEPTHWISE_C, "opt": CallWork(640, 25, 1.27, 2.6, places=230)},
    ),
    **dict.fromkeys(("add_int8", "multiply_int8", "cmsis_add_int8", "cmsis_multiply_int8"), CallWork(100, 60)),
}
_C = {
    **_portable(CallWork(150, 160, 2.75, lines=75), CallWork(300, 215, 3.9)),
    **_library(CallWork(150, 200, 2.4, 4.6), CallWork(300, 200, 2.5, 4.6), _DEPTHWISE_C),
}
#: The core whose instructions are counted for each set of kernels, and its terms; those of ESP-NN are not known.
CORES: Mapping[str, tuple[str, Mapping[str, CallWork]]] = {
    "portable": ("Cortex-M4", _DSP), "cmsis-dsp": ("Cortex-M4", _DSP), "cmsis-nn": ("Cortex-M4", _DSP),
    "cmsis-mve": ("Cortex-M55", _HELIUM), "cmsis-c": ("Cortex-M3", _C),
}  # fmt: skip
#: The elements of a window that a convolution copies side by side at most.
_COPIED_WINDOW = 64
_MOVED, _OTHER, _STEP = CallWork(30, 0.9), CallWork(60, 50, 4), 40


def expected_instructions(program: CProgram, operators: Mapping[int, COperator]) -> int | None:
    """The instructions of one run of a plan, a rough guess for kernels that were not counted; None for ESP-NN."""
    if program.kernels not in CORES:
        return None
    counts = _Counts(operators, CORES[program.kernels][1])
    steps = [step for stage in program.stages for step in stage.steps]
    return round(sum(_STEP + counts.of(step) for step in steps))


def are_counted(program: CProgram, operators: Mapping[int, COperator]) -> bool:
    """Whether all kernels of a plan that have weights were counted: they take nearly all instructions."""
    if program.kernels not in CORES:
        return False
    kernels = (kernel for operator in operators.values() for kernel in operator.kernels)
    weighted = (kernel for kernel in kernels if isinstance(kernel.parameters.get("weights"), ConstTable))
    return all(kernel_name(kernel.source, kernel.variant) in CORES[program.kernels][1] for kernel in weighted)


def faster_of(
    program: CProgram, operators: Mapping[int, COperator], others: Mapping[int, COperator]
) -> dict[int, COperator]:
    """The operators of a plan with those of the others that take fewer instructions in the same calls."""
    if program.kernels not in CORES:
        return dict(operators)
    terms = CORES[program.kernels][1]
    counts = _Counts(operators, terms), _Counts(others, terms)
    prices: dict[int, list[float]] = {}
    for step in (step for stage in program.stages for step in stage.steps):
        if isinstance(step, KernelCall) and _is_priced(step.operator, operators, others, terms):
            both = prices.setdefault(step.operator, [0.0, 0.0])
            for i, of in enumerate(counts):
                both[i] += of.of(step)
    return {**operators, **{i: others[i] for i, (own, other) in prices.items() if other < own}}


def _is_priced(
    index: int, operators: Mapping[int, COperator], others: Mapping[int, COperator], terms: Mapping[str, CallWork]
) -> bool:
    """Whether both kernels of an operator have terms of their own."""
    if index not in operators or index not in others:
        return False
    kernels = [*operators[index].kernels, *others[index].kernels]
    return all(kernel_name(kernel.source, kernel.variant) in terms for kernel in kernels)


@dataclass(frozen=True)
class _Counts:
    """The instructions of steps, by the terms of kernels; of calls of an operator for as many rows they are equal."""

    operators: Mapping[int, COperator]
    terms: Mapping[str, CallWork]
    known: dict[tuple[int, float], float] = field(default_factory=dict)

    def of(self, step: Step) -> float:
        """The instructions of a step."""
        if not isinstance(step, KernelCall):
            return CallWork(1, step.nbytes / 4).times(_MOVED)
        operator = self.operators[step.operator]
        if operator.view and step.reads[0].address == step.writes[0].address:
            return 0.0
        key = step.operator, _share(step, operator)
        if key not in self.known:
            named = [(kernel_name(kernel.source, kernel.variant), kernel) for kernel in operator.kernels]
            works = ((name, _kernel_work(key[1], operator, kernel)) for name, kernel in named)
            self.known[key] = sum(work.times(self.terms.get(name, _OTHER)) for name, work in works)
        return self.known[key]


def _kernel_work(share: float, operator: COperator, kernel: CKernel) -> CallWork:
    """What a kernel does in a call that computes a share of all results."""
    numbers = {name: value for name, value in kernel.parameters.items() if isinstance(value, int)}
    elements = sum(result.rows * result.row_bytes for result in operator.results) * share / len(operator.kernels)
    weights = kernel.parameters.get("weights")
    size = weights.numbers.size if isinstance(weights, ConstTable) else 0
    channels = max(numbers.get("out_channels", numbers.get("in_channels", 1) * numbers.get("depth_multiplier", 1)), 1)
    window = prod(numbers.get(name, 1) for name in ("kernel_height", "kernel_width"))
    if kernel.source in ("pooled_conv_2d", "expanded_depthwise"):
        elements *= numbers.get("pixels", window)
    taps = size / channels if size else window
    blocks = -(-channels // 4) / channels if size else 1 / 4
    fours = elements * blocks
    cut = numbers.get("in_width", 0) != numbers.get("kernel_width", 0)
    lines = fours * (numbers.get("kernel_height", 1) if cut and taps > _COPIED_WINDOW else 1)
    places = elements / channels if size else 0
    copies = kernel.source == "conv_2d" and cut and numbers["kernel_height"] > 1 and taps <= _COPIED_WINDOW
    copied = places * taps if copies else 0
    return CallWork(kernel.repeats, fours, elements * taps, size * kernel.repeats, lines, places, copied)


def _share(call: KernelCall, operator: COperator) -> float:
    """The share of all results that a call computes."""
    if not operator.by_rows or not call.writes:
        return 1.0
    share = call.writes[0].rows / operator.results[0].rows
    if call.columns:
        width = operator.kernels[0].parameters.get("out_width", 0)
        share *= (call.columns[1] - call.columns[0]) / (width if isinstance(width, int) and width else call.columns[1])
    return share
