"""`check --layout`: a model in the memories of a saved layout fits and is no slower, or what is worse is named."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from commands import run

from modelplan.cli import main
from modelplan.outputs.schemas.documents import schema_of

MODELS = Path(__file__).parents[3] / "models"
KWS, RESNET, UNET = (str(MODELS / f"{name}.tflite") for name in ("ds_cnn_kws", "resnet8", "unet_small"))
SLOW = ("--region", "psram:8MiB,read=80MB/s,write=40MB/s")


@pytest.fixture(scope="module")
def layouts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A layout that moves, one in several memories, and one that only a small model fits."""
    folder = tmp_path_factory.mktemp("layouts")
    paths = {name: str(folder / f"{name}.json") for name in ("moves", "memories", "small", "two")}
    sram = ("--region", "sram:24KiB,rate=400MB/s", *SLOW)
    assert main(["spill", RESNET, *sram, "--dma", "channels=1", "--json", paths["moves"]]) == 0
    assert main(["memories", RESNET, *sram, "--json", paths["memories"]]) == 0
    assert main(["memories", KWS, "--region", "sram:64KiB", "--kernels", "reference", "--json", paths["small"]]) == 0
    assert main(["memories", KWS, RESNET, "--region", "sram:512KiB", "--json", paths["two"]]) == 0
    return paths


@pytest.mark.slow
def test_a_plan_of_too_many_steps_is_refused(layouts: dict[str, str], tmp_path: Path) -> None:
    document = json.loads(Path(layouts["memories"]).read_text())
    document["plans"][0]["plan"]["problem"]["end"][0] = 1 << 33
    (tmp_path / "long.json").write_text(json.dumps(document))
    done = run("check", RESNET, "--layout", tmp_path / "long.json")
    assert done.returncode == 3
    assert "plans[0]: a buffer lives to step 8,589,934,592, expected at most 1,048,576" in done.stderr


def test_an_operator_without_results_and_an_alignment_without_end_are_refused(
    layouts: dict[str, str], tmp_path: Path
) -> None:
    document = json.loads(Path(layouts["memories"]).read_text())
    plan = document["plans"][0]["plan"]
    next(op for op in plan["graph"]["ops"] if op["kind"] == "ADD")["outputs"] = []
    (tmp_path / "bare.json").write_text(json.dumps(document))
    done = run("check", RESNET, "--layout", tmp_path / "bare.json")
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
    plan["runtime"]["alignment"] = 1 << 63
    (tmp_path / "wide.json").write_text(json.dumps(document))
    done = run("check", RESNET, "--layout", tmp_path / "wide.json")
    assert done.returncode == 3
    assert "runtime.alignment is 9223372036854775808, expected at most 1073741824" in done.stderr


@pytest.mark.parametrize("kind", ["moves", "memories"])
def test_the_same_model_keeps_its_layout(
    kind: str, layouts: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", RESNET, "--layout", layouts[kind], "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, schema_of("check"))
    (found,) = document["models"]
    assert found["fits"]
    assert found["seconds"]["before"] == pytest.approx(found["seconds"]["after"])
    assert found["traffic"]["before"] == found["traffic"]["after"] > 0


@pytest.mark.parametrize("kind", ["moves", "memories"])
def test_more_time_and_traffic_are_named(
    kind: str, layouts: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(layouts[kind]).with_name("quicker.json")
    assert main(["spill" if kind == "moves" else "memories", KWS, "--region", "sram:24KiB,rate=400MB/s", *SLOW,
                 "--json", str(path)]) == 0  # fmt: skip
    capsys.readouterr()
    assert main(["check", RESNET, "--layout", str(path)]) == 1
    text = "".join(capsys.readouterr().out.split())  # lines are folded, long paths too
    assert f"doesnotkeep{path}" in text
    assert "%longer" in text
    assert "moreoutsideofthefastestmemory" in text
    assert main(["check", RESNET, "--layout", str(path), "--growth", "100000%"]) == 0


def test_a_model_that_no_longer_fits_is_named(layouts: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", KWS, UNET, "--layout", layouts["small"]]) == 1
    text = capsys.readouterr().out
    assert f"{KWS}: keeps" in text
    assert "does not fit: " in text


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--budget", "64KiB"], 2, "--budget: --layout"),
        (["--target", "nrf52840"], 2, "--target: --layout"),
        (["--growth", "1KiB"], 2, "time and traffic grow by a share"),
        (["--layout", "nowhere.json"], 3, "nowhere.json"),
        (["--layout", "{two}"], 2, "holds 2 models, expected one"),
        (["--layout", RESNET], 3, "not text"),
        (["--layout", str(MODELS)], 3, "Is a directory"),
        (["--layout", str(MODELS / "README.md")], 2, "no layout in several memories"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    words: list[str], code: int, said: str, layouts: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    out.write_text("kept")
    words = [word.format(**layouts) for word in words]
    assert main(["check", RESNET, "--layout", layouts["small"], *words, "--json", str(out)]) == code
    assert said in capsys.readouterr().err
    assert out.read_text() == "kept"
