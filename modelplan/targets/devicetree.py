"""Reads the memory nodes of a devicetree source: `mmio-sram`, memory regions, tightly coupled and external memory.

`build/zephyr/zephyr.dts` of a Zephyr build holds everything in one file; of a source the included files are looked up
beside it, in a folder of `--include`, and where Zephyr keeps them. Overrides by `&label` count, disabled nodes do not,
and what `/reserved-memory` keeps is taken from the regions. A header that only defines names may be missing as long
as none of its names is needed; any other file that is missing is an error that names it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from pathlib import Path

from modelplan.primitives.errors import ModelError
from modelplan.targets.arithmetic import ExpressionError, evaluate, parse_expression, tokens_of
from modelplan.targets.device import Device, Interval, Kind, Region, is_external
from modelplan.targets.preprocessing import Line, Macro, Preprocessor

#: Names that Zephyr's mem.h defines.
_SIZES = {"DT_SIZE_K": Macro("((x) * 1024)", ("x",)), "DT_SIZE_M": Macro("((x) * 1024 * 1024)", ("x",))}
_NAME = r"[\w,.+*#?@-]+"
_STATEMENT = re.compile(
    rf"\s*(?P<directive>/[a-z0-9-]+/\s*[^;{{}}]*;)|\s*(?P<labels>(?:\w+:\s*)*)"
    rf"(?:(?P<end>\}}\s*;?)|(?P<name>&\{{[^}}]*\}}|&?{_NAME}|/)\s*(?P<sign>[{{=;])|(?P<stray>;))"
)
_INCLUDE = re.compile(r'\s*/include/\s*"([^"]+)"\s*')
_VALUE = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^;"])*;', re.S)
_CELL = re.compile(r"\s*(?:(?P<open>\()|(?P<word>&?[\w{/}.,@-]+|&\{[^}]*\}|'[^']*'))")
#: Words of `compatible` that tell tightly coupled memory, RAM, and memory that a program does not write.
_TIGHT = re.compile(r"[,-][id]tcm$|^[id]tcm$")
_RAM = ("mmio-sram", "zephyr,memory-region")
_FLASH = ("soc-nv-flash",)
_DEEPEST = 60


@dataclass(slots=True, eq=False)
class TreeNode:
    """A node: its properties as text with their places, its children, and the labels by which others name it."""

    name: str
    parent: TreeNode | None = None
    labels: list[str] = field(default_factory=list)
    properties: dict[str, Line] = field(default_factory=dict)
    children: dict[str, TreeNode] = field(default_factory=dict)

    def descendants(self) -> Iterator[TreeNode]:
        """The node and all below it."""
        yield self
        for child in self.children.values():
            yield from child.descendants()

    def words(self, name: str) -> list[str]:
        """The strings that a property holds."""
        return re.findall(r'"((?:[^"\\]|\\.)*)"', self.properties[name].text) if name in self.properties else []

    @property
    def enabled(self) -> bool:
        """Whether neither the node nor one above it is disabled."""
        above = self.parent is None or self.parent.enabled
        return above and self.words("status") in ([], ["okay"], ["ok"])


def read_devicetree(path: str, definitions: Mapping[str, str], folders: Sequence[Path] = ()) -> Device:
    """The memory of a devicetree source; `definitions` gives values to names that it leaves open.

    Raises:
        ModelError: names the file, the line, and what is missing or cannot be read.
    """
    macros = _SIZES | {name: Macro(f"({value})") for name, value in definitions.items()}
    reader = Preprocessor([*folders, *_usual_folders(path)], macros, optional=(".h",), statement=_INCLUDE)
    lines = list(reader.lines(path))
    root, nodes = _Parser(lines, path).tree()
    taken = _reserved(root, nodes, reader.missing)
    regions = tuple(_regions(root, reader.missing))
    if not regions:
        raise ModelError(f"{path}: no enabled memory node with a reg property")
    title = (root.words("model") or root.words("compatible") or ["devicetree"])[0]
    try:
        remarks = tuple(f"/reserved-memory keeps {end - start:,} bytes at {start:#x}" for start, end in taken)
        return Device(Path(path).name, title, regions, path, taken=tuple(taken), remarks=remarks)
    except ValueError as problem:
        raise ModelError(f"{path}: {problem}") from None


def _usual_folders(path: str) -> list[Path]:
    """Where Zephyr's build looks for what a devicetree includes."""
    above = list(Path(path).resolve().parents)
    roots = [folder for folder in above if folder.name == "dts"]
    return [*above, *(place for root in roots for place in (root / "common", root.parent / "include"))]


