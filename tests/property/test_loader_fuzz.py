"""Any bytes at all given to `load` yield a Graph or a ModelError of one line: a fixed number of damaged files, and
the inputs that once broke the promise. `tests/sweeps/fuzz.py` runs the same for as long as one likes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dense
import fuzz
import mutations
import pytest
from shares import share

from modelplan import Graph, ModelError, load
from modelplan.formats.limits import FileLimits
from modelplan.formats.onnx import onnx_guards

REGRESSIONS = sorted((Path(__file__).parent.parent / "regressions").iterdir())
CASES = share(120)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["kws_ref_model", "person_detect_vela", "audio_preprocessor_int8", "trained_lstm_int8"]
)
def test_a_damaged_tflite_file(corpus: Path, tmp_path: Path, name: str) -> None:
    content = (corpus / "tflite" / f"{name}.tflite").read_bytes()
    for seed in range(CASES):
        (tmp_path / "a.tflite").write_bytes(mutations.case(seed, content, ".tflite"))
        assert not fuzz.promise(tmp_path / "a.tflite"), f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["decoder_kv", "resnet8"])
def test_a_damaged_onnx_file(models: Path, tmp_path: Path, name: str) -> None:
    content = (models / f"{name}.onnx").read_bytes()
    for seed in range(CASES):
        (tmp_path / "a.onnx").write_bytes(mutations.case(seed, content, ".onnx"))
        assert not fuzz.promise(tmp_path / "a.onnx"), f"seed {seed}"


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.name)
def test_what_once_broke_the_promise(path: Path) -> None:
    assert not fuzz.promise(path)


@pytest.mark.slow
@pytest.mark.parametrize("build", dense.CASES, ids=lambda build: build.__name__)
def test_a_dense_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, build: Callable[[int], bytes]) -> None:
    """Small ones of what `tests/sweeps/dense.py` makes as large as can be: taken, and refused where limits are low."""
    path = tmp_path / f"a.{build.__name__.split('_')[0]}"
    path.write_bytes(build(40))
    assert not fuzz.promise(path)
    monkeypatch.setattr(FileLimits, "of", lambda _: FileLimits(30, 30, 30))
    monkeypatch.setattr(onnx_guards, "_MOST_SEEN", 30)
    monkeypatch.setattr(onnx_guards, "MOST_AXES", 30)
    assert not fuzz.promise(path)
    if build in (dense.onnx_attributes, dense.tflite_operands, dense.onnx_functions):
        return
    with pytest.raises(ModelError, match=r"more than 30 |too many|at most 30"):
        load(path)


def test_bodies_see_what_stands_before_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Four bodies that see the two inputs, two of them another result too; behind the chain they see that as well."""
    monkeypatch.setattr(onnx_guards, "_MOST_SEEN", 4 * 2 + 2)
    branches, chain = dense.branches(2), dense.chain(20)
    ends = [dense.X, dense.CONDITION], [dense.value("y0", [4])]
    (tmp_path / "a.onnx").write_bytes(dense.onnx_file([*branches, *chain], *ends))
    load(tmp_path / "a.onnx")
    (tmp_path / "a.onnx").write_bytes(dense.onnx_file([*chain, *branches], *ends))
    with pytest.raises(ModelError, match="bodies that see 90 outer values"):
        load(tmp_path / "a.onnx")


@pytest.mark.slow
def test_more_functions_than_onnx_inlines(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(dense.onnx_functions(10_001))
    with pytest.raises(ModelError, match=r"local functions: .*10001"):
        load(tmp_path / "a.onnx")


@pytest.mark.slow
def test_tens_of_thousands_of_operators(tmp_path: Path) -> None:
    """A long chain loads in seconds; every step of the loader is linear in its length."""
    import onnx

    count = share(100_000)
    nodes = [onnx.helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(count)]
    ends = [onnx.helper.make_tensor_value_info(name, 1, [4]) for name in ("t0", f"t{count}")]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:]))
    onnx.save(model, tmp_path / "a.onnx")
    graph = load(tmp_path / "a.onnx")
    assert isinstance(graph, Graph)
    assert len(graph.ops) == count


def test_functions_that_grow_without_bound_are_refused(tmp_path: Path) -> None:
    """Each of thirty functions calls the next one twice: a billion nodes from a file of a few kilobytes."""
    import onnx
    from onnx.helper import make_function, make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

    imports = [make_opsetid("", 18), make_opsetid("f", 1)]
    functions = []
    for i in range(30):
        kind, domain = (f"f{i + 1}", "f") if i < 29 else ("Relu", "")
        calls = [make_node(kind, ["x"], ["t"], domain=domain), make_node(kind, ["t"], ["y"], domain=domain)]
        functions.append(make_function("f", f"f{i}", ["x"], ["y"], calls, imports))
    ends = [make_tensor_value_info(name, 1, [4]) for name in "xy"]
    graph = make_graph([make_node("f0", ["x"], ["y"], domain="f")], "g", ends[:1], ends[1:])
    onnx.save(make_model(graph, functions=functions, opset_imports=imports), tmp_path / "a.onnx")
    with pytest.raises(ModelError, match="local functions grow to"):
        load(tmp_path / "a.onnx")
