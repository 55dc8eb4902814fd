"""Models that TFLM's own tool has compressed: TFLM_DECODE in the arena, planned, and in memory of its own."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import run
from shared_memory import BUILDS, compiled, missing
from tflm_sweep import KIT, ask_kit, ask_wheel, kit_folder

from modelplan import FitRequest, fit
from modelplan.checking.verifier.rewrites.proving import prove_rewrite
from modelplan.primitives.errors import BrokenPlanError
from modelplan.questions.explaining.decoded_files import arena_of_compressed
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.declaration import requirement_of
from modelplan.runtimes.tflm.decoding import arena_beside_region, decode_region
from modelplan.runtimes.tflm.file import DECODE, FileModel, FileOp, load_tflite, read_tflite
from modelplan.runtimes.tflm.runner import INSTALL, installed

PROGRAM = Path(__file__).resolve().parents[1] / "support" / "decode_region.cc"
#: Models of which the tool reads all fields, and the bits of an index into the values that their weights are given.
CASES = [("resnet8", 3), ("unet_small", 2), ("ds_cnn_kws", 4)]
BUILDS_OF_TFLM = [("cortex-m", "cmsis-dsp"), ("xtensa", "esp-nn"), ("wheel", "reference"), ("32", "all")]

pytestmark = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")


@pytest.fixture(scope="module")
def compressed(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], FileModel]:
    """A model whose weights are among so many values, compressed by TFLM's tool with a table for each tensor."""
    from tflite_micro.tensorflow.lite.micro.compression import SpecBuilder, compress, spec

    folder = tmp_path_factory.mktemp("compressed")

    def made(name: str, bits: int) -> FileModel:
        out = folder / f"{name}{bits}.tflite"
        if not out.exists():
            data, weights = few_values(load_tflite(models / f"{name}.tflite"), bits)
            builder: Any = SpecBuilder()
            for tensor in weights:
                builder.add_tensor(0, tensor).with_lut(bits, spec.PerTensor())
            out.write_bytes(bytes(compress(data, builder.build())))
        return load_tflite(out)

    return made


def few_values(model: FileModel, bits: int) -> tuple[bytes, list[int]]:
    """The file with so many top bits of its larger weights, and these weights; the low bits number them.

    Equal tables of values are one tensor, so no two of them are to be equal.
    """
    data, main = bytearray(model.data), model.subgraphs[0]
    layers = [op.inputs[1] for op in main.ops if op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")]
    weights = [t for t in dict.fromkeys(layers) if main.tensors[t].nbytes > 64]
    mask = 0xFF << (8 - bits) & 0xFF
    for number, t in enumerate(weights):
        start, length = main.tensors[t].content
        data[start : start + length] = bytes(byte & mask | number for byte in data[start : start + length])
    return bytes(data), weights


Compressed = Callable[[str, int], FileModel]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "bits"), CASES)
def test_the_wheel_needs_what_is_predicted(compressed: Compressed, name: str, bits: int) -> None:
    model = compressed(name, bits)
    assert model.decodes
    needed, answer = arena(model, "wheel"), ask_wheel(model.data)
    assert (needed.head, needed.tail, needed.refusals) == (answer.head, answer.tail, ())
    assert answer.enough(needed.least)
    assert not answer.enough(needed.least - 16)


@pytest.mark.slow
@pytest.mark.parametrize("program", ["reference", "cmsis", "espnn"])
@pytest.mark.parametrize(("name", "bits"), CASES)
def test_arm_needs_what_is_predicted(compressed: Compressed, program: str, name: str, bits: int) -> None:
    folder, (file, abi, kernels) = kit_folder(), KIT[program]
    if folder is None or not (folder / file).exists():
        pytest.skip(f"no {file}; set MODELPLAN_TFLM_KIT to the folder of the measuring programs")
    model = compressed(name, bits)
    needed, answer = arena(model, abi, kernels), ask_kit(folder, file, model.data)
    assert (needed.head, needed.tail) == (answer.head, answer.tail)
    assert answer.enough(needed.least)
    assert not answer.enough(needed.least - 16)


