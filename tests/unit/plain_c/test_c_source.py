"""The C that people read: names that tell tensors apart, numbers with names, tables that stand once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from tflm_models import Op, S, T, build

from modelplan.plain_c.ladder import CRung
from modelplan.questions.c_fitting import FitCRequest, fit_c

ROOT = Path(__file__).resolve().parents[3]
MODELS, KERNELS = ROOT / "models", ROOT / "modelplan" / "plain_c" / "kernels"


def fitted(path: Path, *, pushed: bool = False, without: str = "") -> CRung:
    chosen = fit_c(FitCRequest(str(path), pushed=pushed, without=frozenset(without.split()))).chosen
    assert chosen
    return chosen


def tables(source: str) -> Counter[tuple[str, str]]:
    """The type and the content of each constant of a source, tables and parameters, comments apart."""
    text = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    found = re.findall(r"^static const ([\w ]+?) \w+(\[[^=]*)? = \{(.*?)\};", text, re.MULTILINE | re.DOTALL)
    return Counter((f"{ctype}{extent}", re.sub(r"\s", "", body)) for ctype, extent, body in found)


@pytest.mark.parametrize(
    ("name", "pushed"), [("ds_cnn_kws", False), pytest.param("resnet8", True, marks=pytest.mark.slow)]
)
def test_no_table_stands_twice(name: str, pushed: bool) -> None:
    found = tables(fitted(MODELS / f"{name}.tflite", pushed=pushed).files.source)
    assert len(found) > 20
    assert max(found.values()) == 1


def test_operators_that_are_alike_share_parameters_and_tables(tmp_path: Path) -> None:
    maps = [T("int8", (1, 4, 4, 2), scales=(0.5,), zero=3)] * 3
    ops = Op("TANH", (0,), (1,)), Op("TANH", (1,), (2,))
    (tmp_path / "net.tflite").write_bytes(build(S(tuple(maps), ops, (0,), (2,))))
    source = fitted(tmp_path / "net.tflite").files.source
    assert "/* op 1 TANH: t2: as net_op_0 */" in source
    assert source.count("look_up_int8(&net_op_0, &q, ") == 2
    assert source.count("static const struct look_up_int8_params") == 1


def test_names_are_cut_to_what_tells_them_apart() -> None:
    files = fitted(MODELS / "ds_cnn_kws.tflite").files
    assert "CONV_2D -> 27 re_lu_6_1 [1, 25, 5, 64]" in files.source
    assert "ds_cnn_kws_1/" not in files.source
    assert "/* 32 StatefulPartitionedCall_1:0 [1, 12] int8 */" in files.header


def test_numbers_of_calls_have_names() -> None:
    """What a kernel is handed is an address, a name, or a number behind what it means."""
    source = fitted(MODELS / "ds_cnn_kws.tflite").files.source
    calls = re.findall(r"^\s+\w+_int8\((.*)\);$", source, re.MULTILINE)
    assert calls
    assert not [call for call in calls if re.search(r"(?:^|, )\d+", call)]


def test_an_operator_that_has_nothing_to_do_is_a_comment(tmp_path: Path) -> None:
    maps = [T("float32", (1, 4, 4, 2))] * 4
    joined = Op("CONCATENATION", (2, 3), (4,), {"Axis": 1, "FusedActivationFunction": 0}, "ConcatenationOptions")
    ops = Op("EXP", (0,), (2,)), Op("NEG", (1,), (3,)), joined
    (tmp_path / "net.tflite").write_bytes(build(S((*maps, T("float32", (1, 8, 4, 2))), ops, (0, 1), (4,))))
    files = fitted(tmp_path / "net.tflite", without="overlaps rows parts").files
    invoke = files.source[files.source.index("void net_invoke") :].split("\n}")[0].splitlines()[2:]
    assert [line.strip() for line in invoke] == [
        "net_stage_0();", "net_stage_1();", "/* CONCATENATION -> 4 t4 [1, 8, 4, 2]: its bytes are in their place */",
    ]  # fmt: skip


def _outside_of_guards(source: str) -> str:
    """The lines that do not stand between the guard of a kernel and its end, within which are others."""
    own, depth = list[str](), 0
    for line in source.splitlines():
        begins = line.startswith("#if")
        if depth or re.match(r"#ifndef MODELPLAN_(?!KERNELS)\w+$", line):
            depth += begins - (line == "#endif")
        else:
            own.append(line)
    return "\n".join(own)


def test_all_names_of_a_file_are_its_own() -> None:
    """But for those of kernels, which stand behind a guard."""
    source = fitted(MODELS / "ds_cnn_kws.tflite").files.source
    own = _outside_of_guards(source)
    names = re.findall(r"^static [\w ]*?\*?(\w+)(?:\[|\(| =|;)|^struct (\w+) \{|^    (\w+) = \d+,?$", own, re.MULTILINE)
    assert len(names) > 40
    assert not [name for found in names for name in found if name and not re.match(r"(?i)net_", name)]
    assert own.rstrip().count("#undef RAM") == 1


def test_parameters_of_kernels_are_numbers_alone() -> None:
    """An address in a constant is written into RAM where a program is loaded anywhere."""
    parameters = [
        found
        for file in KERNELS.iterdir()
        for found in re.findall(r"_params \{\n(.*?)\};", _with_parts(file.read_text()), re.DOTALL)
    ]
    assert len(parameters) > 50
    assert not [found for found in parameters if re.search(r"^    [^/]*\*\w", found, re.MULTILINE)]


def _with_parts(text: str) -> str:
    return re.sub(r'#include "(\w+\.part)"\n', lambda m: (KERNELS / m[1]).read_text(), text)
