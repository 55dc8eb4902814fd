"""Random networks as plain C in random stages, proved, compiled and compared with TFLM map by map.

python tests/sweeps/c_plans.py COUNT [FIRST [KERNELS]] prints what differs and which operators have no kernel. KERNELS
are "portable", or "cmsis-c", "cmsis-nn" or "esp-nn" by the library in the folder MODELPLAN_TFLM_KIT.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from random_cnns import random_cnn

from modelplan.formats import load_model
from modelplan.model.c_program import CProgram, StageChoice, TileChain
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.kernel_records import COperator
from modelplan.plain_c.rows.placing_rows import placed_program
from modelplan.plain_c.rows.repeating import possible_repeats, with_repeats
from modelplan.plain_c.rows.row_graph import RowGraph, with_chains
from modelplan.plain_c.rows.spare_memory import with_spare_scratch
from modelplan.plain_c.rows.stage_plan import StagedGraph
from modelplan.plain_c.rows.stage_search import StageSearch, can_run_in, rows_in_order
from modelplan.plain_c.rows.tile_search import chains_between
from modelplan.plain_c.stated_plan import stated_verdict
from modelplan.plain_c.writing.c_self_test import c_self_test, expected_c_runs
from modelplan.plain_c.writing.c_source import CNames, c_files
from modelplan.primitives.errors import ModelError
from modelplan.runtimes.tflm.file import load_tflite

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def random_chains(rows: RowGraph, draw: random.Random) -> list[TileChain]:
    """Some of the operators that can run tile by tile, none twice; none computes another one that runs again."""
    chains, used, again = list[TileChain](), set[int](), set(rows.origins.values())
    possible = chains_between(rows, 0, len(rows.order))
    possible = [c for c in possible if c.operators[-1] not in rows.expanded or again.isdisjoint(c.operators)]
    for chain in draw.sample(possible, len(possible)):
        if used.isdisjoint(chain.operators) and draw.random() < 0.7:
            used.update(chain.operators)
            chains.append(chain)
    return chains


def random_order(rows: RowGraph, draw: random.Random) -> RowGraph:
    """The rows with their operators in any order that there is; where variables see the order, as they are."""
    if not can_run_in(rows, rows.order):
        return rows
    left, order = list(rows.order), list[int]()
    while left:
        made_by = {n: {rows.values[rows.value_of[t]].producer for t in rows.operators[n].operands} for n in left}
        order.append(draw.choice([n for n in left if made_by[n].isdisjoint(left)]))
        left.remove(order[-1])
    return rows_in_order(rows, order)


def random_repeats(rows: RowGraph, draw: random.Random) -> RowGraph:
    """The rows with up to two runs of operators again."""
    for _ in range(2):
        if possible := list(possible_repeats(rows)):
            rows = with_repeats(rows, [draw.choice(possible)])
    return rows


def random_stages(model: CModel, draw: random.Random, *, pushed: bool) -> tuple[CProgram, Mapping[int, COperator]]:
    """Operators in any order and runs of random length, direction and parts, some by tiles or twice; and these."""
    tiled = draw.random() < 0.5 and model.kernels == "portable"  # as fit asks for tiles of portable kernels alone
    rows = random_order(model.rows, draw) if draw.random() < 0.5 else model.rows
    rows = random_repeats(rows, draw) if draw.random() < 0.5 and model.kernels == "portable" else rows
    chains = random_chains(rows, draw) if tiled else []
    graph = StagedGraph(with_chains(rows, chains), pushed)
    search, at, stages = StageSearch(graph), len(graph.rows.order), list[StageChoice]()
    while at:
        first = max(at - draw.randint(1, 6), search.barrier(at))
        whole = at - first == 1 and len(graph.rows.members(graph.rows.order[first])) == 1
        parts = draw.choice((0, 1, 1, 2, 3, 50)) if whole else draw.choice((1, 1, 2, 3, 50))
        stages.insert(0, StageChoice(first, at, parts, draw.random() < 0.5 and not (pushed and not first)))
        at = first
    program = replace(placed_program(graph, stages, 100, draw.randrange(100)), kernels=model.kernels)
    return program, model.operators_of(graph.rows, program, {})


def fault_of(content: bytes, seed: int, folder: Path, kernels: str = "portable") -> str:
    """What is wrong with a plan of a network; empty where nothing is."""
    path = folder / "net.tflite"
    path.write_bytes(content)
    file, draw = load_tflite(str(path)), random.Random(seed)
    model, names = CModel(load_model(str(path)), file, kernels), CNames("net", "net.h")
    program, operators = random_stages(model, draw, pushed=draw.random() < 0.5)
    program, faster = with_spare_scratch(replace(program, kernels=kernels), model.rows, model.faster)
    operators = operators if kernels == "portable" else model.operators_of(model.rows, program, faster)
    files = c_files(file, operators, program, names)
    verdict = stated_verdict(model, files.source, files.header)
    if verdict.outcome != "ok":
        return verdict.details
    runs = expected_c_runs(file, operators, program, seed, runs=2)
    (folder / "test.c").write_text(c_self_test(file, operators, program, names, runs, seed))
    (folder / names.header).write_text(files.header)
    return _run(folder, kernels)


def _run(folder: Path, kernels: str) -> str:
    kit = Path(os.environ.get("MODELPLAN_TFLM_KIT", ""))
    library = []
    if kernels == "esp-nn":
        library = ["-w", f"-I{kit}/src/esp-nn/include", f"-I{kit}/src/esp-nn/src/common", "-fno-sanitize=undefined"]
        library += [str(path) for end in ("ansi", "opt") for path in (kit / "src/esp-nn/src").glob(f"*/*_{end}.c")]
    elif kernels != "portable":
        library = [f"-I{kit}/src/cmsis-nn/Include", f"{kit}/lib/host-cmsis-c.a"]
    command = ["cc", *FLAGS, "test.c", *library, "-lm", "-o", "t"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if built.returncode:
        return built.stderr[:1000]
    done = subprocess.run(["./t"], cwd=folder, capture_output=True, text=True)
    return "" if done.returncode == 0 and "PASS" in done.stdout else (done.stdout + done.stderr)[:1000]


def faults(seeds: Sequence[int], kernels: str = "portable") -> tuple[dict[int, str], int]:
    """What is wrong, by seed, and how many networks have an operator without a kernel."""
    wrong, refused = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            try:
                fault = fault_of(random_cnn(seed), seed, Path(folder), kernels)
            except ModelError:
                refused += 1
                continue
            if fault:
                wrong[seed] = fault
    return wrong, refused


if __name__ == "__main__":
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    found, without = faults(range(first, first + count), sys.argv[3] if len(sys.argv) > 3 else "portable")
    print(f"{count - without} networks, {without} refused, {len(found)} wrong")
    for seed, what in found.items():
        print(seed, what)
