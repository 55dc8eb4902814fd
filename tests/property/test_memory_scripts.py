"""Generated MEMORY blocks: their numbers are those of an evaluation of its own, and those of the GNU linker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import linking
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shares import examples

from modelplan import ModelError
from modelplan.targets.device import Device, Interval, Region, blocks
from modelplan.targets.devicetree import read_devicetree
from modelplan.targets.linker_script import read_linker_script
from modelplan.targets.occupied import read_map

MASK = 0xFFFFF


@dataclass(frozen=True)
class Value:
    """An expression as a script has it, and its value."""

    text: str
    number: int


def atoms(units: int = 3) -> st.SearchStrategy[Value]:
    """Numbers in each form, `units` of which have a unit."""
    small = st.integers(0, 5000)
    forms: list[Callable[[int], Value]] = [
        lambda n: Value(str(n), n),
        lambda n: Value(f"{n:#x}", n),
        lambda n: Value(f"0{n:o}", n),
        lambda n: Value(f"{n}K", n * 1024),
        lambda n: Value(f"{n % 8}M", n % 8 * 1024 * 1024),
        lambda n: Value(f"0x{n:X}k", n * 1024),
    ]
    return st.builds(lambda n, form: form(n), small, st.sampled_from(forms[: 3 + units]))


def binary(a: Value, sign: str, b: Value) -> Value:
    """Two values with a sign between, in parentheses; computed as C does on 64 bits."""
    x, y = a.number, b.number
    quotient = 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    table = {
        "+": x + y, "-": x - y, "*": x * y, "|": x | y, "&": x & y, "/": quotient,
        "==": int(x == y), "<": int(x < y), ">=": int(x >= y), "&&": int(bool(x) and bool(y)),
    }  # fmt: skip
    return Value(f"({a.text} {sign} {b.text})", table[sign])


def grown(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    positive = inner.filter(lambda v: v.number >= 0)
    return st.one_of(
        st.builds(binary, inner, st.sampled_from(["+", "-", "*", "|", "&"]), inner),
        st.builds(binary, inner, st.just("/"), inner.filter(lambda v: v.number != 0)),
        st.builds(binary, positive, st.sampled_from(["==", "<", ">=", "&&"]), positive),
        st.builds(lambda a, n: Value(f"({a.text} << {n})", a.number << n), positive, st.integers(0, 8)),
        st.builds(lambda a, n: Value(f"({a.text} >> {n})", a.number >> n), positive, st.integers(0, 8)),
        st.builds(lambda a: Value(f"~{a.text}", ~a.number), inner),
        st.builds(
            lambda c, a, b: Value(f"({c.text} ? {a.text} : {b.text})", a.number if c.number else b.number),
            inner, inner, inner,
        ),
    )  # fmt: skip


VALUES = st.recursive(atoms(), grown, max_leaves=8).filter(lambda v: abs(v.number) < 2**40)


CELLS = st.recursive(atoms(units=0), grown, max_leaves=8).filter(lambda v: abs(v.number) < 2**40)


@dataclass(frozen=True)
class Script:
    text: str
    sizes: tuple[int, ...]


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """A script whose regions have lengths by expressions, some through symbols before or after MEMORY."""
    values = draw(st.lists(VALUES, min_size=1, max_size=6))
    through = draw(st.lists(st.sampled_from(["", "before", "after"]), min_size=len(values), max_size=len(values)))
    lines, base = {"before": "", "": "", "after": ""}, 0x10000000
    for n, (value, way) in enumerate(zip(values, through, strict=True)):
        length = f"({value.text} & {MASK:#x}) + 16"
        if way:
            lines[way] += f"symbol_{n} = {length};\n"
            length = f"symbol_{n}"
        lines[""] += f"  R{n} (rw) : ORIGIN = {base:#x} + {n}M * 2, LENGTH = {length}\n"
    text = f"{lines['before']}MEMORY {{\n{lines['']}}}\n{lines['after']}"
    return Script(text, tuple((value.number & MASK) + 16 for value in values))


def sizes(device: Device) -> tuple[int, ...]:
    return tuple(region.size for region in device.regions)


@given(scripts())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lengths_are_those_of_an_evaluation_of_its_own(tmp_path: Path, script: Script) -> None:
    (tmp_path / "x.ld").write_text(script.text)
    device = read_linker_script(str(tmp_path / "x.ld"), {})
    assert sizes(device) == script.sizes
    assert [region.base for region in device.regions] == [0x10000000 + (n << 21) for n in range(len(script.sizes))]


@given(scripts())
@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lengths_are_those_of_the_linker(tmp_path: Path, script: Script) -> None:
    program = tmp_path / "program.o"
    if not program.exists():
        linking.object_file(tmp_path)
    (tmp_path / "x.ld").write_text(script.text)
    found = linking.memory_of(tmp_path / "x.ld", program)
    assert isinstance(found, Path), found
    assert sizes(read_map(str(found))) == script.sizes


@given(CELLS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cells_of_a_devicetree_are_those_of_an_evaluation_of_its_own(tmp_path: Path, value: Value) -> None:
    text = f'/ {{ #address-cells = <1>; #size-cells = <1>; m: m@0 {{ compatible = "mmio-sram"; reg = <0 ({value.text} '
    (tmp_path / "x.dts").write_text(text + f"& {MASK:#x})>; }}; }};")
    size = value.number & MASK
    if size:
        assert sizes(read_devicetree(str(tmp_path / "x.dts"), {})) == (size,)
    else:
        with pytest.raises(ModelError, match="m has 0 bytes"):
            read_devicetree(str(tmp_path / "x.dts"), {})


@given(st.text(alphabet="MEORY{}()=:,;<>&|~?!+-*/0x1KAF#\"' \n.define ORIGIN LENGTH", max_size=80), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_read_or_refused(tmp_path: Path, text: str, inside: bool) -> None:
    (tmp_path / "x.ld").write_text(f"MEMORY {{ {text} }}" if inside else text)
    (tmp_path / "x.dts").write_text(f"/ {{ m: m {{ {text} }}; }};" if inside else text)
    for read, name in ((read_linker_script, "x.ld"), (read_devicetree, "x.dts")):
        try:
            found: tuple[Region | str, ...] = read(str(tmp_path / name), {}).regions
        except ModelError as problem:
            found = (str(problem),)
        assert found
        assert isinstance(found[0], Region) or name in found[0]


REGIONS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 12), st.integers(0, 12), st.sampled_from(["start", "end"])),
    min_size=1,
    max_size=6,
)


@given(REGIONS, st.lists(st.tuples(st.integers(0, 50), st.integers(0, 6)), max_size=4))
def test_blocks_are_the_runs_of_free_addresses(
    rows: list[tuple[int, int, int, str]], taken: list[tuple[int, int]]
) -> None:
    unit = 16
    regions = tuple(
        Region(f"r{n}", size * unit, base * unit, reserved=min(kept, size) * unit, reserved_at=at)  # type: ignore[arg-type]
        for n, (base, size, kept, at) in enumerate(rows)
    )
    used = [Interval(start * unit, (start + size) * unit) for start, size in taken]
    free = {a for base, size, _, _ in rows for a in range(base, base + size)}
    for base, size, kept, at in rows:
        kept = min(kept, size)
        free -= set(range(base, base + kept) if at == "start" else range(base + size - kept, base + size))
    free -= {a for start, size in taken for a in range(start, start + size)}
    runs = [a for a in free if a - 1 not in free]
    expected = sorted((next(n for n in range(1, 60) if a + n not in free) * unit, a * unit) for a in runs)
    found = blocks(Device("d", "d", regions, "here"), used)
    assert sorted((block.size, block.start) for block in found) == expected
