"""`modelplan together`: the command, and its plans executed on TFLM, with outputs as from separate arenas."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from commands import run
from random_cnns import random_cnn
from shared_memory import BUILDS, differences, drawn, enough, missing, ran, runnable

from modelplan.answers.shared_plan import SharedPlan
from modelplan.outputs.firmware.shared_header import shared_header
from modelplan.questions.alternatives import load_file, planned_by_itself
from modelplan.questions.together.parts import ShareRequest
from modelplan.questions.together.shared_memory import share_memory, tflm_arenas
from modelplan.rewriting.shared_plan_files import planned_files
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.planner import read_plan
from modelplan.runtimes.tflm.runner import INSTALL, installed, run_tflm

HOST = "host-reference"
on_kit = pytest.mark.skipif(bool(missing(HOST)), reason=missing(HOST) or "a kit is there")
on_wheel = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")


def three(corpus: Path) -> dict[str, Path]:
    files = corpus / "tflite"
    return {
        "person": files / "person_detect.tflite",
        "kws": files / "kws_ref_model.tflite",
        "wake": files / "wakeword" / "okay_nabu.tflite",
    }


def output(file: FileModel) -> tuple[int, ...]:
    main = file.subgraphs[0]
    return main.tensors[main.outputs[0]].shape


#: The programs have reference kernels.
asked = partial(ShareRequest, kernels="reference")


def chained(folder: Path, seeds: tuple[int, ...], feeds: tuple[int, ...]) -> dict[str, Path]:
    """Random networks; each takes what the one of the number in `feeds` gives, -1 for one of its own shape."""
    made: list[FileModel] = []
    for seed, feed in zip(seeds, feeds, strict=True):
        made.append(read_tflite(random_cnn(seed, None if feed < 0 else output(made[feed])), "m"))
    paths = {f"n{i}": folder / f"n{i}.tflite" for i in range(len(made))}
    for path, file in zip(paths.values(), made, strict=True):
        path.write_bytes(file.data)
    return paths


def same_outputs(made: SharedPlan, paths: dict[str, Path], *words: str, program: str = HOST) -> dict[str, Any]:
    """Runs the plan by its header in exactly its arena, twice around, and compares with separate arenas."""
    abi = BUILDS[program].abi
    arenas = tflm_arenas(made, abi)
    header, models = shared_header(made, arenas), list(paths.values())
    ends = [(pipe.source.model, pipe.target.model) for pipe in made.relation.pipes]
    pipes = [word for a, b in ends for word in ("--pipe", f"{a}:0={b}:0")]
    words = (*words, "--rounds", "2", "--order", ",".join(map(str, made.relation.order)), *pipes)
    said = ran(program, arenas.pinned.least, models, *words, header=header)
    alone = ran(program, 64 << 20, models, "--separate", *words)
    assert said["runs"] == alone["runs"]
    assert said["copied"] == 0
    assert (said["head"], said["used"]) == (made.height, arenas.pinned.total)
    assert not enough(program, arenas.pinned.least - 16, models, header)
    return said


@on_kit
@pytest.mark.parametrize("alias", ["views", "safe"])
def test_three_models_in_turn_give_what_each_gives_alone(corpus: Path, alias: str) -> None:
    paths = three(corpus)
    made = share_memory(asked(paths, in_turn=[["all"]], alias=alias, abi="x86-64"))
    same_outputs(made, paths)
    assert made.height == max(part.alone for part in made.parts)


@pytest.mark.skipif(bool(missing("tflm-reference")), reason=missing("tflm-reference") or "a kit is there")
def test_three_models_in_turn_on_32_bits(corpus: Path) -> None:
    paths = three(corpus)
    made = share_memory(asked(paths, in_turn=[["person", "kws"]], alias="safe", abi="xtensa"))
    same_outputs(made, paths, program="tflm-reference")


@on_kit
def test_a_model_that_interrupts_others_between_operators(corpus: Path) -> None:
    """It runs as a whole before and after every operator of both others."""
    paths = three(corpus)
    made = share_memory(asked(paths, in_turn=[["person", "kws"]], abi="x86-64"))
    said = same_outputs(made, paths, "--nest", "0:2", "--nest", "1:2")
    assert sum(model == 2 for model, _ in said["runs"]) > 80


@on_kit
def test_what_is_kept_outlives_the_others(corpus: Path) -> None:
    paths = three(corpus)
    made = share_memory(
        asked(paths, in_turn=[["all"]], keep=["person:outputs", "wake:outputs"], alias="safe", abi="x86-64")
    )
    said = same_outputs(made, paths)
    for turn in range(2):
        digests = dict(said["runs"][3 * turn : 3 * turn + 3])
        assert [said["late"][3 * turn + m] == digests[m] for m in (0, 2)] == [True, True]


@on_kit
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("feeds", "pipelines"), [
    ((-1, 0, 1), ("n0=n1", "n1=n2")),
    ((-1, 0, 0), ("n0=n1", "n0=n2")),
    ((-1, -1, 0), ("n0=n2",)),
])  # fmt: skip
def test_pipelines_hand_on_without_a_copy(
    tmp_path: Path, seed: int, feeds: tuple[int, ...], pipelines: tuple[str, ...]
) -> None:
    paths = chained(tmp_path, (3 * seed + 1, 3 * seed + 2, 3 * seed + 5), feeds)
    made = share_memory(asked(paths, pipelines=pipelines, in_turn=[["all"]], alias="safe", abi="x86-64"))
    same_outputs(made, paths)


@on_kit
@pytest.mark.parametrize("seed", range(2))
def test_files_with_plans_run_on_one_allocator(tmp_path: Path, seed: int) -> None:
    paths = chained(tmp_path, (5 * seed + 1, 5 * seed + 2, 5 * seed + 7), (-1, 0, 1))
    made = share_memory(asked(paths, pipelines=["n0=n1", "n1=n2"], abi="x86-64"))
    written, arenas = planned_files(made).models, tflm_arenas(made, "x86-64")
    packed = [tmp_path / f"packed{i}.tflite" for i in range(3)]
    for path, file in zip(packed, written, strict=True):
        path.write_bytes(file.data)
    pipes = ("--rounds", "2", "--pipe", "0:0=1:0", "--pipe", "1:0=2:0")
    assert arenas.written is not None
    said = ran(HOST, arenas.written.least, packed, *pipes)
    assert said["runs"] == ran(HOST, 16 << 20, list(paths.values()), "--separate", *pipes)["runs"]
    assert (said["copied"], said["head"], said["used"]) == (0, arenas.written.head, arenas.written.total)


@pytest.mark.parametrize("program", BUILDS)
def test_one_allocator_with_several_models_is_as_predicted(corpus: Path, models: Path, program: str) -> None:
    if reason := missing(program):
        pytest.skip(reason)
    paths = runnable([p for p in sorted((corpus / "tflite").rglob("*.tflite")) if "vela" not in p.name])
    for chosen in drawn(paths + runnable(sorted(models.glob("*.tflite"))), 6, 4):
        assert differences(program, chosen) == [], [path.stem for path in chosen]


@pytest.mark.slow
@on_wheel
def test_each_written_file_gives_the_same_on_the_wheel(corpus: Path) -> None:
    paths = three(corpus)
    made = share_memory(asked(paths, in_turn=[["all"]], keep=["kws:outputs"], alias="safe", abi="64"))
    for path, file, share in zip(paths.values(), planned_files(made).models, _shares(made), strict=True):
        ours, own = run_tflm(file.data, rounds=1), run_tflm(path.read_bytes(), rounds=1)
        assert ours.outputs == own.outputs
        assert ours.head == share
        assert read_plan(file) is not None


def _shares(made: SharedPlan) -> list[int]:
    written = tflm_arenas(made, "64").written
    assert written is not None
    return [share.head for share in written.shares]


def test_one_model_on_an_allocator_is_the_model_alone(corpus: Path) -> None:
    from modelplan.runtimes.tflm.other_arenas import shared_arena_of

    for path in three(corpus).values():
        file = read_tflite(path.read_bytes(), path.name)
        for abi in ("32", "64", "cortex-m"):
            one, own = shared_arena_of([file], abi), arena(file, abi)
            assert (one.head, one.tail, one.least) == (own.head, own.tail, own.least)


# The command ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_writes_all_that_it_is_asked_for(corpus: Path, tmp_path: Path) -> None:
    words = [f"{name}={path}" for name, path in three(corpus).items()]
    outputs = ["--json", "all.json", "--csv", "all.csv", "--header", "all.h", "--files", "planned", "--draw",
               "all.map.svg", "--draw", "all.curve.png"]  # fmt: skip
    done = run(
        "together",
        *words,
        "--in-turn",
        "person,kws",
        "--keep",
        "kws:outputs",
        "--kernels",
        "reference",
        *outputs,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "proven optimal" in done.stdout
    assert "tails cannot be shared" in done.stdout
    document = json.loads((tmp_path / "all.json").read_text())
    assert document["height"] == document["lower_bound"] == 59344
    assert [model["name"] for model in document["models"]] == ["person", "kws", "wake"]
    assert document["in_turn"] == [["person", "kws"]]
    assert (tmp_path / "all.csv").read_text().count("\n") == 1 + len(document["models"][0]["buffers"]) + sum(
        len(model["buffers"]) for model in document["models"][1:]
    )
    assert sorted(path.name for path in (tmp_path / "planned").iterdir()) == [
        "kws.tflite",
        "person.tflite",
        "wake.tflite",
    ]
    assert "class SharedMemoryPlanner" in (tmp_path / "all.h").read_text()
    assert (tmp_path / "all.map.svg").read_text().startswith("<?xml")


def test_onnx_and_tflite_in_one_memory(models: Path, tmp_path: Path) -> None:
    done = run("together", f"a={models / 'resnet8.onnx'}", f"b={models / 'resnet8.tflite'}", "--in-turn", "all",
               "--json", "-", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["height"] == max(model["alone"] for model in document["models"])
    assert "arenas" not in document


@pytest.mark.slow
def test_a_capacity_that_is_too_small_is_exit_1(models: Path) -> None:
    words = "together", models / "resnet8.tflite", models / "autoencoder.tflite", "--in-turn", "all"
    assert run(*words, "--capacity", "1MiB").returncode == 0
    done = run(*words, "--capacity", "32KiB")
    assert done.returncode == 1
    assert "too much" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a=M",), "expected two or more"),
        (("M", "M"), "two models are called 'autoencoder'"),
        (("a=M", "all=M"), "expected NAME=MODEL"),
        (("a=M", "../b=M"), "expected NAME=MODEL"),
        (("a=M", "b=M", "--in-turn", "a"), "expected two or more"),
        (("a=M", "b=M", "--in-turn", "a,a"), "names a model twice"),
        (("a=M", "b=M", "--in-turn", "a,c"), "no model 'c'; there are: a, b"),
        (("a=M", "b=M", "--pipeline", "a=b", "--pipeline", "b=a"), "form a circle: a -> b -> a"),
        (("a=M", "b=M", "--pipeline", "a=a"), "a model cannot feed itself"),
        (("a=M", "b=M", "c=M", "--pipeline", "a=c", "--pipeline", "b=c"), "is fed by two pipelines"),
        (("a=M", "b=M", "--pipeline", "a:7=b"), "a has no output '7'"),
        (("a=M", "b=M", "--pipeline", "a"), "expected A:out=B:in"),
        (("a=M", "b=N", "--pipeline", "a=b"), "shape [1, 32, 32, 1] is not [1, 32, 32, 3]"),
        (("a=M", "b=M", "--keep", "a:weights"), "expected a:TENSOR"),
        (("a=M", "b=M", "c=M", "--pipeline", "a=b", "--in-turn", "a,c"), "say it of all models of the pipeline"),
        (("a=M", "b=O", "--header", "x.h"), "for models that tflm runs"),
        (("a=M", "b=M", "--kernels", "none"), "no kernels 'none'"),
        (("a=M", "b=M", "--draw", "x.gif"), "cannot tell what to draw"),
    ],
)
def test_what_makes_no_sense_is_refused(models: Path, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    names = {"M": "autoencoder.tflite", "N": "resnet8.tflite", "O": "resnet8.onnx"}
    given = [
        f"{w[:-1]}{models / names[w[-1]]}" if w in names or (w[-2:-1] == "=" and w[-1] in names) else w for w in words
    ]
    done = run("together", *given, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr


@pytest.mark.parametrize("runtime", ["litert", "tflm", "generic"])
def test_memories_of_their_own_are_what_analyze_says(models: Path, runtime: str) -> None:
    """What two models need apart, and together where they share nothing, ends on the alignment as each one's does."""
    names = [models / f"{name}.tflite" for name in ("ds_cnn_kws", "autoencoder")]
    made = share_memory(ShareRequest({path.stem: path for path in names}, runtime=runtime))
    assert made.memory == made.separate
    assert f"{made.separate:,} B" in run("together", *names, "--runtime", runtime).stdout
    if runtime == "tflm":
        return
    for part in made.parts:
        file = load_file(str(part.path))
        assert part.alone <= planned_by_itself(file.graph, part.runtime).arena
        assert part.alone % part.runtime.alignment == 0
