"""Operators each element of whose result is one C expression of the elements x, y and z at its place in the operands.

Source: the kernels of tflite-micro (2026-08), whose order of operations is kept, and so each bit of a float.
"""

import re
from typing import NamedTuple

from modelplan.plain_c.operator_calls.function_tables import UNARY


class Expression(NamedTuple):
    """An expression, the types of operands that it is for, as variants name them, and what results are, "" as these.

    Numbers of 8 and 16 bits that are `scaled` are brought to a scale of their own before: x and y have 32 bits then.
    """

    text: str
    types: str
    result: str = ""
    scaled: bool = False

    @property
    def operands(self) -> int:
        """How many operands it is of."""
        return len(set(re.findall(r"\b[xyz]\b", self.text)))


_LEAST_AND_MOST = "float int8 int16 int32 int64"
#: What is left of x over y, of the sign of y.
_REMAINDER = "fmodf(x, y) != 0.0f && (y < 0.0f) != (fmodf(x, y) < 0.0f) ? fmodf(x, y) + y : fmodf(x, y)"
_SQUARED = "clamp(requantise((x - y) * (x - y), p->multiplier, p->shift) + p->out_zero, ELEMENT_MIN, ELEMENT_MAX)"


def _compared(sign: str, more: str = "") -> tuple[Expression, ...]:
    return (
        Expression(f"x {sign} y", f"float int32 int64 {more}", "bool"),
        Expression(f"x {sign} y", "int8", "bool", scaled=True),
    )


def _wrapped(sign: str) -> Expression:
    return Expression(f"(int32_t)((uint32_t)x {sign} (uint32_t)y)", "int32")


#: What each kind computes, for some types of operands.
EXPRESSIONS: dict[str, tuple[Expression, ...]] = {
    **{kind: (Expression(row.text, "float"),) for kind, row in UNARY.items()},
    "LOGICAL_NOT": (Expression("!x", "bool"),),
    "ZEROS_LIKE": (Expression("((void)x, 0)", "float int8 int32 int64"),),
    "CAST": (Expression("x", "float int8 int16 int32 uint32 bool"),),
    "ADD": (_wrapped("+"),),
    "SUB": (_wrapped("-"),),
    "MUL": (_wrapped("*"),),
    "DIV": (Expression("(int64_t)x / (y == 0 ? 1 : y)", "int32"),),
    "MAXIMUM": (Expression("x > y ? x : y", _LEAST_AND_MOST),),
    "MINIMUM": (Expression("x < y ? x : y", _LEAST_AND_MOST),),
    "FLOOR_DIV": (Expression("floor((double)x / (double)y)", "float"),),
    "FLOOR_MOD": (Expression(_REMAINDER, "float"),),
    "SQUARED_DIFFERENCE": (
        Expression("(x - y) * (x - y)", "float"),
        Expression("(int32_t)(((uint32_t)x - (uint32_t)y) * ((uint32_t)x - (uint32_t)y))", "int32"),
        Expression(_SQUARED, "int8 int16", scaled=True),
    ),
    "EQUAL": _compared("==", "bool"),
    "NOT_EQUAL": _compared("!=", "bool"),
    "GREATER": _compared(">"),
    "GREATER_EQUAL": _compared(">="),
    "LESS": _compared("<"),
    "LESS_EQUAL": _compared("<="),
    "LOGICAL_AND": (Expression("x && y", "bool"),),
    "LOGICAL_OR": (Expression("x || y", "bool"),),
    "SELECT_V2": (Expression("x ? y : z", "float int8 int16"),),
}


#: What an operator may compute that TFLM has no kernel for, by the names of functions that networks state.
FUNCTIONS = {
    "erf": "erff(x)",
    "gelu": "0.5f * x * (1.0f + erff(x * 0.70710678118654752f))",
    "softplus": "(x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x)))",
    "mish": "x * tanhf((x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x))))",
    "swish": "x / (1.0f + expf(-x))",
}


def expression_of(kind: str, dtype: str) -> Expression | None:
    """What a kind of operator computes of operands of a type; None where it is no expression of C."""
    if kind.lower() in FUNCTIONS:
        return Expression(FUNCTIONS[kind.lower()], "float") if dtype == "float" else None
    return next((e for e in EXPRESSIONS.get(kind, ()) if dtype in e.types.split()), None)
