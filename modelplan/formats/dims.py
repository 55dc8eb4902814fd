"""What the caller says about extents that the file leaves open.

`batch=1` is the size of a symbol, `seq<=512` an upper bound of one, `input=1,3,640,640` the shape of a tensor.
"""

import ast
import operator
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from modelplan.primitives.errors import RequestError

_BINDING = re.compile(r"(?P<symbol>.+?)\s*(?P<relation><=|=)\s*(?P<extent>[0-9]{1,15})")
#: An extent that follows from those of other symbols.
_FOLLOWING = re.compile(r"(?P<symbol>[^=<]+?)\s*(?P<relation><=|=)\s*(?P<extent>[\w\s+*/()-]*[A-Za-z_][\w\s+*/()-]*)")
_SHAPE = re.compile(r"(?P<name>.+)=(?P<extents>(?:\s*[0-9]{1,15}\s*(?:,\s*[0-9]{1,15}\s*)*)?)", re.DOTALL)
_EXPRESSION = re.compile(r"[\w\s+*/()-]*[+*/-][\w\s+*/()-]*")
_LONGEST_EXPRESSION = 200
#: Words for values.
_WORDS = {"true": 1.0, "false": 0.0}
_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def is_symbol(text: str) -> bool:
    """Whether a file's word for an open extent is a symbol, the same number wherever it stands.

    `?`, `-1` and `unk__7` are what tools write for an extent that they know nothing of; many extents share the first.
    """
    return text not in ("", "?", "-1") and not text.startswith("unk__")


def dim_option(symbol: str, extent: int | str, sign: str = "=") -> str:
    """The option that binds a symbol, quoted for a shell."""
    return f"--dim {shlex.quote(f'{symbol}{sign}{extent}')}"


def shape_text(name: str, shape: Sequence[int]) -> str:
    """The shape of a value as `--shape` takes it.

    >>> shape_text("x", (1, 3))
    'x=1,3'
    """
    return f"{name}={','.join(map(str, shape))}"


def shape_option(name: str, shape: Sequence[int | str]) -> str:
    """The option that gives a tensor its shape, quoted for a shell."""
    extents = ",".join(map(str, shape))
    return f"--shape {shlex.quote(f'{name}={extents}')}"


def value_option(name: str, numbers: Sequence[float] | str) -> str:
    """The option that gives an input its value, quoted for a shell."""
    given = numbers if isinstance(numbers, str) else ",".join(f"{number:g}" for number in numbers)
    return f"--value {shlex.quote(f'{name}={given}')}"


