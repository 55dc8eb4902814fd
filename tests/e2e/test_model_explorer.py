"""Overlays for Google's Model Explorer: every key is a node of the graph that its own adapters make of the file."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from commands import run
from tflite_models import branching, calling

from modelplan import Graph, load
from modelplan.formats.node_keys import node_keys

NEEDED = ("model_explorer", "ai_edge_model_explorer_adapter", "model_explorer_onnx")
FIGURES = ("live", "share", "scratch", "kept")


@pytest.fixture(scope="session")
def explorer() -> None:
    """Google's package and both adapters: the extra `viewers`, which CI installs and names by MODELPLAN_VIEWERS."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing and os.environ.get("MODELPLAN_VIEWERS"):
        pytest.fail(f"not installed: {', '.join(missing)}; pip install 'modelplan[viewers]'")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; pip install 'modelplan[viewers]'")


def nodes_of(path: Path) -> tuple[str, dict[str, str]]:
    """The id of the main graph, and the label of each node by its id, as the adapter for the file has them."""
    if path.suffix == ".onnx":
        from model_explorer_onnx.main import ONNXAdapter

        graph = ONNXAdapter().convert(str(path), {})["graphs"][0]
        return graph.id, {node.id: node.label for node in graph.nodes}
    from model_explorer.builtin_tflite_flatbuffer_adapter import BuiltinTfliteFlatbufferAdapter

    found: Any = BuiltinTfliteFlatbufferAdapter().convert(str(path), {})
    main = found["graphCollections"][0].graphs[0]
    return main["id"], {node["id"]: node["label"] for node in main["nodes"]}


def plain(kind: str) -> str:
    """The kind of an operator in the letters that the file format and the adapter share."""
    return kind.lower().replace("_", "").replace("-", "").removeprefix("custom").removeprefix(":")


def written(folder: Path, name: str = "o") -> dict[str, Any]:
    """The files of an overlay by figure, read by Google's own classes."""
    from model_explorer.node_data_builder import GraphNodeData, ModelNodeData, NodeDataResult

    found = {}
    for path in sorted(folder.glob(f"{name}.*.json")):
        content = json.loads(path.read_text())
        assert len(content) == 1
        ((graph, data),) = content.items()
        typed = GraphNodeData(**(data | {"results": {k: NodeDataResult(**v) for k, v in data["results"].items()}}))
        assert json.loads(ModelNodeData({graph: typed}).to_json_string())[graph]["results"] == data["results"]
        found[path.name.split(".")[-2]] = (graph, {key: value["value"] for key, value in data["results"].items()})
    return found


@pytest.mark.usefixtures("explorer")
def test_tflite_keys_are_the_adapters(corpus: Path, models: Path, tmp_path: Path) -> None:
    paths = [*sorted(models.glob("*.tflite")), *sorted((corpus / "tflite").rglob("*.tflite"))]
    for name, content in (("branching", branching()), ("calling", calling())):
        (tmp_path / f"{name}.tflite").write_bytes(content)
        paths.append(tmp_path / f"{name}.tflite")
    for path in paths:
        graph = load(path)
        assert isinstance(graph, Graph)
        found = node_keys(path.read_bytes(), graph)
        main, labels = nodes_of(path)
        assert found.graph == main, path
        shown = {op: plain(labels[key]) for op, key in found.keys.items()}
        assert shown == {op: plain(graph.ops[op].kind) for op in found.keys}, path
        if path.stem == "calling":  # what the call runs stands in its place and is no node of the main graph
            assert {op: graph.ops[op].kind for op in found.keys} == {0: "ADD", 3: "ADD"}
            assert [labels[key] for key in found.keys.values()] == ["add", "add"]
        else:
            assert len(found.keys) == len(graph.ops), path


@pytest.mark.usefixtures("explorer")
def test_onnx_keys_are_the_adapters(light: Path, models: Path) -> None:
    static = ("bert_like", "decoder_kv")
    paths = [p for p in (*light.glob("*.onnx"), *models.glob("*.onnx")) if not p.stem.startswith(static)]
    assert len(paths) >= 12
    for path in paths:
        graph = load(path)
        assert isinstance(graph, Graph)
        found = node_keys(path.read_bytes(), graph)
        main, labels = nodes_of(path)
        assert found.graph == main
        assert {op: labels[key] for op, key in found.keys.items()} == {op: graph.ops[op].kind for op in found.keys}
        named = sum(bool(op.name) for op in graph.ops)
        assert len(found.keys) == named, path


@pytest.mark.usefixtures("explorer")
def test_analyze_writes_a_file_for_each_figure(models: Path, tmp_path: Path) -> None:
    model = models / "resnet8.tflite"
    words = ("--schedule", "file", "--kernels", "reference", "--overlay", tmp_path / "o.json")
    assert run("analyze", model, *words).returncode == 0
    found = written(tmp_path)
    assert found.keys() == set(FIGURES)
    main, labels = nodes_of(model)
    for graph, values in found.values():
        assert graph == main
        assert values.keys() <= labels.keys()
        assert len(values) == 15
    live, share = found["live"][1], found["share"][1]
    assert max(share.values()) == 100
    assert max(live, key=live.__getitem__) == max(share, key=share.__getitem__)
    assert live["3"] == 3 * 16384  # op 3 ADD reads two maps of 32 x 32 x 16 and writes a third
    assert [key for key, size in found["scratch"][1].items() if size] == ["12"]  # MEAN
    assert all(size > 0 for size in found["kept"][1].values())


@pytest.mark.usefixtures("explorer")
def test_diff_writes_the_differences_on_the_new_side(models: Path, tmp_path: Path) -> None:
    words = ("diff", models / "resnet8.tflite", "--new", "kernels=cmsis-dsp", "--overlay", tmp_path / "o.json")
    assert run(*words).returncode == 0
    found = written(tmp_path)
    assert found.keys() == {"delta"}
    graph, values = found["delta"]
    main, labels = nodes_of(models / "resnet8.tflite")
    assert graph == main
    assert values.keys() <= labels.keys()
    assert any(values.values())
    assert any(value == 0 for value in values.values())


def test_names_that_cannot_be_written_are_refused(models: Path, tmp_path: Path) -> None:
    for name, said in (("o.txt", "must end in .json"), ("none/o.json", "there is no folder")):
        done = run("analyze", models / "resnet8.tflite", "--overlay", tmp_path / name)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
    done = run("analyze", models / "resnet8.tflite", models / "ds_cnn_kws.tflite", "--overlay", tmp_path / "o.json")
    assert done.returncode == 2
