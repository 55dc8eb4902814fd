"""Shows what fit makes of real models: heads, arenas, budgets, 32-bit targets.

    python benchmarks/fit.py --kit PATH --large DIR

Every rewritten file is executed on the tflite-micro wheel (extra `tflm`) and compared with its model. PATH is the
folder with the programs of the device kit, which run the files on 32-bit ARM; without it that table is left out. DIR
holds mobilenet_v2_224.tflite, which models/make_models.py builds there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import reporting

from modelplan.questions.model_fitting import FitRequest, fit
from modelplan.rewriting.striped_tflite.ladder import Ladder
from modelplan.rewriting.striped_tflite.rungs import Rung
from modelplan.runtimes.tflm.runner import run_tflm, tflm_version

#: With the kernels whose figures are expected.
asked = partial(FitRequest, kernels="reference")

#: Model: the head to come below, and the arena on 64 bits, in bytes, where there is such a goal.
GOALS = {
    "vww_96_int8": (29_000, 64_000), "pretrainedResnet_quant": (14_000, 36_000), "kws_ref_model": (9_792, None),
    "person_detect": (15_681, 54_000), "mcu/mcunet_vww0": (27_200, None), "mcu/micronet_vww2": (15_616, None),
    "mcu/micronet_vww3": (40_000, None), "mcu/kws_cnn_l": (17_040, None), "mcu/kws_micronet_l": (62_208, None),
}  # fmt: skip
#: Model: the arena on 32-bit ARM to come below, in bytes.
GOALS_32 = {"person_detect": 48_000, "vww_96_int8": 59_000, "pretrainedResnet_quant": 31_300}
#: Kernels as modelplan calls them, and as the kit does.
KERNELS_32 = {"reference": "reference-m", "cmsis-dsp": "cmsis", "cmsis-c": "cmsis-c", "cmsis-mve": "cmsis-mve"}
#: Example models beside those with goals, and where they are.
OTHERS = ("mobilenet_v2_like", "unet_small", "audio_1d", "autoencoder")
MODELS = Path(__file__).parents[1] / "models"
SHARES = (90, 75, 60, 50, 40)
#: Invocations of each file that are timed in turn.
_TIMED = 15

_COLUMNS = (
    "model", "before", "after", "goal", "other before", "other after", "MACs", "time", "operators before", "operators",
    "flash", "copied", "seconds", "stripes",
)  # fmt: skip


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments, f" with tflite-micro {tflm_version()}, x86-64, reference kernels")
    title = "Fit: heads and arenas below the working set of one operator"
    reporting.save(arguments.output, first, title, page(arguments.corpus, arguments.kit, arguments.large))


def page(corpus: Path, kit: Path | None, large: Path | None) -> Iterator[str]:
    """The lines of the report."""
    yield (
        "Bytes. The input counts; at most 10 % more multiply-accumulates. Every file was executed with outputs equal to"
        " the model's, bit for bit. `time` is that of one invocation as a multiple of the model's, the least of"
        f" {_TIMED} in turn; `flash` what the file grows by; `copied` what the added operators copy in one run;"
        " `seconds` are those of `fit` by the clock, its proof included, and of processors behind the stroke."
    )
    for objective, other in (("head", "arena"), ("arena", "head")):
        yield from ("", f"## Least {objective}, 64-bit addresses", "")
        headings = [text.replace("other", other) for text in _COLUMNS]
        yield from reporting.table(headings, rows(corpus, objective), "<" + ">" * 12 + "<")
    yield from ("", "## Other networks, 64-bit addresses", "")
    yield (
        "Arena and head are each the least that was found for it. An audio model has maps of height 1; MobileNetV2 at"
        " 224 is built by `python models/make_models.py --only mobilenet_v2_224.tflite --out DIR` and given by"
        " `--large DIR`."
    )
    yield ""
    columns = ("model", "arena before", "arena after", "share", "head before", "head after", "share", "MACs", "stripes")
    yield from reporting.table(columns, others(large), "<" + ">" * 7 + "<")
    yield from ("", "## The cheapest rung for a share of the arena, 32-bit addresses", "")
    yield "Where nothing fits: the least that was found, and what every plan of stripes needs, however it cuts rows."
    yield ""
    yield from reporting.table(["model", "arena", *(f"{share} %" for share in SHARES)], budgets(corpus))
    if kit is not None:
        yield from ("", "## Least arena on 32-bit ARM", "")
        yield "Measured: the smallest arena in which the program allocates and runs; outputs are compared there."
        yield ""
        columns = ("model", "kernels", "before", "after", "goal", "predicted", "MACs", "operators", "outputs")
        yield from reporting.table(columns, on_arm(corpus, kit), "<<" + ">" * 6 + "<")


def others(large: Path | None) -> Iterator[list[object]]:
    """One row for each example model and objective, with MobileNetV2 at 224 where it was built."""
    sources = [MODELS / f"{name}.tflite" for name in OTHERS]
    if large is not None:
        sources.append(large / "mobilenet_v2_224.tflite")
    for source in sources:
        reporting.progress(source.stem)
        ladders = [fit(asked(source, objective=objective, abi="64")) for objective in ("arena", "head")]
        before, least = ladders[0].rungs[0], [chosen(ladder) for ladder in ladders]
        for rung in least:
            check(source.stem, before, rung)
        pairs = (before.arena, least[0].arena), (before.head, least[1].head)
        sizes = [cell for a, b in pairs for cell in (f"{a:,}", f"{b:,}", f"{100 * b / a:.0f} %")]
        macs = ", ".join(work(ladder, rung) for ladder, rung in zip(ladders, least, strict=True))
        stretches = " / ".join("; ".join(rung.stretches) or "none" for rung in least)
        yield [source.stem, *sizes, macs, stretches]


def source_of(corpus: Path, name: str) -> Path:
    """The file of a model."""
    return corpus / "tflite" / f"{name}.tflite"


def rows(corpus: Path, objective: str) -> Iterator[list[object]]:
    """One row for each model: the least of the objective."""
    for name, goals in GOALS.items():
        reporting.progress(f"{name}: least {objective}")
        began = spent()
        ladder = fit(asked(source_of(corpus, name), objective=objective, abi="64"))
        clock, processor = (b - a for a, b in zip(began, spent(), strict=True))
        before, after = ladder.rungs[0], chosen(ladder)
        check(name, before, after)
        sizes = [(rung.head, rung.arena) for rung in (before, after)]
        if objective == "arena":
            sizes = [(arena, head) for head, arena in sizes]
        (mine, other), (best, beside) = sizes
        goal = goals[objective == "arena"]
        cells = [name, f"{mine:,}", f"{best:,}", told(best, goal), f"{other:,}", f"{beside:,}"]
        growth = len(after.model) - len(before.model)
        yield [
            *cells, work(ladder, after), f"{slower(before.model, after.model):.2f}", before.ops, after.ops,
            f"{growth:+,}", f"{after.copied:,}", f"{clock:.1f} / {processor:.1f}", "; ".join(after.stretches),
        ]  # fmt: skip


def spent() -> tuple[float, float]:
    """Seconds by the clock, and of processors by this process and those that it started and that have ended."""
    used = os.times()
    return used.elapsed, used.user + used.system + used.children_user + used.children_system


def chosen(ladder: Ladder) -> Rung:
    """The answer of a ladder without a budget."""
    return ladder.chosen or ladder.rungs[0]


def told(found: int, goal: int | None) -> str:
    """A goal, and whether it was missed."""
    if goal is None:
        return ""
    return f"< {goal:,}" + ("" if found < goal else " missed")


def work(ladder: Ladder, rung: Rung) -> str:
    """The multiply-accumulates that a rung adds."""
    return f"{100 * (rung.macs - ladder.macs) / max(ladder.macs, 1):+.1f} %"


def check(name: str, before: Rung, after: Rung) -> None:
    """Ends the benchmark where the outputs of a rung are not those of the model."""
    if run_tflm(after.model).outputs != run_tflm(before.model).outputs:
        raise SystemExit(f"{name}: outputs differ")


def slower(before: bytes, after: bytes) -> float:
    """How many times longer one invocation takes."""
    from tflite_micro import runtime

    interpreters = [runtime.Interpreter.from_bytes(model, arena_size=64 << 20) for model in (before, after)]
    details = interpreters[0].get_input_details(0)
    zeros = np.zeros(details["shape"], details["dtype"])
    return timed(interpreters[1], zeros, interpreters[0])


def timed(ours: Any, zeros: Any, own: Any) -> float:
    """The least time of `ours` as a multiple of that of `own`, taken in turn."""
    least = {id(own): float("inf"), id(ours): float("inf")}
    for _ in range(_TIMED):
        for interpreter in (own, ours):
            interpreter.set_input(zeros, 0)
            began = time.process_time()
            interpreter.invoke()
            least[id(interpreter)] = min(least[id(interpreter)], time.process_time() - began)
    return least[id(ours)] / max(least[id(own)], 1e-9)


def budgets(corpus: Path) -> Iterator[list[object]]:
    """One row for each model: the rung that is chosen for each share of its arena."""
    for name in GOALS:
        source = source_of(corpus, name)
        whole = fit(asked(source, without=frozenset({"order", "views", "overlaps", "fold", "gather", "split"}))).rungs[
            0
        ]
        cells: list[object] = [name, f"{whole.arena:,}"]
        for share in SHARES:
            reporting.progress(f"{name}: {share} %")
            ladder = fit(asked(source, budget=whole.arena * share // 100))
            if ladder.chosen is None:
                cells.append(f"none: {ladder.least:,}, bound {ladder.bound:,}")
                continue
            check(name, whole, ladder.chosen)
            cells.append(f"{ladder.chosen.name}: {ladder.chosen.arena:,}, {work(ladder, ladder.chosen)}")
        yield cells


def on_arm(corpus: Path, kit: Path) -> Iterator[list[object]]:
    """One row for each model and kernel library that the kit runs."""
    script = next((found for found in (kit / "run", corpus.parent / "device" / "run") if found.exists()), None)
    if script is None:
        raise SystemExit(f"no script `run` of the device kit in {kit} or beside {corpus}")
    for name, goal in GOALS_32.items():
        for kernels, program in KERNELS_32.items():
            reporting.progress(f"{name}: {program} on ARM")
            ladder = fit(asked(source_of(corpus, name), kernels=kernels))
            after = chosen(ladder)
            own, ours = (measured(script, kit, program, rung.model) for rung in (ladder.rungs[0], after))
            equal = "equal" if own["output_sha256"] == ours["output_sha256"] else "DIFFERENT"
            least = int(ours["min_arena"])
            yield [
                name, program, f"{own['min_arena']:,}", f"{least:,}", told(least, goal), f"{after.arena:,}",
                work(ladder, after), after.ops, equal,
            ]  # fmt: skip


def measured(script: Path, kit: Path, program: str, model: bytes) -> dict[str, Any]:
    """What the kit says of a model: least arena, digests of the outputs."""
    with tempfile.NamedTemporaryFile(suffix=".tflite") as file:
        file.write(model)
        file.flush()
        options = ["--dir", str(kit), "--kernels", program, "--min-arena", "--runs", "3"]
        command = [sys.executable, str(script), file.name, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


PARSER = reporting.command_line(__file__, __doc__, "fit.md")
PARSER.add_argument("--large", type=Path, metavar="DIR", help="the folder of mobilenet_v2_224.tflite")
PARSER.add_argument("--kit", type=Path, metavar="PATH", help="the folder with the device kit's programs")


if __name__ == "__main__":
    main()