@dataclass(slots=True)
class Dims:
    """What the caller binds: `extents` by symbol, a name from the file or `TENSOR:AXIS`, and `shapes` by tensor.
    `values` are those of inputs, `types` those of computed values that a session infers, as onnx writes them.

    `bounds` are the symbols whose extent is an upper bound. `used` collects the symbols and tensors that the model
    asked for, so that the others can be refused. `implied` are the symbols that the shape of an input binds: the extent
    and the option that says so.
    """

    extents: dict[str, int] = field(default_factory=dict)
    bounds: frozenset[str] = frozenset()
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    values: dict[str, tuple[float, ...]] = field(default_factory=dict)
    types: dict[str, bytes] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    implied: dict[str, tuple[int, str]] = field(default_factory=dict)

    def extent(self, *symbols: str) -> int | None:
        """The extent of the first of `symbols` that is bound or a sum, difference or product of bound ones."""
        for symbol in symbols:
            if symbol in self.extents:
                self.used.add(symbol)
                return self.extents[symbol]
            if symbol in self.implied:
                return self.implied[symbol][0]
            if (known := self._in_shape(symbol)) is not None:
                return known
            if (self.extents or self.implied) and (known := self._computed(symbol)) is not None:
                return known
        return None

    def _in_shape(self, symbol: str) -> int | None:
        """The extent that a shape gives to `TENSOR:AXIS`."""
        name, _, axis = symbol.rpartition(":")
        if name not in self.shapes or not axis.isdecimal() or int(axis) >= len(self.shapes[name]):
            return None
        return self.shapes[name][int(axis)]

    def shape(self, name: str, declared: Sequence[int | str | None] | None) -> tuple[int, ...] | None:
        """The shape that the caller gives to the tensor, None where there is none; `declared` is what is known of it.

        Raises:
            RequestError: another rank or another extent than declared.
        """
        given = self.shapes.get(name)
        if given is None:
            return None
        self.used.add(name)
        known = given if declared is None else declared
        if len(known) != len(given) or any(isinstance(x, int) and x != y for x, y in zip(known, given, strict=True)):
            words = ", ".join("?" if extent is None else str(extent) for extent in known)
            raise RequestError(f"{shape_option(name, given)}: the model has [{words}] there")
        return given

    def imply(self, name: str, declared: Sequence[int | str | None] | None) -> None:
        """Binds the symbols of an input's declared shape to the extents that the caller gave it.

        Raises:
            RequestError: as `shape`, or another shape or extent gives the symbol another number.
        """
        for symbol, extent in zip(declared or (), self.shape(name, declared) or (), strict=False):
            if not isinstance(symbol, str) or not is_symbol(symbol):
                continue
            before, source = self.implied.get(symbol, (self.extents.get(symbol, extent), f"--dim {symbol}"))
            if before != extent:
                option = shape_option(name, self.shapes[name])
                raise RequestError(f"{option}: makes {symbol} {extent}, but {source} makes it {before}")
            self.used.add(symbol)
            self.implied.setdefault(symbol, (extent, shape_option(name, self.shapes[name])))

    def options(self) -> str:
        """The options that say the same on a command line; empty where nothing is bound."""
        signs = {symbol: "<=" if symbol in self.bounds else "=" for symbol in self.extents}
        dims = [dim_option(symbol, n, signs[symbol]) for symbol, n in self.extents.items()]
        shapes = (shape_option(name, shape) for name, shape in self.shapes.items())
        return " ".join((*dims, *shapes, *(value_option(name, numbers) for name, numbers in self.values.items())))

    def _computed(self, symbol: str) -> int | None:
        """The value of an exporter's expression such as `past_sequence + sequence`; None of a symbol alone."""
        return self.computed(symbol) if _EXPRESSION.fullmatch(symbol) else None

    def computed(self, symbol: str) -> int | None:
        """The value of an expression of symbols and numbers; None where one of them is not known."""
        if len(symbol) > _LONGEST_EXPRESSION:
            return None
        try:
            value = self._evaluated(ast.parse(symbol.strip(), mode="eval").body)
        except (SyntaxError, RecursionError, ZeroDivisionError):
            return None
        return value if value is not None and value >= 0 else None

    def _evaluated(self, node: ast.expr) -> int | None:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            return self.extent(node.id)
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
            RequestError: names the symbol and those that there are, without expressions of these.
        """
        for symbol in self.extents:
            if symbol not in self.used:
                there = ", ".join(_without_expressions(known)[:20]) or "none"
                raise RequestError(f"--dim {symbol}: the model has no open extent of that name; there are: {there}")
        for name in self.values:
            if name not in self.used:
                raise RequestError(f"--value {name}: the model has no input of that name whose value it can use")
        for name, shape in self.shapes.items():
            if name not in self.used:
                raise RequestError(
                    f"{shape_option(name, shape)}: the model has no tensor of that name that it could set"
                )


def _without_expressions(known: Iterable[str]) -> list[str]:
    """The symbols in order, without those that only combine others.

    >>> _without_expressions(["n", "floor(n/2 - 1/2) + 1", "batch-size", "x:0"])
    ['batch-size', 'n', 'x:0']
    """
    names = sorted(set(known))
    there = {*names, "floor", "ceil", "ceiling", "max", "min"}
    words = {name: re.findall(r"\w+", name) for name in names}
    return [
        name for name in names if words[name] == [name] or not all(w in there or w.isdecimal() for w in words[name])
    ]


def parsed(bindings: Iterable[str], shapes: Iterable[str] = (), values: Iterable[str] = ()) -> Dims:
    """The bindings `SYMBOL=N` and `SYMBOL<=N`, the shapes `TENSOR=N,N,...`, where no N is a scalar, and values.

    Raises:
        RequestError: another form, or a symbol or a tensor that is given twice.
    """
    extents: dict[str, int] = {}
    following: dict[str, str] = {}
    bounds = set()
    for text in bindings:
        match = _BINDING.fullmatch(text.strip()) or _FOLLOWING.fullmatch(text.strip())
        if not match:
            more = "; ranges are for `analyze`" if ".." in text else ""
            raise RequestError(f"--dim {text!r}: expected SYMBOL=N or SYMBOL<=N{more}")
        symbol = match["symbol"]
        if symbol in extents or symbol in following:
            raise RequestError(f"--dim {symbol} is given twice")
        if match["extent"].isdecimal():
            extents[symbol] = int(match["extent"])
        else:
            following[symbol] = match["extent"].strip()
        if match["relation"] == "<=":
            bounds.add(symbol)
    _follow(extents, following)
    return Dims(extents, frozenset(bounds), _parsed_shapes(shapes), parsed_values(values))


def _follow(extents: dict[str, int], following: dict[str, str]) -> None:
    """Adds the extents that follow from others, as in `total=past+1`.

    Raises:
        RequestError: one names a symbol without a number, or is no sum, difference or product of numbers and symbols.
    """
    while following:
        known = {
            symbol: n for symbol, text in following.items() if (n := Dims(dict(extents)).computed(text)) is not None
        }
        if not known:
            symbol, text = next(iter(following.items()))
            raise RequestError(
                f"--dim {symbol}={text}: expected a number, or a sum, difference or product of numbers and of symbols"
                " that --dim gives numbers; of at least 0"
            )
        extents |= known
        following = {symbol: text for symbol, text in following.items() if symbol not in known}


def _parsed_shapes(shapes: Iterable[str]) -> dict[str, tuple[int, ...]]:
    parsed_shapes: dict[str, tuple[int, ...]] = {}
    for text in shapes:
        match = _SHAPE.fullmatch(text)
        if not match:
            raise RequestError(f"--shape {text!r}: expected TENSOR=N,N,... such as input=1,3,640,640")
        if match["name"] in parsed_shapes:
            raise RequestError(f"--shape {match['name']} is given twice")
        parsed_shapes[match["name"]] = tuple(int(n) for n in match["extents"].split(",") if n.strip())
    return parsed_shapes


def parsed_values(values: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """The values of inputs, each `INPUT=N` or `INPUT=N,N,...`; true and false are numbers too.

    Raises:
        RequestError: another form, or an input that is given twice.
    """
    by_input: dict[str, tuple[float, ...]] = {}
    for text in values:
        name, equals, numbers = text.rpartition("=")
        try:
            known = tuple(_WORDS[word] if word in _WORDS else float(word) for word in numbers.lower().split(","))
        except ValueError:
            known = ()
        if not name or not equals or not known:
            raise RequestError(f"--value {text!r}: expected INPUT=N or INPUT=N,N,... such as sr=16000")
        if name in by_input:
            raise RequestError(f"--value {name} is given twice")
        by_input[name] = known
    return by_input