@pytest.mark.slow
@pytest.mark.parametrize("program", ["tflm-reference", "tflm-cmsis"])
def test_memory_of_its_own_takes_what_is_predicted(compressed: Compressed, program: str) -> None:
    """In the memory as predicted the arena is as predicted and the outputs are the same; in less it is larger."""
    if why := missing(program):
        pytest.skip(why)
    build, larger = BUILDS[program], list[bool]()
    for name, bits in CASES:
        model = compressed(name, bits)
        region = decode_region(model)
        inside, beside = arena(model, build.abi, build.kernels), arena_beside_region(model, build.abi, build.kernels)

        def ran(size: int, memory: int, path: str = model.name) -> list[str]:
            words = [*build.starter, str(compiled(program, source_file=PROGRAM)), path, str(size), str(memory)]
            return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300).stdout.split()

        own, apart = ran(4 << 20, 0), ran(4 << 20, region)
        assert (int(own[0]), int(apart[0])) == (inside.total, beside.total), name
        assert own[1] == apart[1]
        assert ran(beside.least, region) == apart
        assert ran(beside.least - 16, region) == []
        larger.append(int(ran(4 << 20, region - 1)[0]) > beside.total)
    assert any(larger)  # where the operator that unpacks most is at the peak


def test_commands_size_and_plan_a_compressed_model(compressed: Compressed, tmp_path: Path) -> None:
    model, out = compressed("resnet8", 3), tmp_path / "out.tflite"
    region = decode_region(model)
    said = run("analyze", model.name, "--kernels", "cmsis-dsp", "--abi", "cortex-m").stdout
    assert f"with SetDecompressionMemory into {region} bytes elsewhere" in said.replace("\n     ", "")
    packed = run("pack", model.name, "-o", out, "--alias", "safe", "--header", tmp_path / "arena.h",
                 "--kernels", "reference")  # fmt: skip
    assert packed.returncode == 0, packed.stderr
    assert "resolver.AddDecode()" in (tmp_path / "arena.h").read_text()
    assert requirement_of(load_tflite(out), "32", "reference").arena < requirement_of(model, "32", "reference").arena
    verified = run("verify", out)
    assert verified.returncode == 0, verified.stdout
    assert "bit-equal" in verified.stdout


def test_memory_of_its_own_is_not_for_what_is_read_too_late(compressed: Compressed) -> None:
    model = compressed("resnet8", 3)
    ops = model.subgraphs[0].ops
    first, second = [number for number, op in enumerate(ops) if op.kind == DECODE][:2]
    assert decode_region(with_ops(model, ops)) > 0
    early = [*ops[: first + 1], ops[second], *ops[first + 1 : second], *ops[second + 1 :]]
    assert decode_region(with_ops(model, early)) == 0
    remark = requirement_of(with_ops(model, early), "32", "reference").remarks
    assert len(remark) == 1
    assert "SetDecompressionMemory is not for a model in this order" in remark[0]
    plain = [op for op in ops if op.kind != DECODE]
    assert decode_region(with_ops(model, plain)) == 0
    assert decode_region(replace(model, subgraphs=(*model.subgraphs, model.subgraphs[0]))) == 0


def with_ops(model: FileModel, ops: Sequence[FileOp]) -> FileModel:
    return replace(model, subgraphs=(replace(model.subgraphs[0], ops=tuple(ops)),))


@pytest.mark.parametrize(("name", "bits"), CASES)
def test_what_compression_would_need_is_what_the_compressed_file_needs(
    compressed: Compressed, models: Path, name: str, bits: int
) -> None:
    plain, real = load_tflite(models / f"{name}.tflite"), compressed(name, bits)
    small = dict.fromkeys(few_values(plain, bits)[1], 1)
    for abi, kernels in BUILDS_OF_TFLM:
        expected = arena(real, abi, kernels)
        found = arena_of_compressed(plain, small, f"palette{2**bits}", abi, kernels)
        assert found is not None
        assert found.arena == expected.size(), (abi, kernels)
        assert found.region == decode_region(real)
        assert found.with_region == arena_beside_region(real, abi, kernels).size()
    assert arena_of_compressed(plain, small, "palette200", "32", "all") is None
    assert arena_of_compressed(plain, small, "int4", "32", "all") is None


def test_explain_says_what_unpacking_costs(models: Path) -> None:
    words = ("--kernels", "cmsis-dsp", "--abi", "cortex-m", "--seconds", "0", "--what-if", "compress=weights:palette16")
    done = run("explain", models / "resnet8.tflite", *words)
    assert "weights:palette16 with TFLM_DECODE: arena 61,984, +7,024 for 38,520 less of flash, or" in done.stdout
    direct = run("explain", models / "resnet8.tflite", *words[:-1], "compress=weights:int4")
    assert "with TFLM_DECODE" not in direct.stdout


