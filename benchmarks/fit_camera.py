"""Shows what fit makes of networks that ship with camera boards, and of wake words, beside its goals.

    python benchmarks/fit_camera.py --kit PATH

Every file is proved by fit. PATH is the folder with the programs of the device kit, which run it on 32-bit ARM in an
arena of exactly the bytes that fit says; without it those columns are empty.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reporting

from modelplan.primitives.errors import RequestError
from modelplan.questions.model_fitting import FitRequest, fit
from modelplan.rewriting.striped_tflite.ladder import Ladder
from modelplan.rewriting.striped_tflite.rungs import Rung
from modelplan.runtimes.tflm.arena import planned
from modelplan.runtimes.tflm.file import read_tflite

#: Kernels as modelplan calls them, and as the kit does.
PROGRAMS = {"cmsis-dsp": "cmsis", "esp-nn": "espnn"}


@dataclass(frozen=True, slots=True)
class Row:
    """A file of the corpus, what is asked of fit, and the bytes of arena and head to come below, 0 for no such goal."""

    file: str
    interface: str = "as-is"
    objective: str = "arena"
    arena: int = 0
    head: int = 0
    kernels: str = "cmsis-dsp"


ROWS = (
    Row("camera/blazeface_front_128", "int8", "arena", 110_000, 77_000),
    Row("camera/blazeface_front_128", "as-is", "arena", 222_000),
    Row("camera/blazeface_front_128", "as-is", "head", 0, 196_609),
    Row("camera/yolov8n_192", "as-is", "head", 0, 125_000),
    Row("camera/yolo_lc_192", "as-is", "arena", 132_000),
    Row("camera/fomo_face_detection", "as-is", "arena", 44_000),
    Row("camera/fomo_face_detection", "as-is", "arena", 60_000, 0, "esp-nn"),
    Row("camera/palm_detection_full_192", "int8", "arena", 290_000),
    Row("camera/palm_detection_full_192", "int8", "head", 0, 180_000),
    Row("camera/yolox_nano_int8", "int8", "head", 0, 1_500_000),
    Row("camera/yolox_nano_int8", "as-is", "head", 0, 1_500_000),
    Row("tflite/wakeword/okay_nabu", "as-is", "head"),
    Row("tflite/wakeword/alexa", "as-is", "head"),
    Row("tflite/wakeword/vad", "as-is", "head"),
)
_HEADINGS = (
    "model", "kernels", "interface", "least", ">arena before", ">head before", ">arena", ">goal", ">head", ">goal",
    ">bound", ">MACs", ">time", ">operators", ">CPU s", "on the device", "what is left",
)  # fmt: skip


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    chosen = [row for row in ROWS if arguments.only in row.file]
    first = reporting.made_by(PARSER, arguments)
    reporting.save(arguments.output, first, "Fit: networks of cameras and wake words", page(chosen, arguments))


def page(chosen: list[Row], arguments: Any) -> Iterator[str]:
    """The lines of the report."""
    yield (
        "Bytes of arena and head for ABI 32, with at most 10 % more multiply-accumulates and 15 % more time. `least` is"
        " the objective; `bound` is what every plan of stripes needs of it. On the device: TFLM on 32-bit ARM under"
        " QEMU, in an arena of exactly as many bytes as fit says; outputs are compared with those of the file as it is,"
        " with another interface with those of the rung `interface`, which is proved and run beside the model. `what is"
        " left` has the buffers alive at the top of the head, the tail, where the bound comes from, what the plans that"
        " were built need, and which operators stay whole."
    )
    yield ""
    names = [heading.lstrip(">") for heading in _HEADINGS]
    aligned = "".join(">" if heading.startswith(">") else "<" for heading in _HEADINGS)
    yield from reporting.table(names, (cells(row, arguments) for row in chosen), aligned)


def cells(row: Row, arguments: Any) -> list[object]:
    """One row of the table."""
    name = Path(row.file).name
    reporting.progress(f"{name} {row.kernels} {row.interface} {row.objective}")
    request = FitRequest(
        arguments.corpus / f"{row.file}.tflite", kernels=row.kernels, interface=row.interface, objective=row.objective
    )
    head = [name, row.kernels, row.interface, row.objective]
    began = spent()
    try:
        ladder = fit(request)
    except RequestError as problem:
        return [*head, *[""] * 11, "", str(problem).rpartition(": --")[2]]
    before, after = ladder.rungs[0], ladder.chosen or ladder.rungs[0]
    return [
        *head, f"{before.arena:,}", f"{before.head:,}", f"{after.arena:,}", goal(after.arena, row.arena),
        f"{after.head:,}", goal(after.head, row.head), f"{ladder.bound:,}",
        f"{100 * (after.macs / max(ladder.macs, 1) - 1):+.1f} %", f"{after.time:.2f}", after.ops,
        f"{spent() - began:.0f}", on_device(ladder, after, row, arguments.kit),
        left(ladder, after, row),
    ]  # fmt: skip


def spent() -> float:
    """Seconds of processors by this process and those that it started and that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def goal(found: int, limit: int) -> str:
    """A goal, and whether it was missed."""
    return f"< {limit:,}{'' if found < limit else ' missed'}" if limit else ""