@dataclass(slots=True)
class _Parser:
    """The text of a devicetree, and the nodes that have a label."""

    lines: Sequence[Line]
    path: str
    root: TreeNode = field(default_factory=lambda: TreeNode("/"))
    labelled: dict[str, TreeNode] = field(default_factory=dict)
    text: str = ""
    starts: list[int] = field(default_factory=list)

    def tree(self) -> tuple[TreeNode, dict[str, TreeNode]]:
        """The root, and the nodes by label."""
        self.text = "".join(f"{line.text}\n" for line in self.lines).rstrip()
        self.starts = list(accumulate((len(line.text) + 1 for line in self.lines), initial=0))[:-1]
        open_nodes: list[TreeNode] = []
        at = 0
        while at < len(self.text):
            match = _STATEMENT.match(self.text, at)
            if match is None or (match["end"] and not open_nodes):
                raise ModelError(f"{self.place(at)}: cannot read {self.text[at : at + 60].strip().splitlines()[0]!r}")
            at = match.end()
            if match["directive"]:
                self._delete(match["directive"].rstrip(";").split(), open_nodes)
            elif match["end"]:
                open_nodes.pop()
            elif match["name"]:
                at = self._statement(match, open_nodes, at)
        if open_nodes:
            raise ModelError(f"{self.path}: the node {open_nodes[-1].name} has no end")
        return self.root, self.labelled

    def place(self, at: int) -> str:
        """The file and line of a position, of the first thing that is not a space."""
        rest = re.compile(r"\s*").match(self.text, at)
        return self.line(rest.end() if rest else at).place

    def line(self, at: int) -> Line:
        return self.lines[max(0, bisect_right(self.starts, at) - 1)]

    def _statement(self, match: re.Match[str], open_nodes: list[TreeNode], at: int) -> int:
        name, sign, where = match["name"], match["sign"], self.line(match.start("name"))
        if sign == "{":
            if len(open_nodes) > _DEEPEST:
                raise ModelError(f"{where.place}: more than {_DEEPEST} nodes inside each other")
            node = self._node(name, open_nodes, where)
            for label in match["labels"].replace(":", " ").split():
                node.labels.append(label)
                self.labelled[label] = node
            open_nodes.append(node)
            return at
        if not open_nodes:
            raise ModelError(f"{where.place}: the property {name} stands outside of a node")
        value = ""
        if sign == "=":
            value_match = _VALUE.match(self.text, at)
            if value_match is None:
                raise ModelError(f"{where.place}: the property {name} has no end")
            value, at = value_match[0][:-1], value_match.end()
        open_nodes[-1].properties[name] = where._replace(text=value)
        return at

    def _node(self, name: str, open_nodes: list[TreeNode], where: Line) -> TreeNode:
        """The node that is opened: the root, one that exists already, or a new child."""
        if name == "/":
            return self.root
        if name[0] == "&":
            tree_node = self.find(name)
            if tree_node is None:
                raise ModelError(f"{where.place}: there is no node {name}; is the file that defines it missing?")
            return tree_node
        if not open_nodes:
            raise ModelError(f"{where.place}: the node {name} stands outside of the root")
        return open_nodes[-1].children.setdefault(name, TreeNode(name, open_nodes[-1]))

    def find(self, reference: str) -> TreeNode | None:
        """The node of `&label` or `&{/path}`."""
        if not reference.startswith("&{"):
            return self.labelled.get(reference[1:])
        node: TreeNode | None = self.root
        for part in reference[2:-1].strip("/").split("/"):
            node = node.children.get(part) if node else None
        return node

    def _delete(self, words: Sequence[str], open_nodes: list[TreeNode]) -> None:
        """Obeys /delete-node/ and /delete-property/; other directives do not matter for memory."""
        if words[0] == "/delete-property/" and open_nodes:
            open_nodes[-1].properties.pop(words[1], None)
        elif words[0] == "/delete-node/":
            named = words[1].startswith("&")
            node = self.find(words[1]) if named else open_nodes[-1].children.get(words[1]) if open_nodes else None
            if node is not None and node.parent is not None:
                node.parent.children.pop(node.name, None)


def _regions(root: TreeNode, missing: Sequence[str]) -> Iterator[Region]:
    """The memory nodes that are enabled and have a reg property."""
    reserved = root.children.get("reserved-memory")
    kept = set(map(id, reserved.descendants())) if reserved else set()
    for node in root.descendants():
        kind = _kind(node)
        if kind is None or "reg" not in node.properties or not node.enabled or id(node) in kept:
            continue
        ranges = list(_addresses(node, missing))
        called = [*node.labels, *node.words("zephyr,memory-region"), node.name][0]
        for index, (start, end) in enumerate(ranges):
            name = called + (f"-{index}" if len(ranges) > 1 else "")
            try:
                yield Region(name, end - start, start, kind)
            except ValueError as problem:
                raise ModelError(f"{node.properties['reg'].place}: {problem}") from None


