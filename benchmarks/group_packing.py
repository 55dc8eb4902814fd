"""Packs rigid groups: how many packings are proved to be the lowest, how far the others are from their bound.

    python benchmarks/group_packing.py [--keep DIR]

The real instances are problems that `fit` solved for the corpus' models, evenly out of the first that it made. The
others are chains of maps in rows, drawn at random. Every packing passes the referee. DIR gets each instance with its
packing as a table that `modelplan solve` reads.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import reporting

from modelplan import Budget, Placement, Problem, height, place
from modelplan.outputs.exchange import buffers_csv
from modelplan.primitives import _core
from modelplan.questions.model_fitting import FitRequest, fit
from modelplan.rewriting.striped_tflite import stripe_search
from modelplan.rewriting.stripes import group_packing
from modelplan.rewriting.stripes.group_packing import AllowedOverlap, GroupPacking, LiveBytes, as_problem, group_problem

#: Models of the corpus, and what is asked for: the least on 32 bits with CMSIS-NN.
ASKED = FitRequest("", abi="32", kernels="cmsis-dsp")
ARENA, HEAD, INT8 = ASKED, replace(ASKED, objective="head"), replace(ASKED, interface="int8")
MODELS = {
    "tflite/person_detect": HEAD, "tflite/vww_96_int8": ARENA, "tflite/kws_ref_model": HEAD,
    "tflite/pretrainedResnet_quant": HEAD, "tflite/mcu/mcunet_vww0": ARENA, "tflite/mcu/micronet_vww2": ARENA,
    "tflite/mcu/micronet_vww3": HEAD, "tflite/mcu/kws_cnn_l": HEAD, "tflite/mcu/kws_micronet_l": ARENA,
    "camera/blazeface_front_128": INT8, "camera/fomo_face_detection": ARENA, "camera/yolo_lc_192": ARENA,
    "camera/palm_detection_full_192": INT8,
}  # fmt: skip
#: Problems after which the search of a model is interrupted.
FIRST = 48
#: Instances of each model, generated ones, and the tries of each packing: at a first look, and of an answer.
OF_EACH, GENERATED, TRIES = 10, 1000, (ASKED.effort.tflite.glance, ASKED.effort.tflite.answer)

PARSER = reporting.command_line(__file__, __doc__, "group_packing.md")
PARSER.add_argument("--keep", type=Path, metavar="DIR", help="a folder for the instances with their packings")


def recorded(request: FitRequest) -> list[Problem]:
    """Packing problems that `fit` solves on its way, evenly out of the first ones."""
    found: list[Problem] = []

    def noting(problem: _core.GroupProblem, tries: int, seed: int, known: GroupPacking | None = None) -> GroupPacking:
        found.append(as_problem(problem))
        if len(found) == FIRST:
            raise KeyboardInterrupt  # ends the search as a user does
        return group_packing.glance(problem, tries, seed, known)

    with mock.patch.object(stripe_search, "glance", noting):
        fit(request)
    return found[:: max(1, -(-len(found) // OF_EACH))]


def generated(rng: random.Random) -> Problem:
    """A chain of maps, each computed row by row at the pace of the one before, whose rows die as they are read.

    Some maps wait for a later reader, and some outputs may run into what they read.
    """
    lives, allowed, begin = list[LiveBytes](), list[AllowedOverlap](), -1
    shapes = [(rng.choice((1, 2, 4, 8, 16)), 16 * rng.randint(1, 40)) for _ in range(rng.randint(3, 40))]
    for group, (rows, size) in enumerate(shapes):
        reader = shapes[(group + 1) % len(shapes)][0]
        behind = begin + rng.randint(1, rows)  # the first step of the reader
        held, lead = rng.choice((0, 0, 0, rng.randint(1, 30))), rng.randint(0, 2) * size
        for row in range(rows):
            read = behind + (row + 1) * reader // rows + rng.randint(0, 1)
            lives.append(
                LiveBytes(group, row * size, row * size + size, begin + row, max(read, begin + row) + 1 + held)
            )
        if rng.random() < 0.6 and group + 1 < len(shapes):
            steps = range(behind, behind + reader)
            allowed += [AllowedOverlap(group, group + 1, step, -lead, exact=False) for step in steps]
        begin = behind
    scratch = [(rng.randrange(begin + 1), 16 * rng.randint(1, 100)) for _ in range(rng.randint(0, 4))]
    return as_problem(group_problem(lives, len(shapes), 16, lambda: allowed, scratch))


def instances(corpus: Path) -> Iterator[tuple[str, list[Problem]]]:
    """The instances of each model, then those that are drawn."""
    for name, request in MODELS.items():
        reporting.progress(name)
        yield name.rpartition("/")[2], recorded(replace(request, model=corpus / f"{name}.tflite"))
    reporting.progress("generated")
    yield "generated", [generated(random.Random(seed)) for seed in range(GENERATED)]


def measured(problems: Sequence[Problem], tries: int) -> tuple[list[Placement], list[object]]:
    """The packings, and cells: how many are proved, the mean and the largest gap, milliseconds of a packing."""
    began = time.process_time()
    found = [place(problem, budget=Budget(steps=tries)) for problem in problems]
    spent = time.process_time() - began
    gaps = [height(p, answer) / answer.lower_bound - 1 for p, answer in zip(problems, found, strict=True)]
    mean = f"{100 * sum(gaps) / len(gaps):.2f} %"
    return found, [gaps.count(0), mean, f"{100 * max(gaps):.1f} %", f"{1000 * spent / len(gaps):.1f}"]


def rows(corpus: Path, keep: Path | None) -> Iterator[list[object]]:
    """One row for each model, then that of the generated ones."""
    for name, problems in instances(corpus):
        cells: list[object] = [name, len(problems), max(map(len, problems))]
        for tries in TRIES:
            packings, more = measured(problems, tries)
            cells += more
        for number, (problem, packing) in enumerate(zip(problems, packings, strict=True)):
            if keep is None:
                break
            (keep / f"{name}_{number}.csv").write_text(buffers_csv.write(problem, packing))
        yield cells


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    headings = ["instances of", "number", "buffers, up to"]
    headings += [f"{what} at {n:,} tries" for n in TRIES for what in ("proved", "mean gap", "largest gap", "CPU ms")]
    text = "Packings of rigid groups, each passed by the referee: how many are proved to be the lowest, and how far the"
    lines = [f"{text} height is above the proved bound.", ""]
    lines += reporting.table(headings, rows(arguments.corpus, arguments.keep))
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "Packings of rigid groups", lines)


if __name__ == "__main__":
    main()
