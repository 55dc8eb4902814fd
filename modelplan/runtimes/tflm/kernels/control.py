"""TFLM's reference kernels of control flow and of variables."""

from modelplan.runtimes.tflm.kernels.calls import Subgraph
from modelplan.runtimes.tflm.kernels.checks import one_of
from modelplan.runtimes.tflm.kernels.preparation import Operator, Preparation

_NO_VARIABLES = "its variable is named by no VAR_HANDLE before it"


def _if(p: Preparation) -> None:
    p.require(bool(p.call.inputs), "no inputs")
    choice = p.input(0)
    one_of(p, choice, "input 0", "bool")
    p.require(choice.elements == 1, f"a condition of {choice.elements} values")
    for called in p.call.calls[:2]:
        _exists(p, called)
    _fits(p, p.call.calls[:1], len(p.call.inputs) - 1, len(p.call.outputs))


def _while(p: Preparation) -> None:
    for called in p.call.calls[:2]:
        _exists(p, called)
    count = len(p.call.inputs)
    p.require(count == len(p.call.outputs), f"{count} inputs and {len(p.call.outputs)} outputs")
    _fits(p, p.call.calls[:1], count, None)
    _fits(p, p.call.calls[1:2], count, count)


def _call_once(p: Preparation) -> None:
    p.require(not p.call.inputs and not p.call.outputs, "operands, which its kernel does not take")
    for called in p.call.calls[:1]:
        _exists(p, called)


def _exists(p: Preparation, called: Subgraph) -> None:
    p.require(called.inputs is not None, "a subgraph that does not exist")


def _fits(p: Preparation, called: tuple[Subgraph, ...], inputs: int, outputs: int | None) -> None:
    for subgraph in called:
        p.require(subgraph.inputs == inputs, f"{inputs} values for a subgraph of {subgraph.inputs} inputs")
        p.require(
            outputs in (None, subgraph.outputs), f"{outputs} outputs for a subgraph of {subgraph.outputs} outputs"
        )


def _var_handle(p: Preparation) -> None:
    if p.variables is not None:
        number = p.variables.named(p.call.text("container"), p.call.text("shared_name"))
        for key in p.keys[1][:1]:
            p.variables.handles[key] = number


def _variable(p: Preparation) -> int | None:
    """The variable that input 0 names, None where variables are not followed."""
    if p.variables is None:
        return None
    number = p.variables.handles.get(p.keys[0][0])
    p.require(number is not None, _NO_VARIABLES)
    return number


def _read_variable(p: Preparation) -> None:
    p.counts(1)
    handle = p.input(0)
    one_of(p, handle, "input 0", "resource")
    p.require(handle.elements == 1, f"a handle of {handle.elements} values")
    _variable(p)


def _assign_variable(p: Preparation) -> None:
    p.counts(2, 0)
    handle = p.call.input(0)
    one_of(p, handle, "input 0", "resource", "int32")
    p.require(handle.elements == 1, f"a handle of {handle.elements} values")
    value, number = p.input(1), _variable(p)
    if p.variables is not None and number is not None and number not in p.variables.allocated:
        p.variables.allocated.add(number)
        p.keep(value.nbytes)


OPERATORS: dict[str, Operator] = {
    "IF": Operator(("int*2",), ("int*2",), _if),
    "WHILE": Operator(("int*2",), ("int*2",), _while),
    "CALL_ONCE": Operator(("int",), ("int", "bool"), _call_once),
    "VAR_HANDLE": Operator(("pointer*2",), ("int32",), _var_handle),
    "READ_VARIABLE": Operator((), (), _read_variable),
    "ASSIGN_VARIABLE": Operator((), ("compressed",), _assign_variable, unpacks=(1,)),
}
