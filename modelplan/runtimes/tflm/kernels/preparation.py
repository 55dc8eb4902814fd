"""What one operator takes from the arena while TFLM initialises and prepares it, event by event.

Events name structures and counts of addresses, whose bytes differ between targets, so that they are the same for all.
"""

from collections.abc import Callable
from dataclasses import field
from functools import cache
from typing import NamedTuple

from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.abi import Abi, Struct, layout
from modelplan.runtimes.tflm.kernels.calls import Call, Operand, Refusal

#: Sorts of events: a buffer that stays, one that lasts until the operator is prepared, one that the planner places,
#: and what stays for a kernel whose sizes are not known.
KEEP, TEMPORARY, SCRATCH, MARGIN = "keep", "temporary", "scratch", "margin"

TENSOR: Struct = (("int", "pointer"), ("float", "int32"), "pointer", "pointer", "size", "enum", "enum", "bool")
EVAL_TENSOR: Struct = ("pointer", "pointer", "enum")
QUANTIZATION: Struct = ("pointer", "pointer", "int32")


class PreparationEvent(NamedTuple):
    """One allocation: its kind, `size` bytes, and behind them `times` structures."""

    sort: str
    size: int
    struct: Struct = ()
    times: int = 1

    def bytes(self, abi: Abi) -> int:
        """Its size on a target."""
        return self.size + self.times * layout(self.struct, abi).size

    def happens(self, abi: Abi) -> bool:
        """Whether there is such a request on a target: a structure that has no members there is not asked for."""
        return not self.struct or layout(self.struct, abi).size > 0


@dataclass
class ResourceVariables:
    """The variables of VAR_HANDLE in a model, as far as TFLM has prepared it.

    `allocated` holds those that have a buffer; `handles` says which variable the resource tensor of a key names.
    """

    names: dict[tuple[str, str], int] = field(default_factory=dict)
    handles: dict[object, int] = field(default_factory=dict)
    allocated: set[int] = field(default_factory=set)

    def named(self, container: str, name: str) -> int:
        """The number of a variable; a new name gets the next one."""
        return self.names.setdefault((container, name), len(self.names))


class Others(NamedTuple):
    """State beyond the operator that a few kernels depend on.

    `variables` are those of the model, None where they are not followed; `keys` tell the operator's inputs and outputs
    from all other tensors; `earlier` is how many scratch buffers the operators before it asked for, None where that is
    not known.
    """

    variables: ResourceVariables | None = None
    keys: tuple[tuple[object, ...], tuple[object, ...]] = ((), ())
    earlier: int | None = None


class Preparation:
    """The events of one operator. Kernels' tables call it as TFLM's kernels call their context, in the same order.

    `later` is `Abi.later`. `alone` says that it took nothing into account but the operator itself: no variables, no
    other operators.
    """

    def __init__(self, call: Call, *, later: bool = False, others: Others | None = None) -> None:
        self.call = call
        self.later = later
        self._others = others or Others()
        self.alone = True
        self.events: list[PreparationEvent] = []
        self.reshaped: tuple[int, ...] | None = None

    @property
    def variables(self) -> ResourceVariables | None:
        """See `Others`."""
        self.alone = False
        return self._others.variables

    @property
    def keys(self) -> tuple[tuple[object, ...], tuple[object, ...]]:
        """See `Others`."""
        self.alone = False
        return self._others.keys

    @property
    def earlier(self) -> int | None:
        """See `Others`."""
        self.alone = False
        return self._others.earlier

    def require(self, holds: bool, reason: str) -> None:  # noqa: FBT001 - reads as a sentence
        """Ends the preparation with a refusal where TFLM's kernel would return an error."""
        if not holds:
            raise Refusal(reason)

    def counts(self, inputs: int | tuple[int, ...], outputs: int = 1) -> None:
        """Requires these numbers of inputs and outputs."""
        allowed = (inputs,) if isinstance(inputs, int) else inputs
        count = len(self.call.inputs)
        self.require(count in allowed, f"{count} inputs; its kernel takes {' or '.join(map(str, allowed))}")
        count = len(self.call.outputs)
        self.require(count == outputs, f"{count} outputs; its kernel gives {outputs}")

    def input(self, index: int = 0) -> Operand:
        """Input `index`, through a temporary tensor.

        Raises:
            Refusal: it is absent.
        """
        return self._temporary(self.call.input(index))

    def optional(self, index: int) -> Operand | None:
        """Input `index`, through a temporary tensor, or None where it is absent."""
        inputs = self.call.inputs
        operand = inputs[index] if index < len(inputs) else None
        return None if operand is None else self._temporary(operand)

    def output(self, index: int = 0) -> Operand:
        """Output `index`, through a temporary tensor.

        Raises:
            Refusal: it is absent.
        """
        return self._temporary(self.call.output(index))

    def _temporary(self, operand: Operand) -> Operand:
        """A TfLiteTensor, and with scales its quantisation and zero points, which last until the operator is done."""
        self.events += temporaries(operand.scales)
        return operand

    def keep(self, size: int, struct: Struct = ()) -> None:
        """A buffer of `size` bytes and a structure that stays."""
        self.events.append(PreparationEvent(KEEP, size, struct))

    def keep_struct(self, struct: Struct) -> None:
        """A structure that stays; none for one without members."""
        if struct:
            self.keep(0, struct)

    def keep_pointers(self, count: int) -> None:
        """A table of addresses that stays."""
        self.events.append(PreparationEvent(KEEP, 0, ("pointer",), count))

    def keep_shape(self, rank: int) -> None:
        """A shape that the kernel can write: TFLM's integer array."""
        self.keep(4 * (1 + rank))

    def scratch(self, size: int) -> None:
        """A buffer of `size` bytes for the time in which the operator runs."""
        self.events.append(PreparationEvent(SCRATCH, size))

    def scratch_if_any(self, size: int) -> None:
        """The same where the library needs any: CMSIS-NN and ESP-NN request nothing in place of an empty buffer."""
        if size > 0:
            self.scratch(size)

    def decompress(self, index: int) -> None:
        """A buffer for the values of input `index` where it is compressed: AllocateDecompressionScratchBuffer."""
        operand = self.call.inputs[index] if index < len(self.call.inputs) else None
        if operand is not None and operand.compressed:
            self.require(operand.dtype != "int4", f"input {index} is compressed and int4, which its kernel refuses")
            self.scratch(operand.nbytes)

    def scratch_pointers(self, count: int) -> None:
        """A table of addresses for the time in which the operator runs."""
        self.events.append(PreparationEvent(SCRATCH, 0, ("pointer",), count))

    def reshape(self, shape: tuple[int, ...]) -> None:
        """Gives the first output the shape that the kernel computes, whatever the file says."""
        self.keep_shape(self.call.output().rank)
        self.reshaped = shape