def _kind(node: TreeNode) -> Kind | None:
    """What the node says that it is; None for no memory."""
    compatible = node.words("compatible")
    if any(_TIGHT.search(word) for word in compatible):
        return "tcm"
    if any(word in _FLASH for word in compatible):
        return "nvm"
    memory = any(word in _RAM for word in compatible) or node.words("device_type") == ["memory"]
    if not memory:
        return None
    names = (node.name, *node.labels, *node.words("zephyr,memory-region"), *compatible)
    return "psram" if any(map(is_external, names)) else "ram"


def _reserved(root: TreeNode, nodes: Mapping[str, TreeNode], missing: Sequence[str]) -> list[Interval]:
    """What /reserved-memory keeps, except the part that the program itself is linked into."""
    reserved, chosen = root.children.get("reserved-memory"), root.children.get("chosen")
    if reserved is None or not reserved.enabled:
        return []
    own = chosen.properties["zephyr,sram"].text.strip(" <>&") if chosen and "zephyr,sram" in chosen.properties else ""
    others = [n for n in reserved.children.values() if n is not nodes.get(own) and n.enabled and "reg" in n.properties]
    return [interval for node in others for interval in _addresses(node, missing)]


def _addresses(node: TreeNode, missing: Sequence[str]) -> Iterator[Interval]:
    """The addresses of a node as the processor sees them."""
    where, parent = node.properties["reg"], node.parent
    assert parent is not None
    reg_cells = cells(where, missing)
    wide = _cell_count(parent, "#address-cells", where), _cell_count(parent, "#size-cells", where)
    if not reg_cells or not sum(wide) or len(reg_cells) % sum(wide):
        raise ModelError(f"{where.place}: reg has {len(reg_cells)} cells, expected a multiple of {wide[0]} + {wide[1]}")
    for at in range(0, len(reg_cells), sum(wide)):
        start = _joined(reg_cells[at : at + wide[0]])
        size = _joined(reg_cells[at + wide[0] : at + sum(wide)])
        start = _translated(parent, start, missing)
        yield Interval(start, start + size)


def _cell_count(node: TreeNode, name: str, where: Line) -> int:
    if name not in node.properties:
        raise ModelError(f"{where.place}: {node.name} does not say its {name}; is an included file missing?")
    numbers = cells(node.properties[name], ())
    if not numbers:
        raise ModelError(f"{node.properties[name].place}: {name} has no value")
    return numbers[0]


def _joined(values: Sequence[int]) -> int:
    """The number in cells of 32 bits, the highest first."""
    return reduce(lambda number, value: number << 32 | value, values, 0)


def _translated(bus: TreeNode, address: int, missing: Sequence[str]) -> int:
    """An address on a bus as its parent sees it, up to the root; a bus without `ranges` or with an empty one is 1:1."""
    parent, where = bus.parent, bus.properties.get("ranges")
    if parent is None or where is None:
        return address
    if where.text.strip():
        own, up = _cell_count(bus, "#address-cells", where), _cell_count(parent, "#address-cells", where)
        row = own + up + _cell_count(bus, "#size-cells", where)
        range_cells = cells(where, missing)
        for at in range(0, len(range_cells) - row + 1, row):
            start, target = _joined(range_cells[at : at + own]), _joined(range_cells[at + own : at + own + up])
            if start <= address < start + _joined(range_cells[at + own + up : at + row]):
                return _translated(parent, address - start + target, missing)
        raise ModelError(f"{where.place}: the ranges of {bus.name} do not hold the address {address:#x}")
    return _translated(parent, address, missing)


def cells(value: Line, missing: Sequence[str]) -> list[int]:
    """The numbers in the angle brackets of a property.

    Raises:
        ModelError: names the place and what is no number.
    """
    numbers = []
    for text in _groups(value.text):
        at = 0
        while text[at:].strip():
            match = _CELL.match(text, at)
            end = _closed(text, match.start("open")) if match and match["open"] else match.end() if match else at + 1
            numbers.append(_number(text[at:end].strip(), value, missing))
            at = end
    return numbers


def _groups(text: str) -> Iterator[str]:
    """What stands in each pair of angle brackets; those in parentheses are operators."""
    text, start, depth = re.sub(r'"(?:[^"\\]|\\.)*"', "", text), -1, 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == "<":
            start = index + 1
        elif depth == 0 and character == ">" and start >= 0:
            yield text[start:index]
            start = -1


def _closed(text: str, at: int) -> int:
    """The position after the parenthesis that closes the one at a position."""
    depth = 0
    for index in range(at, len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if depth == 0:
            return index + 1
    return len(text)


def _number(text: str, value: Line, missing: Sequence[str]) -> int:
    def unknown(name: str) -> int:
        asked = f"; it may stand in {', '.join(missing)}, which is missing" if missing else ""
        raise ExpressionError(f"{name} is not defined{asked}; --define {name}=VALUE gives it a value")

    try:
        return evaluate(parse_expression(tokens_of(text)), unknown)
    except ExpressionError as problem:
        raise ModelError(f"{value.place}: {problem}") from None
