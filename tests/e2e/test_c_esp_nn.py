"""Plain C that calls ESP-NN: its kernels in C compute what TFLM's reference kernels do."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from c_operators import Drawn, Single, batch, drawn_single
from shares import share
from standalone_c import SANITIZERS, WARNINGS, apart, c_operators

from modelplan.cli import main
from modelplan.plain_c.writing.c_self_test import c_self_test, expected_c_runs
from modelplan.plain_c.writing.c_source import CNames, c_files
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.runner import installed

MODELS = Path(__file__).resolve().parents[2] / "models"
ESP_NN = Path(os.environ.get("MODELPLAN_TFLM_KIT", "none")) / "src" / "esp-nn"

pytestmark = [
    pytest.mark.skipif(not installed(), reason="needs tflite-micro"),
    pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler"),
    pytest.mark.skipif(not ESP_NN.is_dir(), reason="needs the sources of ESP-NN; set MODELPLAN_TFLM_KIT"),
]


def runs_with_esp_nn(folder: Path) -> str:
    """What a self-test prints that is compiled with the library."""
    include = [f"-I{ESP_NN / name}" for name in ("include", "src/common")]
    sources = [str(path) for end in ("ansi", "opt") for path in sorted(ESP_NN.glob(f"src/*/*_{end}.c"))]
    subprocess.run(["cc", "-O1", "-w", *include, "-c", *sources], cwd=folder, check=True)
    objects = [Path(source).with_suffix(".o").name for source in sources]
    command = ["cc", *WARNINGS, *SANITIZERS, *include, "net_test.c", *objects, "-o", "net", "-lm"]
    for words in (command, ["./net"]):
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:2000] + done.stdout[:2000]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("sliced", [False, True], ids=["whole", "in slices of rows"])
def test_esp_nn_computes_what_tflm_computes(sliced: bool, tmp_path: Path) -> None:
    kinds = ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "AVERAGE_POOL_2D", "MAX_POOL_2D"]
    kinds += ["ADD", "MUL", "SOFTMAX"]
    drawn, singles = Drawn(31), list[Single]()
    while len(singles) < share(200):
        one = drawn_single(drawn, kinds[len(singles) % len(kinds)])
        singles += [one] if one.sources[0] and one.sources[0].dtype == "int8" else []
    model, names = read_tflite(batch(singles), "net.tflite"), CNames("net", "net.h")
    operators = c_operators(model, "esp-nn")
    called = {o.kernels[0].source for o in operators.values() if o.kernels[0].source.startswith("esp_")}
    assert len(called) >= 7
    plan = apart(model, operators, random.Random(5) if sliced else None, "esp-nn")
    text = c_self_test(model, operators, plan, names, expected_c_runs(model, operators, plan))
    (tmp_path / "net_test.c").write_text(text)
    (tmp_path / "net.h").write_text(c_files(model, operators, plan, names).header)
    assert runs_with_esp_nn(tmp_path) == "PASS: 3 runs\n"


@pytest.mark.parametrize("rows", [False, True])
def test_a_network_that_is_fitted_for_esp_nn_runs_and_is_proved(
    rows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, options = str(MODELS / "ds_cnn_kws.tflite"), ["--input", "rows"] if rows else []
    output = str(tmp_path / "net.c")
    files = ["-o", output, "--self-test", str(tmp_path / "net_test.c")]
    assert main(["fit", model, "--runtime", "c", "--kernels", "esp-nn", *options, *files]) == 0
    assert runs_with_esp_nn(tmp_path) == "PASS: 3 runs\n"
    monkeypatch.delenv("MODELPLAN_ESP_NN", raising=False)
    assert main(["verify", model, "--against", output]) == 0
    assert "MODELPLAN_ESP_NN=FOLDER" in " ".join(capsys.readouterr().out.split())
    monkeypatch.setenv("MODELPLAN_ESP_NN", str(ESP_NN))
    assert main(["verify", model, "--against", output]) == 0
    assert "runs are equal" in " ".join(capsys.readouterr().out.split())
