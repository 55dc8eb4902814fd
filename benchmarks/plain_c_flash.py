"""Models as plain C: the flash of a whole program for a Cortex-M4, beside TFLM with the same operators.

    python benchmarks/plain_c_flash.py [--kit PATH] [--build FOLDER] [--only NAME]

Both programs do nothing but run the model, are linked by arm-none-eabi-g++ -Os, and what they do not use is dropped.
TFLM is compiled of the sources of the measuring kit, without assertions and without the text of its errors, and holds
the .tflite file and the operators that this has; FOLDER keeps what was compiled for the next time.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import reporting

from modelplan import FitCRequest, fit_c
from modelplan.outputs.firmware.tflm_sources import resolver_methods
from modelplan.runtimes.tflm.file import FileModel, load_tflite

MODELS = (
    "person_detect", "vww_96_int8", "pretrainedResnet_quant", "kws_ref_model", "ad01_int8", "mcu/mcunet_vww0",
    "mcu/micronet_vww2", "../camera/fomo_face_detection", "wakeword/okay_nabu",
)  # fmt: skip
_CORE = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
_SMALL = ("-Os", "-ffunction-sections", "-fdata-sections", "-w")
_CXX = ("-std=c++17", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics")
_TFLM = ("-DNDEBUG", "-DTF_LITE_STATIC_MEMORY", "-DTF_LITE_STRIP_ERROR_STRINGS", "-DTF_LITE_DISABLE_X86_NEON")
_LINKED = ("-Wl,--gc-sections", "-specs=nano.specs", "-specs=nosys.specs", "-Wl,--no-warn-rwx-segments")
#: What TFLM consists of beside its kernels, below tensorflow/.
_PARTS = (
    "lite/micro", "lite/micro/arena_allocator", "lite/micro/memory_planner", "lite/micro/tflite_bridge", "lite/core/c",
    "lite/core/api", "lite/kernels", "lite/kernels/internal", "lite/kernels/internal/reference",
    "compiler/mlir/lite/core/api", "compiler/mlir/lite/schema",
)  # fmt: skip
#: Tests, what the program has itself, what is for an NPU, and kernels of floats that a Cortex-M4 has not.
_LEFT_OUT = re.compile(r"test|^debug_log\.cc$|^ethosu\.cc$|_f(16|32|lt)\.c$")
_INCLUDES = ("tflm", "gemmlowp", "flatbuffers/include", "kissfft", "ruy", "cmsis-nn", "cmsis-nn/Include")
_TFLM_MAIN = """
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"
#include <cstdarg>
extern "C" const unsigned char model[];
extern "C" void DebugLog(const char*, va_list) {}
extern "C" int DebugVsnprintf(char*, size_t, const char*, va_list) { return 0; }
alignas(16) static uint8_t memory[%d];
int main() {
  static tflite::MicroMutableOpResolver<%d> resolver;
%s
  auto* allocator = tflite::MicroAllocator::Create(memory, sizeof memory);
  static tflite::MicroInterpreter interpreter(tflite::GetModel(model), resolver, allocator, %s);
  if (interpreter.AllocateTensors() != kTfLiteOk || interpreter.Invoke() != kTfLiteOk) return 1;
  return interpreter.output(0)->data.int8[0];
}
"""
_VARIABLES = "tflite::MicroResourceVariables::Create(allocator, %d)"
_C_MAIN = """
#include "net.h"
int main(void)
{
    net_invoke();
    return (int)%s()[0];
}
"""
_HEAD = (
    "Bytes of a program for a Cortex-M4 that runs a model and does nothing else: all that lies in flash, code,",
    "constants and first values of variables, with newlib-nano, by arm-none-eabi-g++ -Os, unused sections dropped.",
    "TFLM is built without assertions and without the text of its errors, has the operators of the model alone, and",
    "holds the .tflite file, whose bytes stand beside it. Shares are of TFLM with kernels of the same kind.",
    "",
)
_COLUMNS = (
    "model", "file", "TFLM, reference kernels", "plain C, portable", "share", "TFLM, CMSIS-NN", "plain C, cmsis-dsp",
    "share",
)  # fmt: skip

PARSER = reporting.command_line(__file__, __doc__, "plain_c_flash.md")
PARSER.add_argument("--kit", type=Path, metavar="PATH", help="the folder of the measuring kit's programs")
PARSER.add_argument("--build", type=Path, metavar="FOLDER", help="where what is compiled is kept")
PARSER.add_argument("--only", metavar="NAME", help="models that have this in their name")


@dataclass(frozen=True)
class Toolchain:
    """The sources of the kit, and the folder for what is compiled of them."""

    sources: Path
    folder: Path

    def compiled(self, source: Path, more: Sequence[str] = ()) -> Path:
        """The object of a file."""
        place = source.relative_to(self.sources) if source.is_relative_to(self.sources) else Path(source.name)
        object_file = self.folder / "objects" / place.with_suffix(".o")
        if not object_file.exists() or not source.is_relative_to(self.sources):
            object_file.parent.mkdir(parents=True, exist_ok=True)
            words = [*self._compiler(source), *more, "-c", str(source), "-o", str(object_file)]
            subprocess.run(words, check=True)
        return object_file

    def _compiler(self, source: Path) -> list[str]:
        includes = [f"-I{self.sources / name}" for name in _INCLUDES]
        language = ["arm-none-eabi-g++", *_CXX] if source.suffix == ".cc" else ["arm-none-eabi-gcc", "-std=gnu11"]
        return [*language, *_CORE, *_SMALL, *_TFLM, *includes]

    def library(self, *, cmsis: bool) -> Path:
        """An archive of TFLM with its reference kernels, or with those of CMSIS-NN."""
        archive = self.folder / f"tflm-{'cmsis' if cmsis else 'reference'}.a"
        if not archive.exists():
            more = ["-DCMSIS_NN"] if cmsis else []
            with ThreadPoolExecutor(2) as pool:
                objects = list(pool.map(lambda source: self.compiled(source, more), self._sources(cmsis=cmsis)))
            subprocess.run(["arm-none-eabi-ar", "rcs", str(archive), *map(str, objects)], check=True)
        return archive

    def _sources(self, *, cmsis: bool) -> list[Path]:
        root = self.sources / "tflm/tensorflow"
        kernels = root / "lite/micro/kernels"
        found = [path for part in _PARTS for path in sorted((root / part).glob("*.cc"))]
        own = sorted((kernels / "cmsis_nn").glob("*.cc")) if cmsis else []
        names = {path.name for path in own}
        found += [*own, *(path for path in sorted(kernels.glob("*.cc")) if path.name not in names)]
        found += sorted((self.sources / "cmsis-nn/Source").glob("*/*.c")) if cmsis else []
        return [path for path in found if not _LEFT_OUT.search(path.name)]

    def flash(self, folder: Path, files: Sequence[Path], libraries: Sequence[Path]) -> int:
        """The bytes that a program of some files takes in flash."""
        program, objects = folder / "program", []
        for number, source in enumerate(files):
            object_file = folder / f"{number}.o"
            words = [*self._compiler(source), f"-I{folder}", "-c", str(source), "-o", str(object_file)]
            subprocess.run(words, check=True)
            objects.append(str(object_file))
        group = ["-Wl,--start-group", *map(str, libraries), "-Wl,--end-group", "-lm"]
        words = ["arm-none-eabi-g++", *_CORE, *_LINKED, *objects, *group, "-o", str(program)]
        subprocess.run(words, check=True)
        done = subprocess.run(["arm-none-eabi-size", str(program)], check=True, capture_output=True, text=True)
        text, data, *_ = map(int, done.stdout.splitlines()[1].split()[:3])
        return text + data


def tflm_flash(tools: Toolchain, model: FileModel, *, cmsis: bool) -> int:
    """The flash of TFLM with the operators of a model, and the model."""
    methods, own = resolver_methods(model)
    if own:
        raise ValueError(f"{model.name} has operators of its own: {own}")
    variables = sum(op.kind == "VAR_HANDLE" for subgraph in model.subgraphs for op in subgraph.ops)
    adds = "\n".join(f"  resolver.{method}();" for method in methods)
    resources = _VARIABLES % variables if variables else "nullptr"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "main.cc").write_text(_TFLM_MAIN % (1 << 16, len(methods), adds, resources))
        (folder / "model.bin").write_bytes(model.data)
        held = f'.section .rodata.model\n.global model\n.balign 16\nmodel: .incbin "{folder / "model.bin"}"\n'
        (folder / "model.s").write_text(held)
        return tools.flash(folder, [folder / "main.cc", folder / "model.s"], [tools.library(cmsis=cmsis)])


def c_flash(tools: Toolchain, path: Path, *, cmsis: bool) -> int:
    """The flash of a model as the plain C that `fit` writes."""
    ladder = fit_c(FitCRequest(str(path), kernels="cmsis-dsp" if cmsis else "portable"))
    if ladder.chosen is None:
        raise ValueError(f"{path.name}: a ladder without a budget chose nothing")
    files = ladder.chosen.files
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        output = "net_output" if "net_output(void)" in files.header else "net_output_0"
        for file, text in (("net.c", files.source), ("net.h", files.header), ("main.c", _C_MAIN % output)):
            (folder / file).write_text(text)
        libraries = [tools.library(cmsis=True)] if cmsis else []
        return tools.flash(folder, [folder / "main.c", folder / "net.c"], libraries)


def lines(corpus: Path, tools: Toolchain, only: str) -> Iterator[tuple[str, ...]]:
    """A line for each model."""
    for name in (name for name in MODELS if only in name):
        path = corpus / "tflite" / f"{name}.tflite"
        model, cells = load_tflite(path), [Path(name).name, f"{path.stat().st_size:,}"]
        for cmsis in (False, True):
            reporting.progress(f"{name}: {'CMSIS-NN' if cmsis else 'portable'}")
            tflm, plain = tflm_flash(tools, model, cmsis=cmsis), c_flash(tools, path, cmsis=cmsis)
            cells += [f"{tflm:,}", f"{plain:,}", f"{plain / tflm:.2f}"]
        yield tuple(cells)


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    kit = arguments.kit or os.environ.get("MODELPLAN_TFLM_KIT")
    if not kit or not (Path(kit) / "src").is_dir():
        PARSER.error("no sources of TFLM: name the measuring kit's folder with --kit or $MODELPLAN_TFLM_KIT")
    with tempfile.TemporaryDirectory() as name:
        tools = Toolchain((Path(kit) / "src").resolve(), (arguments.build or Path(name)).resolve())
        tools.folder.mkdir(parents=True, exist_ok=True)
        table = reporting.table(_COLUMNS, list(lines(arguments.corpus, tools, arguments.only or "")), "<>>>>>>>")
    arguments.build = None
    reporting.save(
        arguments.output, reporting.made_by(PARSER, arguments), "Flash of models as plain C", [*_HEAD, *table]
    )


if __name__ == "__main__":
    main()