def test_metadata_of_compressed_weights_is_refused_with_a_remedy(models: Path) -> None:
    from modelplan.formats.tflite.flatbuffer import set_metadata

    data = set_metadata((models / "resnet8.tflite").read_bytes(), "COMPRESSION_METADATA", b"1234")
    needed = requirement_of(read_tflite(data, "m"), "32", "reference")
    assert needed.refusals
    assert needed.remedies == ("compress with TFLM of August 2026 or later, which puts TFLM_DECODE operators instead",)


@pytest.mark.parametrize(("name", "bits"), CASES)
def test_the_least_order_keeps_memory_of_its_own_possible(
    compressed: Compressed, tmp_path: Path, name: str, bits: int
) -> None:
    model, out = compressed(name, bits), tmp_path / "ordered.tflite"
    done = run("reorder", model.name, "-o", out, "--kernels", "reference")
    assert done.returncode == 0, done.stderr
    assert "optimal" in done.stdout
    ordered = load_tflite(out)
    before, after = arena(model, "32"), arena(ordered, "32")
    assert after.least <= before.least
    assert (after.least < before.least) == (name == "resnet8")
    assert decode_region(ordered) == decode_region(model) > 0


def test_no_order_of_some_that_are_drawn_needs_less_than_with_late_unpacking(compressed: Compressed) -> None:
    import random

    from modelplan.formats import load_model
    from modelplan.planning import aliasing, schedulers
    from modelplan.planning.schedulers.ordering_problem import UNPACKING, with_late_unpacking
    from modelplan.runtimes.tflm import TFLM

    graph = load_model(compressed("resnet8", 3).name)
    aliases, dice = aliasing.storages(graph, "none", TFLM), random.Random(4)
    for _ in range(30):
        order: list[int] = []
        while len(order) < len(graph.ops):
            done = {t for op in order for t in graph.ops[op].writes}
            ready = [i for i, op in enumerate(graph.ops)
                     if i not in order and all(graph.producers[t] < 0 or t in done for t in op.reads)]  # fmt: skip
            order.append(dice.choice(ready))
        late = with_late_unpacking(graph, order)
        assert sorted(late) == sorted(order)
        assert [op for op in late if graph.ops[op].kind != UNPACKING] == [
            op for op in order if graph.ops[op].kind != UNPACKING
        ]
        assert schedulers.peak(graph, late, aliases, TFLM) <= schedulers.peak(graph, order, aliases, TFLM)


@pytest.mark.parametrize(("name", "bits"), CASES)
def test_fit_orders_and_plans_a_compressed_model(compressed: Compressed, name: str, bits: int) -> None:
    model = compressed(name, bits)
    ladder = fit(FitRequest(Path(model.name), kernels="reference"))
    assert ladder.chosen is not None
    assert {rung.name for rung in ladder.rungs} <= {"as is", "order", "views", "overlaps"}
    assert ladder.chosen.name == "overlaps"
    assert ladder.chosen.arena == arena(read_tflite(ladder.chosen.model, "m"), "32").size() < ladder.rungs[0].arena
    assert [verdict.outcome for verdict in ladder.proof[:3]] == ["ok"] * 3
    assert "bit-equal" in ladder.proof[2].details


def test_a_rewritten_model_that_unpacks_other_weights_is_broken(compressed: Compressed) -> None:
    model = compressed("resnet8", 3)
    first, second = [op for op in model.subgraphs[0].ops if op.kind == DECODE][1:3]
    data = bytearray(model.data)
    start, length = model.subgraphs[0].tensors[first.inputs[0]].content
    data[start + length - 1] ^= 1
    for wrong in (bytes(data), swapped(model.data, first, second)):
        with pytest.raises(BrokenPlanError, match="the rewritten model is not equal to the model"):
            prove_rewrite(model.data, wrong)


def swapped(data: bytes, first: FileOp, second: FileOp) -> bytes:
    """The file in which the first operator writes what the second does, and the second what the first does."""
    wrong = bytearray(data)
    for old, new in ((first, second), (second, first)):
        at = data.index(struct.pack(f"<I{len(old.outputs)}i", len(old.outputs), *old.outputs))
        wrong[at : at + 4 + 4 * len(old.outputs)] = struct.pack(
            f"<I{len(old.outputs)}i", len(old.outputs), *new.outputs
        )
    return bytes(wrong)