#: What a kernel does when TFLM prepares it.
Prepare = Callable[[Preparation], None]


@cache
def temporaries(scales: int) -> tuple[PreparationEvent, ...]:
    """What a temporary tensor with so many scales takes."""
    tensor = PreparationEvent(TEMPORARY, 0, TENSOR)
    if not scales:
        return (tensor,)
    return (tensor, PreparationEvent(TEMPORARY, 0, QUANTIZATION), PreparationEvent(TEMPORARY, 0, ("int",), 1 + scales))


def nothing(preparation: Preparation) -> None:
    """The Prepare function of kernels without one."""


def keep_own(size: int, preparation: Preparation) -> None:
    """Keeps what the user says that a kernel of their own asks for, with a temporary tensor for each operand."""
    preparation.events.append(PreparationEvent(MARGIN, size))
    for operand in (*preparation.call.inputs, *preparation.call.outputs):
        if operand is not None:
            preparation.events += temporaries(operand.scales)


@dataclass(frozen=True, slots=True)
class Operator:
    """One kernel: the parsed options, what Init keeps, what Prepare does, and the types that it computes.

    `types` are those of input `typed`, of the first output if `typed` is -1; None if the kernel does not look at types.
    `unpacks` are the inputs that may be compressed, for which it requests memory at the end of Prepare.
    `later` are the types that it computes besides in the newer TFLM of the ABIs with `Abi.later`. `initialise` requests
    what Init takes beyond `data`. `exact` is false where the kernel is not TFLM's own.

    `in_place` are the types for which its output may replace an operand, `front_to_back` those for which it may run
    into operand 0, each executed so through an offline plan (tests/e2e/test_in_place.py).
    """

    options: Struct = ()
    data: Struct = ()
    prepare: Prepare = nothing
    types: tuple[str, ...] | None = None
    typed: int = 0
    initialise: Prepare = nothing
    exact: bool = True
    later: tuple[str, ...] = ()
    unpacks: tuple[int, ...] = ()
    in_place: tuple[str, ...] = ()
    front_to_back: tuple[str, ...] = ()


def prepare_operator(operator: Operator, preparation: Preparation) -> None:
    """Performs Prepare with the buffers into which compressed inputs are unpacked."""
    operator.prepare(preparation)
    for index in operator.unpacks:
        preparation.decompress(index)


def check_types(operator: Operator, call: Call, *, later: bool) -> None:
    """Requires a type that the kernel computes."""
    if operator.types is None:
        return
    operand = call.output() if operator.typed < 0 else call.input(operator.typed)
    types = (*operator.types, *operator.later) if later else operator.types
    if operand.dtype not in types:
        what = "output" if operator.typed < 0 else f"input {operator.typed}"
        raise Refusal(f"{what} is {operand.dtype}; its kernel computes {', '.join(types)}")
