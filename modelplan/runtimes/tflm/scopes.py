"""What TFLM does in each of its scopes: which operator runs, and where the subgraphs that operators call begin."""

from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.planner import Clock, clock_of

#: What the subgraphs of an operator are to it, in TFLM's order.
_ROLES = {"WHILE": ("condition", "body"), "IF": ("then branch", "else branch"), "CALL_ONCE": ("initialization",)}


@dataclass(frozen=True, slots=True)
class Scope:
    """One scope: operator `op` of `subgraph`, or -1 where that begins. `caller` is the (subgraph, operator) that calls
    it and `call` which of its calls that is; (-1, -1) and 0 for the main subgraph.
    """

    subgraph: int
    op: int
    caller: tuple[int, int] = (-1, -1)
    call: int = 0


def scopes_of(model: FileModel, most: int) -> tuple[Scope, ...]:
    """The scopes of one invocation, each body once, as TFLM plans it; nothing where they are more than `most`.

    Raises:
        ModelError: an operator calls a subgraph that does not exist, or recursively.
    """
    clock = clock_of(model)
    if clock.walks[0].scope >= most:
        return ()
    scopes = [Scope(0, -1)] * (clock.walks[0].scope + 1)
    _fill(scopes, model, clock, 0, Scope(0, -1))
    return tuple(scopes)


def _fill(scopes: list[Scope], model: FileModel, clock: Clock, at: int, begin: Scope) -> None:
    """Writes the scopes of one run of a subgraph that begins in scope `at`."""
    index, walk = begin.subgraph, clock.walks[begin.subgraph]
    scopes[at] = begin
    calls = iter(walk.calls)
    for number, op in enumerate(model.subgraphs[index].ops):
        scopes[at + walk.entered[number]] = Scope(index, number, begin.caller, begin.call)
        for call in range(len(op.calls)):
            called, start = next(calls)
            _fill(scopes, model, clock, at + start, Scope(called, -1, (index, number), call))


def words_of(model: FileModel, scope: Scope) -> str:
    """What happens in a scope, in a few words."""
    subgraph, number = scope.caller
    where = ""
    if subgraph >= 0:
        caller = model.subgraphs[subgraph].ops[number]
        roles = _ROLES.get(caller.kind, ())
        role = roles[scope.call] if scope.call < len(roles) else f"subgraph {scope.subgraph}"
        where = f"{role} of op {number} {caller.kind}" + (f" in subgraph {subgraph}" if subgraph else "")
    if scope.op < 0:
        return f"{where} begins" if where else "the inputs are set"
    words = f"op {scope.op} {model.subgraphs[scope.subgraph].ops[scope.op].kind}"
    return f"{words} in the {where}" if where else words
