"""Draws the gallery, docs/gallery.md: each kind of figure that a command draws, with the question that it answers.

`python docs/gallery.py` draws all of it anew.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, FOLDER = ROOT / "docs" / "gallery.md", ROOT / "docs" / "gallery"

_KWS, _UNET = "models/ds_cnn_kws.tflite --kernels reference", "models/unet_small.tflite --kernels reference"
_SLOW = "--region psram:8MiB@0x3c000000,read=80MB/s,write=40MB/s"
_FLASH = "--region flash:1MiB@0x08000000,read=50MB/s"


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure: its file without .svg, what is drawn of which answer, the question, the command that draws it.

    `timed`: it shows measured times, which differ from run to run. `before` is a command that has to run first.
    """

    name: str
    kind: str
    question: str
    command: str
    timed: bool = False
    before: str = ""


FIGURES = (
    Shown("map", "Plan.map", "Where does each buffer lie, and what is alive at the peak?", f"analyze {_KWS}"),
    Shown("lifetimes", "Plan.lifetimes", "How long does each buffer live, and which are large?",
          "analyze models/autoencoder.tflite --kernels reference"),
    Shown("curve", "Plan.curve", "How much is alive at each step, and which kinds?", f"analyze {_UNET}"),
    Shown("order", "Plan.order", "What does another order of the operators save?",
          "analyze models/transformer_encoder.onnx --runtime generic"),
    Shown("reuse", "Plan.reuse", "What does sharing memory save at all?", f"analyze {_KWS}"),
    Shown("fit.ladder", "LadderChart.ladder", "What does each step of `fit` bring, and does it reach the budget?",
          f"fit {_KWS} --budget 20KiB -o fitted.tflite"),
    Shown("diff.curve", "DifferenceChart.curve", "At which steps does the new model need more or less?",
          "diff models/audio_1d.tflite fitted.tflite --kernels reference",
          before="modelplan fit models/audio_1d.tflite --kernels reference --budget 30KiB -o fitted.tflite"),
    Shown("compare.standing", "Standing.standing", "How much higher do other allocators end, and where do they put it?",
          f"compare {_UNET} --alias none"),
    Shown("sweep.field", "Field.field", "Which setting needs least, and how long does its plan take?",
          "report sweep.parquet", timed=True,
          before="modelplan sweep models/ds_cnn_kws.tflite models/audio_1d.tflite --kernels reference --allocators"
          " modelplan tflm-greedy first-fit-start naive -o sweep.parquet"),
    Shown("together.map", "SharedPlan.map", "What do several models save in one memory?",
          "together kws=models/ds_cnn_kws.tflite models/resnet8.tflite --in-turn kws,resnet8"),
    Shown("memories.map", "RegionPlan.map", "Which buffer goes into which memory?",
          f"memories {_KWS} --region sram:24KiB@0x20000000 {_SLOW} {_FLASH}"),
    Shown("memories.arenas", "RegionPlan.arenas", "How large are the two arenas of TFLM, and where do they lie?",
          f"memories {_KWS} --region sram:24KiB@0x20000000 {_SLOW}"),
    Shown("spill.map", "MovingPlan.map", "What leaves a memory that is too small, and when does it come back?",
          "memories --spill models/autoencoder.tflite --kernels reference --region sram:24KiB,rate=400MB/s"
          " --region flash:1MiB,read=20MB/s,kind=nvm --copied-only flash --dma channels=1,queue=2"
          " --macs-per-second 1e8"),
    Shown("recompute.front", "Front.front", "What does computing dropped values again save, and cost?",
          "recompute mlp_step.onnx --runtime generic --seconds 0",
          before="python models/onnx_training.py --out . --only mlp_step"),
    Shown("stream.curve", "StreamCurve.curve", "How fast is a model whose weights come over a link?",
          "stream models/transformer_encoder.onnx --memory 256KiB --link 100MB/s --macs-per-second 1e9"
          " --memory-rate 1GB/s"),
    Shown("sweep.matrix", "SweepMatrix.matrix", "Which model fits which board, and how full does it get?",
          "report sweep.parquet",
          before="modelplan sweep models/audio_1d.tflite models/ds_cnn_kws.tflite models/resnet8.tflite"
          " models/unet_small.tflite --targets stm32f746 nrf52840 rp2040 stm32n657 --kernels reference"
          " -o sweep.parquet"),
)  # fmt: skip


def draw(shown: Shown, folder: Path) -> Path:
    """Draws a figure into a folder by its commands; returns its file."""
    suffix = shown.kind.partition(".")[2]
    file = folder / f"{shown.name}.svg"
    drawn = folder / f"drawn.{suffix}.svg"
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "models").symlink_to(ROOT / "models")
        for command in filter(None, (shown.before, f"modelplan {shown.command} --draw {drawn}")):
            module = ["-P", "-m", "modelplan"] if command.startswith("modelplan ") else []
            words = [sys.executable, *module, *command.split()[1:]]
            subprocess.run(words, cwd=work, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    drawn.replace(file)
    return file


def page() -> str:
    """The text of the gallery."""
    lines = [
        "# Gallery",
        "",
        "Every kind of figure, drawn by `python docs/gallery.py`. A name that ends in `.png` or `.pdf`",
    ]
    lines += ["makes the same picture, and [the page](page.md) shows plans to zoom and click.", ""]
    for shown in FIGURES:
        suffix = shown.kind.partition(".")[2]
        before = f"After `{shown.before}`: " if shown.before else ""
        command = f"{before}`modelplan {shown.command} --draw x.{suffix}.svg`"
        lines += [f"## {shown.name}", "", f"![{shown.name}](gallery/{shown.name}.svg)", ""]
        lines += [f"**{shown.question}** {command}", ""]
    return "\n".join(lines[:-1]) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for one in FIGURES:
        draw(one, FOLDER)
    PAGE.write_text(page())
