"""Every JSON document that a command writes keeps to the schema that `modelplan schema` prints, key by key."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import modelplan.cli
from modelplan.cli.command_table import MODULES
from modelplan.outputs.schemas.documents import DOCUMENTS, schema_of
from modelplan.questions.sweeps.sweep_rows import SweepRow

MODELS = Path(__file__).resolve().parents[2] / "models"
KWS, RESNET, ONNX = (str(MODELS / name) for name in ("ds_cnn_kws.tflite", "resnet8.tflite", "resnet8.onnx"))

#: The document, the command line, and the options that say where it goes.
WRITTEN = [
    ("plan", ["analyze", KWS, "--json"]),
    ("plan", ["analyze", ONNX, "--target", "nrf52840", "--json"]),
    ("explain", ["explain", KWS, "--json"]),
    ("explain", ["explain", ONNX, "--capacity", "64KiB", "--json"]),
    ("diff", ["diff", KWS, RESNET, "--json"]),
    ("diff", ["diff", KWS, "--new", "kernels=cmsis-dsp", "--json"]),
    ("compare", ["compare", KWS, "--json"]),
    ("compare", ["compare", KWS, "--target", "nrf52840", "--json"]),
    ("check", ["check", KWS, "--budget", "8KiB", "--json"]),
    ("check", ["check", KWS, "nowhere.tflite", "--target", "nrf52840", "--json"]),
    ("check-limits", ["check", KWS, "--budget", "8KiB", "--format", "json="]),
    ("together", ["together", KWS, RESNET, "--in-turn", "all", "--json"]),
    ("together", ["together", KWS, ONNX, "--capacity", "1MiB", "--json"]),
    ("stream", ["stream", KWS, "--link", "1GB/s", "--macs-per-second", "1e9", "--json"]),
    ("stream", ["stream", ONNX, "--memory", "400KiB", "--link", "9MB/s", "--macs-per-second", "1e9", "--json"]),
    ("memories", ["memories", KWS, "--kernels", "reference", "--region", "a:20KiB", "--region", "b:24KiB", "--json"]),
    ("moves", ["spill", RESNET, "--region", "sram:64KiB", "--region", "psram:1MiB,rate=40MB/s", "--json"]),
    ("verdicts", ["analyze", KWS, "--target", "stm32f4*,rp2040,esp32s3", "--json"]),
    ("verdicts", ["analyze", KWS, "--target", "samd21x16,nrf52840", "--fit", "--json"]),
    ("targets", ["targets", "--json"]),
    ("targets", ["targets", "nrf52840", "--json"]),
]


def closed(schema: Any) -> Any:
    """The schema with every object limited to the keys that it names."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    if "properties" in made and isinstance(made.get("required"), list) and "allOf" not in made:
        made.setdefault("additionalProperties", False)
    return made


def opened(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """The closed schema, in which a type that another extends by `allOf` stays open."""
    made = closed(copy.deepcopy(schema))
    made.get("$defs", {}).get(name, {}).pop("additionalProperties", None)
    return dict(made)


def validated(name: str, text: str) -> Any:
    document = json.loads(text)
    jsonschema.validate(document, opened(schema_of(name), "Block" if name == "targets" else ""))
    return document


def test_every_command_that_writes_json_has_a_schema() -> None:
    written = {"analyze": "plan", "spill": "moves"}
    for name in MODULES:
        parser = modelplan.cli.parser_of(name)
        if any("--json" in action.option_strings for action in parser._actions):
            assert written.get(name, name) in DOCUMENTS, name
    with_own_tests = {"baseline", "report"}
    assert {name for name, _ in WRITTEN} == DOCUMENTS.keys() - with_own_tests


@pytest.mark.parametrize("name", DOCUMENTS)
def test_schemas_are_schemas_and_carry_their_version(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert modelplan.cli.main(["schema", name]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == schema_of(name)
    jsonschema.Draft202012Validator.check_schema(printed)
    kind, version = printed["$id"].removeprefix("urn:modelplan:").rsplit(":", 1)
    assert kind == name
    assert int(version) >= 1


@pytest.mark.slow
@pytest.mark.parametrize(("name", "words"), WRITTEN, ids=lambda one: one if isinstance(one, str) else one[-2])
def test_what_commands_write_keeps_to_its_schema(
    name: str, words: Sequence[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "written.json")
    last = [*words[:-1], words[-1] + path] if words[-1].endswith("=") else [*words, path]
    assert modelplan.cli.main(last) in (0, 1, 3), capsys.readouterr().err
    document = validated(name, Path(path).read_text())
    if isinstance(document, dict):
        version = f"modelplan_{name}" if f"modelplan_{name}" in document else "schema"
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document | {version: 0}, schema_of(name))


def test_budgets_and_their_baseline_keep_to_their_schemas(tmp_path: Path) -> None:
    shutil.copy(KWS, tmp_path / "kws.tflite")
    (tmp_path / "budgets.toml").write_text('[[budget]]\nmodel = "kws.tflite"\narena = "64KiB"\ngrowth = "1KiB"\n')
    base, found, limits = (str(tmp_path / name) for name in ("base.json", "found.json", "limits.json"))
    config = ["--config", str(tmp_path / "budgets.toml")]
    assert modelplan.cli.main(["budget", "baseline", *config, "-o", base]) == 0
    validated("baseline", Path(base).read_text())
    words = ["check", *config, "--baseline", base, "--json", found, "--format", f"json={limits}"]
    assert modelplan.cli.main(words) == 0
    validated("check", Path(found).read_text())
    validated("check-limits", Path(limits).read_text())


def test_the_report_of_a_sweep_keeps_to_its_schema(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from modelplan.questions.sweeps.store import Results

    usual = "default"
    rows = [
        SweepRow("m", "t", usual, usual, usual, alias, usual, "", "", "done", target_bytes=99, height=height, bound=8)
        for alias, height in (("views", 16), ("safe", 8))
    ]
    worse = [replace(rows[0], height=32), replace(rows[1], status="crashed", error="signal 11")]
    for name, written in (("older", rows), ("newer", worse)):
        results = Results(tmp_path / f"{name}.parquet")
        results.open()
        results.append(map(asdict, written))
        results.close()
    newer, older, found = (tmp_path / name for name in ("newer.parquet", "older.parquet", "report.json"))
    assert modelplan.cli.main(["report", str(newer), "--against", str(older), "--json", str(found)]) == 1
    assert validated("report", found.read_text())["changes"]["worse"]
