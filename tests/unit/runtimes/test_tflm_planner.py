"""TFLM's planner as a model: its own test vectors, its lifetimes, the heads it reports."""

from pathlib import Path

import pytest
from tflite_models import looping

from modelplan.formats import load_model
from modelplan.formats.tflite import flatbuffer
from modelplan.primitives.errors import ModelError
from modelplan.rewriting.packing import answer, check_plannable, question_of
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import FileModel, FileOp, FileSubgraph, FileTensor, read_tflite
from modelplan.runtimes.tflm.metadata import write_plan
from modelplan.runtimes.tflm.planner import Request, greedy_offsets, head_bytes, requests


def rows(*triples: tuple[int, int, int]) -> list[Request]:
    return [Request(size, first, last, tensor=i) for i, (size, first, last) in enumerate(triples)]


@pytest.mark.parametrize(
    ("buffers", "offsets"),
    [
        (rows((10, 0, 1), (20, 1, 2), (30, 2, 3), (40, 3, 4), (50, 0, 1)), [50, 70, 40, 0, 0]),
        (rows((16, 0, 0), (16, 0, 0)), [16, 0]),
    ],
)
def test_places_as_the_greedy_planner_does(buffers: list[Request], offsets: list[int]) -> None:
    assert greedy_offsets(buffers) == offsets


def test_fixed_buffers_are_taken_as_they_are_and_others_go_around() -> None:
    assert greedy_offsets(rows((32, 0, 1), (32, 0, 1), (16, 0, 1)), [16, 16, -1]) == [16, 16, 0]


def tensor(nbytes: int = 16, *, constant: bool = False, variable: bool = False) -> FileTensor:
    return FileTensor("t", 9, (nbytes,), nbytes, constant, variable)


def test_subgraphs_share_one_clock_and_outputs_live_to_the_end() -> None:
    main = FileSubgraph(
        (tensor(), tensor(), tensor(), tensor(constant=True), tensor(variable=True)),
        (FileOp("IF", (0,), (1,), calls=(1, 2)), FileOp("ADD", (1, 3, -1), (2,))),
        (0,),
        (2,),
    )
    branch = FileSubgraph((tensor(), tensor()), (FileOp("ABS", (0,), (1,)),), (0,), (1,))
    model = FileModel("m", b"", (main, branch, branch), plan=())
    lives = {row.tensor: (row.first, row.last) for row in requests(model)}
    assert lives == {0: (0, 5), 1: (1, 6), 2: (6, 6), 5: (2, 3), 6: (3, 3), 7: (4, 5), 8: (5, 5)}


def test_refuses_a_subgraph_that_calls_itself() -> None:
    loop = FileSubgraph((tensor(),), (FileOp("WHILE", (0,), (0,), calls=(0, 0)),), (0,), (0,))
    with pytest.raises(ModelError, match="calls itself"):
        requests(FileModel("m", b"", (loop,)))


#: As `print_allocations()` of the wheel reports them.
HEADS = {
    "person_detect": 55296,
    "vww_96_int8": 73728,
    "pretrainedResnet_quant": 49152,
    "kws_ref_model": 16000,
    "str_ww_ref_model": 6656,
    "dtln_noise_suppression": 1424,
    "keyword_scrambled": 672,
    "micro_speech_lstm": 17168,
    "ops/seanet_transpose_conv3": 55056,
    "audio_preprocessor_int8": 3040,
    "person_detect_vela": 74560,
}


@pytest.mark.parametrize(("name", "head"), HEADS.items())
def test_predicts_the_head_that_tflm_reports(corpus: Path, name: str, head: int) -> None:
    path = corpus / "tflite" / f"{name}.tflite"
    assert planner.predicted_head(read_tflite(path.read_bytes(), path.name)) == head