def left(ladder: Ladder, after: Rung, row: Row) -> str:
    """What stands in the way of fewer bytes, and what would remove it."""
    telling = ("is not split", "is read by", "--interface")
    reasons = [remark for remark in ladder.remarks if any(words in remark for words in telling)][:3]
    built = f"{ladder.built_bound:,} for {len(ladder.points)} plans that were built" if ladder.points else ""
    bound = f"bound: {ladder.bound_by}" if ladder.bound_by else ""
    tails = f"tail: {after.tail:,} ({ladder.rungs[0].tail:,} before)"
    return "; ".join(filter(None, [f"peak: {peak(after, row.kernels)}", tails, bound, built, *reasons]))


def peak(rung: Rung, kernels: str) -> str:
    """The largest buffers that are alive when the top of the head is in use, and how many smaller ones."""
    model = read_tflite(rung.model, "rung")
    rows, offsets = planned(model, 32, kernels)
    top = max(range(len(rows)), key=lambda k: offsets[k] + rows[k].size)
    alive = [row for row in rows if row.first <= rows[top].first <= row.last]
    alive.sort(key=lambda row: -row.size)
    named = [f"{'scratch' if row.scratch else model.tensors[row.tensor].name[-40:]} {row.size:,}" for row in alive[:3]]
    return ", ".join([*named, *([f"{len(alive) - 3} smaller ones"] if len(alive) > 3 else [])])


def on_device(ladder: Ladder, after: Rung, row: Row, kit: Path | None) -> str:
    """Whether the file runs in its arena on the device, with the outputs of the file before."""
    if kit is None:
        return ""
    own = next((rung for rung in ladder.rungs if rung.name == "interface"), ladder.rungs[0])
    first, second = (measured(kit, row.kernels, rung) for rung in (own, after))
    if second.get("alloc") != "ok":
        return f"DOES NOT RUN in {after.arena:,}: {second.get('error', second.get('alloc'))}"
    equal = "equal" if first["output_sha256"] == second["output_sha256"] else "DIFFERENT"
    return f"runs in {after.arena:,}, head {second['head']:,}, outputs {equal}"


def measured(kit: Path, kernels: str, rung: Rung) -> dict[str, Any]:
    """What the kit says of a rung in its arena."""
    script = next((found for found in (kit / "run", kit.parent / "run") if found.exists()), None)
    if script is None:
        raise SystemExit(f"no script `run` of the device kit in {kit} or beside it")
    with tempfile.NamedTemporaryFile(suffix=".tflite") as file:
        file.write(rung.model)
        file.flush()
        words = ["--dir", str(kit), "--kernels", PROGRAMS[kernels], "--runs", "2", "--arena", str(rung.arena)]
        done = subprocess.run([sys.executable, str(script), file.name, *words], capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


PARSER = reporting.command_line(__file__, __doc__, "fit_camera.md")
PARSER.add_argument("--kit", type=Path, metavar="PATH", help="the folder with the device kit's programs")
PARSER.add_argument("--only", default="", metavar="WORD", help="only files whose path has this word")


if __name__ == "__main__":
    main()
