"""Models as C++ source, and the programs of docs/deploy.md: compiled with TFLM for a microcontroller's ABI, and run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from commands import run
from shared_memory import BUILDS, compiled, missing

from modelplan.formats.whole_files import read_model
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.runner import INSTALL, installed, tflm_values

ROOT = Path(__file__).resolve().parents[2]
MAINS = dict(
    re.findall(r"<!-- main ([\w-]+) -->\n```cpp\n(.*?)```", (ROOT / "docs" / "deploy.md").read_text(), re.DOTALL)
)
#: The headers of each framework that its program includes, as little of them as it takes.
FRAMEWORKS = {
    "bare": {},
    "esp-idf": {
        "esp_log.h": '#include <cstdio>\n#define ESP_LOGI(tag, ...) (std::printf(__VA_ARGS__), std::printf("\\n"))\n'
        "#define ESP_LOGE ESP_LOGI\n",
        "esp_heap_caps.h": "#include <cstdlib>\nconstexpr unsigned MALLOC_CAP_INTERNAL = 1;\n"
        "inline void* heap_caps_aligned_alloc(size_t to, size_t size, unsigned) { return aligned_alloc(to, size); }\n",
    },
    "arduino": {
        "Arduino.h": "#include <cstdio>\n#include <cstring>\nusing std::memset;\n"
        'struct Port { void begin(int) {} void println(int v) { std::printf("%d\\n", v); } };\ninline Port Serial;\n'
    },
    "zephyr": {
        "zephyr/kernel.h": "",
        "zephyr/sys/printk.h": "#include <cstdio>\n#define printk std::printf\n",
    },
    "stm32": {
        "main.h": "#include <cstdlib>\ninline void HAL_Init() {}\ninline void Error_Handler() { std::exit(9); }\n"
        "inline void HAL_Delay(int) { std::exit(0); }\n"
    },
}
#: How a framework that has a `main` of its own calls the program.
_STARTS = {
    "esp-idf": 'extern "C" void app_main();\nint main() { app_main(); }\n',
    "arduino": "void setup();\nvoid loop();\nint main() { setup(); loop(); }\n",
}
_LOG = """#include <cstdarg>
#include <cstdio>
extern "C" void DebugLog(const char* format, va_list args) { std::vprintf(format, args); }
extern "C" int DebugVsnprintf(char* buffer, size_t size, const char* format, va_list args) {
  return std::vsnprintf(buffer, size, format, args);
}
"""


def test_an_array_is_the_file_itself(models: Path, tmp_path: Path) -> None:
    kws, array, out = models / "ds_cnn_kws.tflite", tmp_path / "8-bit net.cc", tmp_path / "net.tflite"
    assert run("analyze", kws, "--kernels", "reference", "--c-array", array).returncode == 0
    assert read_model(array) == kws.read_bytes()
    header = array.with_suffix(".h").read_text()
    needed = re.search(r"#define TENSOR_ARENA_SIZE (\d+)", run("analyze", kws, "--kernels", "reference").stdout)
    assert needed
    assert f"kTensorArenaBytes = {needed[1]};" in header
    assert "namespace model_8_bit_net {" in header
    for words in (("--only", "plan", "--force"), ("--least", "--without", "split")):
        done = run("fit", kws, "--kernels", "cmsis-dsp", "-o", out, "--c-array", array, *words)
        assert done.returncode == 0, done.stderr
        assert read_model(array) == out.read_bytes()
        assert "#ifdef ESP_NN\n#error" in array.with_suffix(".h").read_text()


def test_what_is_no_array_of_a_model_is_refused(models: Path, tmp_path: Path) -> None:
    for model, name, reason in [
        (models / "ds_cnn_kws.tflite", "net.txt", "expected a name that ends in .cc or .cpp"),
        (models / "ds_cnn_kws.tflite", "missing/net.cc", "there is no folder"),
        (models / "resnet8.onnx", "net.cc", "--c-array is for a .tflite file that TFLM runs"),
    ]:
        done = run("analyze", model, "--measure", "0", "--c-array", tmp_path / name)
        assert (done.returncode, reason in done.stderr) == (2, True)
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")
@pytest.mark.parametrize("program", ["tflm-cmsis", "tflm-espnn"])
@pytest.mark.parametrize("name", MAINS)
def test_the_programs_of_the_manual_run(name: str, program: str, models: Path, tmp_path: Path) -> None:
    assert set(MAINS) == set(FRAMEWORKS)
    if why := missing(program):
        pytest.skip(why)
    build, kws = BUILDS[program], models / "ds_cnn_kws.tflite"
    words = ("--kernels", build.kernels, "--abi", build.abi, "--least", "--without", "split")
    done = run("fit", kws, *words, "-o", tmp_path / "net.tflite", "--c-array", tmp_path / "net.cc")
    assert done.returncode == 0, done.stderr
    for header, text in FRAMEWORKS[name].items():
        (tmp_path / header).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / header).write_text(text)
    (tmp_path / "main.cc").write_text(MAINS[name])
    (tmp_path / "log.cc").write_text(_LOG + _STARTS.get(name, ""))
    more = (str(tmp_path / "net.cc"), str(tmp_path / "log.cc"), f"-I{tmp_path}")
    command = [*build.starter, str(compiled(program, source_file=tmp_path / "main.cc", more=more))]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert [int(number) for number in ran.stdout.split()] == of_zeros(kws), ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("program", ["tflm-reference", "tflm-cmsis", "tflm-espnn"])
@pytest.mark.parametrize("kernels", ["reference", "cmsis-dsp", "esp-nn@all", "esp-nn-generic", "all"])
def test_a_program_with_other_kernels_does_not_link_or_start(
    kernels: str, program: str, models: Path, tmp_path: Path
) -> None:
    """No macro tells the application which library TFLM was built with, as in ESP-IDF, Arduino and Zephyr."""
    if why := missing(program):
        pytest.skip(why)
    abi, kws = BUILDS[program].abi, models / "ds_cnn_kws.tflite"
    words = ("analyze", kws, "--kernels", kernels, "--abi", abi, "--c-array", tmp_path / "net.cc")
    assert run(*words).returncode == 0
    (tmp_path / "main.cc").write_text(MAINS["bare"])
    (tmp_path / "log.cc").write_text(_LOG)
    more = (str(tmp_path / "net.cc"), str(tmp_path / "log.cc"), f"-I{tmp_path}")
    right = {"reference": "tflm-reference", "cmsis-dsp": "tflm-cmsis", "esp-nn@all": "tflm-espnn"}.get(kernels)
    try:
        command = [*BUILDS[program].starter, str(compiled(program, source_file=tmp_path / "main.cc", more=more))]
    except subprocess.CalledProcessError:
        assert kernels not in ("all", "reference")
        assert program != right
        return
    status = subprocess.run(command, capture_output=True, check=False, timeout=300).returncode
    assert status == (0 if kernels == "all" or program == right else 1)


def of_zeros(path: Path) -> list[int]:
    """What TFLM's reference kernels make of an input of zeros."""
    model = load_tflite(path)
    main = model.subgraphs[0]
    zeros = [bytes(int(np.prod(main.tensors[t].shape))) for t in main.inputs]
    return [int(value) for value in tflm_values(model.data, [zeros])[0][0][0].ravel()]
