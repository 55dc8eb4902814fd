"""The figures that every output shows, derived from a plan: bytes, steps, shares."""

from modelplan.model import Buffer, Graph, IntArray, Kind, Plan, bounds, class_bytes
from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, slots=True)
class Alive:
    """A buffer at the peak step: its tensors' names, bytes, share of the peak and lifetime."""

    names: tuple[str, ...]
    size: int
    share: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RuntimePlan:
    """What the runtime needs when it plans by itself: bytes, by its own allocator."""

    runtime: str
    allocator: str
    height: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What a user asks first. `planned` = `activations` + `alignment_loss` + `fragmentation` - `overlapped`.

    `overlapped`: bytes at the peak that two buffers hold at once, where operators write over what they read.
    `kept`: bytes that the runtime takes of the same memory beside the planned part, where the plan knows it.
    `refused`: the runtime would not run the model.
    `outside`: bytes at the peak in buffers of inputs and outputs, where the runtime keeps these outside its own arena.

    `optimal`: no placement of this order is lower; `jointly_optimal`: nor is one of any other order.
    """

    planned: int
    height: int
    lower_bound: int
    optimal: bool
    jointly_optimal: bool
    activations: int
    alignment_loss: int
    fragmentation: int
    overlapped: int
    outside: int
    constants: int
    state: int
    peak_step: int
    peak_op: str
    alive: tuple[Alive, ...]
    capacity: int | None
    runtime_plan: RuntimePlan | None
    kept: int
    refused: bool

    @property
    def gap(self) -> float:
        """How far the height is above the bound, as a share of the bound."""
        return (self.height - self.lower_bound) / self.lower_bound if self.lower_bound else 0.0

    @property
    def fits(self) -> bool | None:
        """Whether what is planned and what the runtime keeps beside it fit the capacity; None without one."""
        return None if self.capacity is None else not self.refused and self.planned + self.kept <= self.capacity


def summary(plan: Plan) -> Summary:
    """The figures of `plan`. Cost: O(n log n)."""
    problem, graph = plan.problem, plan.graph
    height = bounds.height(problem, plan.placement)
    planned = -(-height // plan.runtime.alignment) * plan.runtime.alignment
    step = bounds.peak_step(problem)
    alive = bounds.alive_at(problem, step)
    buffers = [problem[int(i)] for i in alive]
    raw = sum(class_bytes(graph, b.members) if b.members else b.size for b in buffers)  # before padding
    held = int(problem.size[alive].sum())
    overlapped = held - _covered(plan, alive)
    apart = {*graph.inputs, *graph.outputs} if plan.runtime.outputs == "apart" else set()  # not kept in the arena
    return Summary(
        planned=planned,
        height=height,
        lower_bound=plan.placement.lower_bound,
        optimal=height == plan.placement.lower_bound,
        jointly_optimal=not plan.overlaps and height == plan.schedule.lower_bound,
        activations=raw,
        alignment_loss=held - raw,
        fragmentation=planned - held + overlapped,
        overlapped=overlapped,
        outside=sum(b.size for b in buffers if any(m.tensor in apart for m in b.members)),
        constants=bytes_of(graph, Kind.CONSTANT),
        state=bytes_of(graph, Kind.STATE),
        peak_step=step,
        peak_op=op_at(plan, step),
        alive=tuple(_alive(graph, buffer, held) for buffer in buffers),
        capacity=problem.capacity,
        runtime_plan=runtime_plan(plan),
        kept=plan.requirement.kept if plan.requirement else 0,
        refused=bool(plan.requirement and plan.requirement.refusals),
    )


def _covered(plan: Plan, alive: IntArray) -> int:
    """Bytes of the arena that hold at least one of the buffers `alive`."""
    top = covered = 0
    offsets, sizes = plan.placement.offsets, plan.problem.size
    for start, size in sorted((int(offsets[i]), int(sizes[i])) for i in alive):
        covered += max(start + size - max(top, start), 0)
        top = max(top, start + size)
    return covered


def op_at(plan: Plan, step: int) -> str:
    """The op that runs at `step`, as messages call it."""
    order = plan.schedule.order
    return plan.graph.label(order[step]) if step < len(order) else "no operator"


def runtime_plan(plan: Plan) -> RuntimePlan | None:
    """What the plan's runtime does by itself with the same graph; None where the plan does not say."""
    if plan.runtime_height is None:
        return None
    return RuntimePlan(plan.runtime.name, plan.runtime.allocator, plan.runtime_height)


def _alive(graph: Graph, buffer: Buffer, held: int) -> Alive:
    names = tuple(graph.tensors[m.tensor].name for m in buffer.members) or (buffer.name,)
    return Alive(names, buffer.size, buffer.size / held if held else 0.0, buffer.start, buffer.end)


def bytes_of(graph: Graph, kind: Kind) -> int:
    """Bytes of one kind, those of bodies included; of constants what the file holds."""
    tensors = (t for part in (graph, *graph.bodies) for t in part.tensors if t.kind is kind)
    return sum(max(t.file_bytes, 0) for t in tensors)
