"""What the caller says about extents that the file leaves open: `batch=1` is a size, `seq<=512` an upper bound."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from modelplan.errors import RequestError

_BINDING = re.compile(r"(?P<symbol>.+?)\s*(?P<relation><=|=)\s*(?P<extent>[0-9]{1,15})")
_EXPRESSION = re.compile(r"[\w\s+*/()-]*[+*/-][\w\s+*/()-]*")
_LONGEST_EXPRESSION = 200
_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(slots=True)
class Dims:
    """Extents by symbol; a symbol is a name from the file or `TENSOR:AXIS`. Remembers which ones were asked for."""

    extents: dict[str, int] = field(default_factory=dict)
    bounds: frozenset[str] = frozenset()
    used: set[str] = field(default_factory=set)

    def extent(self, *symbols: str) -> int | None:
        """The extent of the first of `symbols` that is bound or a sum, difference or product of bound ones."""
        for symbol in symbols:
            if symbol in self.extents:
                self.used.add(symbol)
                return self.extents[symbol]
            if self.extents and (found := self._computed(symbol)) is not None:
                return found
        return None

    def _computed(self, symbol: str) -> int | None:
        """The value of an exporter's expression such as `past_sequence + sequence`."""
        if len(symbol) > _LONGEST_EXPRESSION or not _EXPRESSION.fullmatch(symbol):
            return None
        try:
            found = self._evaluated(ast.parse(symbol.strip(), mode="eval").body)
        except (SyntaxError, RecursionError, ZeroDivisionError):
            return None
        return found if found is not None and found >= 0 else None

    def _evaluated(self, node: ast.expr) -> int | None:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            self.used |= {node.id} & self.extents.keys()
            return self.extents.get(node.id)
        if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATIONS:
            return None
        left, right = self._evaluated(node.left), self._evaluated(node.right)
        return None if left is None or right is None else _OPERATIONS[type(node.op)](left, right)

    def remarks(self) -> tuple[str, ...]:
        """What a reader of the plan must know about the bindings."""
        bounds = sorted(self.bounds & self.used)
        return tuple(f"planned for the upper bound {symbol} <= {self.extents[symbol]}" for symbol in bounds)

    def check_used(self, known: Iterable[str]) -> None:
        """Refuses a binding that nothing in the file asked for.

        Raises:
            RequestError: names the symbol and those that there are.
        """
        for symbol in self.extents:
            if symbol not in self.used:
                there = ", ".join(sorted(set(known))[:20]) or "none"
                raise RequestError(f"--dim {symbol}: the model has no open extent of that name; there are: {there}")


def parsed(bindings: Iterable[str]) -> Dims:
    """The bindings `SYMBOL=N` and `SYMBOL<=N`.

    Raises:
        RequestError: another form, or a symbol bound twice.
    """
    extents: dict[str, int] = {}
    bounds = set()
    for text in bindings:
        match = _BINDING.fullmatch(text.strip())
        if not match:
            raise RequestError(f"--dim {text!r}: expected SYMBOL=N or SYMBOL<=N")
        symbol = match["symbol"]
        if symbol in extents:
            raise RequestError(f"--dim {symbol} is given twice")
        extents[symbol] = int(match["extent"])
        if match["relation"] == "<=":
            bounds.add(symbol)
    return Dims(extents, frozenset(bounds))