@pytest.mark.parametrize(("name", "head"), {"vww_96_int8": 55296, "litert_alias_bug": 768}.items())
def test_packs_below_tflm(corpus: Path, name: str, head: int) -> None:
    path = corpus / "tflite" / f"{name}.tflite"
    model = read_tflite(path.read_bytes(), path.name)
    packing = answer(question_of(model, load_model(path), "none"))
    packed = read_tflite(write_plan(model, packing.offsets), path.name)
    assert packing.head == packing.lower_bound == planner.predicted_head(packed) == head
    assert planner.read_plan(packed) == packing.offsets


def test_refuses_to_replan_a_command_stream(corpus: Path) -> None:
    path = corpus / "tflite" / "person_detect_vela.tflite"
    with pytest.raises(ModelError, match="ethos-u"):
        question_of(read_tflite(path.read_bytes(), path.name), load_model(path), "none")


def test_refuses_a_plan_with_another_number_of_tensors(corpus: Path) -> None:
    path = corpus / "tflite" / "kws_ref_model.tflite"
    model = read_tflite(path.read_bytes(), path.name)
    broken = read_tflite(_short(model), path.name)
    with pytest.raises(ModelError, match="expected 35, one for each tensor"):
        planner.read_plan(broken)


def _short(model: FileModel) -> bytes:
    import struct

    return flatbuffer.set_metadata(model.data, planner.METADATA, struct.pack("<4i", 0, 1, 1, 0))


def test_scratch_widens_the_head() -> None:
    assert head_bytes([Request(16, 0, 1, 0), Request(48, 0, 0)], [0, 16]) == 64


def test_state_and_constants_stay_with_tflm_and_offsets_are_aligned(corpus: Path) -> None:
    path = corpus / "tflite" / "dtln_noise_suppression.tflite"
    model = read_tflite(path.read_bytes(), path.name)
    offsets = answer(question_of(model, load_model(path), "none")).offsets
    assert {offsets[i] for i, t in enumerate(model.tensors) if t.variable or t.constant} == {planner.ONLINE}
    placed = [at for at in offsets if at != planner.ONLINE]
    assert len(placed) == 5
    assert all(at % 16 == 0 for at in placed)


def test_refuses_weights_that_kernels_unpack() -> None:
    model = read_tflite(flatbuffer.set_metadata(looping(), "COMPRESSION_METADATA", b"1234"), "m")
    with pytest.raises(ModelError, match="compressed tensors"):
        check_plannable(model)


def test_what_two_operators_call_is_alive_from_its_first_run_to_its_last() -> None:
    """TFLM keeps the scope in which a tensor is first created, however often its subgraph runs."""
    main = FileSubgraph(
        (tensor(), tensor(), tensor()),
        (FileOp("IF", (0,), (1,), calls=(1, 1)), FileOp("IF", (1,), (2,), calls=(1, 1))),
        (0,),
        (2,),
    )
    branch = FileSubgraph((tensor(), tensor()), (FileOp("ABS", (0,), (1,)),), (0,), (1,))
    lives = {row.tensor: (row.first, row.last) for row in requests(FileModel("m", b"", (main, branch)))}
    assert lives == {0: (0, 5), 1: (1, 10), 2: (6, 10), 3: (2, 10), 4: (3, 10)}


def nested(depth: int) -> FileModel:
    """Each subgraph calls the next as both branches of an IF; the last adds."""
    calls = [FileSubgraph((tensor(), tensor()), (FileOp("IF", (0,), (1,), calls=(i, i)),), (0,), (1,))
             for i in range(1, depth)]  # fmt: skip
    return FileModel("m", b"", (*calls, FileSubgraph((tensor(), tensor()), (FileOp("ABS", (0,), (1,)),), (0,), (1,))))


def test_nested_calls_are_timed_without_running_them() -> None:
    assert max(row.last for row in requests(nested(24))) == 2**25 - 3
    with pytest.raises(ModelError, match="TFLM would count"):
        requests(nested(32))
    with pytest.raises(ModelError, match="more than 32 deep"):
        requests(nested(300))
