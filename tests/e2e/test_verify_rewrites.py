"""`modelplan verify ORIGINAL --against REWRITTEN`: verdicts, exit codes, one clear line for what cannot be compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from commands import run
from random_cnns import moving_cnn, random_cnn
from striped_files import (
    Striped,
    change_table,
    graph_of,
    largest_distance,
    set_apart,
    shift_slice,
    step_at,
    striped,
    three_convolutions,
    with_offset,
)

from modelplan import BrokenPlanError, FitRequest, fit
from modelplan.checking.verifier.litert import OPTIMISED, REFERENCE, LiteRTError, litert_installed, litert_outputs
from modelplan.checking.verifier.rewrites import executing
from modelplan.checking.verifier.rewrites.comparing import compare_rows
from modelplan.checking.verifier.rewrites.executing import execute_on_litert, execute_on_tflm
from modelplan.checking.verifier.rewrites.reading import read_source
from modelplan.checking.verifier.rewrites.truncating import cut_off, stretch_ends, with_outputs
from modelplan.checking.verifier.verdicts import Executed, Skipped
from modelplan.primitives.answering import AnsweringProcess
from modelplan.rewriting.stripes.stretches import KeptHalo, LoopedStripes, RecomputedHalo
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.runner import INSTALL, installed, run_tflm

#: With the kernels whose figures are expected.
asked = partial(FitRequest, kernels="reference")

runtime = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")

Files = tuple[Path, Path]


def levels(text: str) -> dict[str, str]:
    """What each level came to."""
    return dict(
        re.findall(r"^  (rows|memory|TFLM|LiteRT|TFLM, LiteRT) +(ok|broken|skipped|unproved)  ", text, re.MULTILINE)
    )


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Striped]:
    return lambda **ways: striped(three_convolutions(), tmp_path, **ways)


def written(made: Striped, folder: Path, rewritten: bytes | None = None) -> Files:
    """The model and its rewrite as files."""
    files = folder / "model.tflite", folder / "rewritten.tflite"
    files[0].write_bytes(made.data)
    files[1].write_bytes(made.file() if rewritten is None else rewritten)
    return files


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", [{"strategy": RecomputedHalo}, {"strategy": LoopedStripes, "cuts": (0, 3, 6, 9, 12), "columns": 4}]
)
def test_every_level_that_can_run_agrees(make: Callable[..., Striped], tmp_path: Path, way: dict[str, object]) -> None:
    original, rewritten = written(make(**way), tmp_path)
    done = run("verify", original, "--against", rewritten)
    assert done.returncode == 0, done.stderr
    found = levels(done.stdout)
    assert list(found) == ["rows", "memory", "TFLM", "LiteRT"]
    assert found["rows"] == found["memory"] == "ok"
    assert found["TFLM"] == ("ok" if installed() else "skipped")


def test_quick_runs_no_kernel_and_says_so(make: Callable[..., Striped], tmp_path: Path) -> None:
    original, rewritten = written(make(strategy=KeptHalo), tmp_path)
    done = run("verify", original, "--against", rewritten, "--quick")
    assert done.returncode == 0, done.stderr
    assert levels(done.stdout) == {"rows": "ok", "memory": "ok", "TFLM, LiteRT": "skipped"}
    assert "no kernel was run" in done.stdout


def test_a_fault_is_named_with_operator_and_place(make: Callable[..., Striped], tmp_path: Path) -> None:
    made = make(strategy=RecomputedHalo)
    windows = [i for i, s in enumerate(made.program.steps) if s.kind == "SLICE" and s.inputs[0] == 0]
    shift_slice(made.program, windows[1], -1)
    original, rewritten = written(made, tmp_path)
    done = run("verify", original, "--against", rewritten)
    assert done.returncode == 4
    assert levels(done.stdout) == {"rows": "broken"}
    assert re.search(r"does not compute what .* does: op \d+ \w+ \(byte \d+ of the file\)", done.stderr)
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_fault_in_a_loop_names_the_iteration(make: Callable[..., Striped], tmp_path: Path) -> None:
    made = make(strategy=LoopedStripes, trim_late=True, cuts=(0, 3, 6, 9, 12))
    change_table(made.program, "window_begins", 4 * 2 + 1, 9)
    original, rewritten = written(made, tmp_path)
    done = run("verify", original, "--against", rewritten)
    assert done.returncode == 4
    assert "iteration 3" in done.stderr


def test_files_that_cannot_be_compared(make: Callable[..., Striped], tmp_path: Path) -> None:
    original, rewritten = written(make(strategy=RecomputedHalo), tmp_path)
    other, text = tmp_path / "other.tflite", tmp_path / "text.tflite"
    other.write_bytes(random_cnn(0))
    text.write_text("no model")
    for before, after, code, word in (
        (original, other, 2, "is no rewrite of"),
        (rewritten, original, 2, "were the two files swapped?"),
        (original, text, 3, "text.tflite"),
        (original, tmp_path / "none.tflite", 3, "none.tflite"),
    ):
        done = run("verify", before, "--against", after)
        assert (done.returncode, len(done.stderr.strip().splitlines())) == (code, 1), done.stderr
        assert word in done.stderr


def test_options_of_plans_are_refused(make: Callable[..., Striped], tmp_path: Path) -> None:
    original, rewritten = written(make(strategy=RecomputedHalo), tmp_path)
    done = run("verify", original, "--against", rewritten, "--model", original)
    assert done.returncode == 2
    assert "--model is for plans" in done.stderr


def test_what_is_not_known_is_not_passed(corpus: Path) -> None:
    source = corpus / "tflite" / "person_detect_vela.tflite"
    done = run("verify", source, "--against", source, "--quick")
    assert done.returncode == 4
    assert levels(done.stdout)["rows"] == "unproved"
    assert "cannot be proved" in done.stderr


@pytest.mark.parametrize("name", ["trained_lstm_int8", "micro_speech_quantized", "ad01_int8", "keyword_scrambled"])
def test_models_that_are_equal_to_themselves(corpus: Path, name: str) -> None:
    source = corpus / "tflite" / f"{name}.tflite"
    done = run("verify", source, "--against", source, "--quick")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@runtime
def test_a_loops_operand_is_no_end_of_a_stretch(tmp_path: Path) -> None:
    model = Path(__file__).parents[2] / "models" / "mobilenet_v2_like.tflite"
    graph = graph_of(model.read_bytes(), tmp_path)
    height = graph.tensors[graph.ops[4].outputs[0]].shape[1]
    cuts = (*range(0, height, 3), height)
    made = striped(model.read_bytes(), tmp_path, first=3, last=4, strategy=LoopedStripes, cuts=cuts)
    original, rewritten = read_source(read_tflite(made.data, "a")), read_source(read_tflite(made.file(), "b"))
    compared = compare_rows(original, rewritten)
    assert len(stretch_ends(original, rewritten, compared)) == 1
    assert "bit-equal" in execute_on_tflm(original, rewritten, compared).details


@pytest.mark.slow
@runtime
def test_a_map_that_is_cut_off_again_is_not_compared_as_a_whole(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(moving_cnn(2))  # of a padded map rows are sliced off, and others may take their place
    answer = fit(FitRequest(str(model), kernels="all"))
    assert answer.chosen
    assert answer.chosen.name == "split"
    assert not any("differ" in remark for remark in answer.remarks)


@pytest.mark.slow
@runtime
def test_a_file_that_is_cut_off_before_its_loop_runs_on_tflm(tmp_path: Path) -> None:
    model = Path(__file__).parents[2] / "models" / "mobilenet_v2_like.tflite"
    made = striped(model.read_bytes(), tmp_path, first=3, last=4, strategy=LoopedStripes, cuts=(0, 12, 24))
    source = read_source(read_tflite(made.file(), "looped"))
    first = source.parts[0].ops[0]
    cut = cut_off(source, first.outputs[0], first.number)
    assert [len(part.ops) for part in read_source(read_tflite(cut, "cut")).parts] == [1, 0, 0]
    assert len(run_tflm(cut, rounds=2).outputs) == 2


@pytest.mark.slow
@runtime
@pytest.mark.parametrize("run_on", [execute_on_tflm, execute_on_litert])
def test_a_stretch_that_is_wrong_is_seen_by_execution(
    make: Callable[..., Striped], run_on: Callable[..., Executed]
) -> None:
    made, faulty = make(strategy=RecomputedHalo), make(strategy=RecomputedHalo)
    last = step_at(faulty.program, "SLICE", -1)
    shift_slice(faulty.program, last, -1)
    original, right, wrong = (read_source(read_tflite(data, "m")) for data in (made.data, made.file(), faulty.file()))
    compared = compare_rows(original, right)
    assert "bit-equal" in run_on(original, right, compared).details
    with pytest.raises(BrokenPlanError, match="differ from the model's"):
        run_on(original, wrong, compared)


@pytest.mark.slow
@pytest.mark.parametrize(
    "run", [partial(litert_outputs, rounds=1, seed=2), lambda data: run_tflm(data, rounds=1).outputs]
)
def test_a_file_with_further_outputs_gives_those_and_its_own(
    make: Callable[..., Striped], run: Callable[[bytes], Sequence[str]]
) -> None:
    if not (installed() and litert_installed()):
        pytest.skip("needs tflite-micro and ai-edge-litert")
    source = read_source(read_tflite(make(strategy=RecomputedHalo).data, "m"))
    inner = [op.outputs[0] for op in source.parts[0].ops[:-1]]
    further = read_source(read_tflite(with_outputs(source, inner), "further"))
    assert further.parts[0].outputs == (*source.parts[0].outputs, *inner)
    assert with_outputs(source, ()) != source.model.data
    assert run(with_outputs(source, ())) == run(source.model.data)
    assert run(with_outputs(source, inner)) != run(source.model.data)


@pytest.mark.slow
@pytest.mark.parametrize("fast", ["other results", "LiteRTError"])
def test_plain_kernels_judge_where_fast_ones_cannot(
    make: Callable[..., Striped], monkeypatch: pytest.MonkeyPatch, fast: str
) -> None:
    pytest.importorskip("ai_edge_litert")
    made, asked = make(strategy=RecomputedHalo), []

    def outputs(data: bytes, rounds: int, seed: int, *, kernels: str) -> Sequence[str]:
        asked.append(kernels)
        if kernels == OPTIMISED and fast == "LiteRTError":
            raise LiteRTError("no such kernel")
        return litert_outputs(data, rounds, seed) if kernels == REFERENCE else (str(len(asked)),)

    monkeypatch.setattr(executing, "litert_outputs", outputs)
    original, rewritten = (read_source(read_tflite(data, "m")) for data in (made.data, made.file()))
    assert "bit-equal" in execute_on_litert(original, rewritten, compare_rows(original, rewritten)).details
    assert set(asked) == {OPTIMISED, REFERENCE}


@runtime
def test_a_rewritten_file_that_takes_too_long_is_not_judged(
    make: Callable[..., Striped], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(strategy=RecomputedHalo)
    original, rewritten = (read_source(read_tflite(data, "m")) for data in (made.data, made.file()))
    ask = AnsweringProcess.ask
    limit = {made.file(): 0.0}
    monkeypatch.setattr(AnsweringProcess, "ask", lambda self, words, wait: ask(self, words, limit.get(words[1], wait)))
    with pytest.raises(Skipped, match="takes too long"):
        execute_on_tflm(original, rewritten, compare_rows(original, rewritten))


@pytest.mark.slow
@runtime
@pytest.mark.parametrize("way", [{"trim_late": True, "cuts": (0, 5, 10, 12)}, {"cuts": (0, 6, 12), "columns": 4}])
def test_rows_that_are_cut_off_may_hold_anything(make: Callable[..., Striped], way: dict[str, object]) -> None:
    """As far as the proof allows, and not a byte further, as TFLM shows."""
    made = make(strategy=LoopedStripes, **way)
    distance = largest_distance(made)
    wanted, found = (run_tflm(data, rounds=2, extremes=True).outputs for data in (made.data, made.file()))
    assert found == wanted
    set_apart(made, distance + 1)
    assert run_tflm(made.file(), rounds=2, extremes=True).outputs != wanted


@pytest.mark.slow
def test_fit_carries_its_proof(corpus: Path) -> None:
    found = fit(asked(corpus / "tflite" / "kws_ref_model.tflite"))
    assert [v.level for v in found.proof] == ["rows", "memory", "TFLM", "LiteRT"]
    assert [v.outcome for v in found.proof[:2]] == ["ok", "ok"]
    assert {v.outcome for v in found.proof[2:]} <= {"ok", "skipped"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", [{}, {"strategy": KeptHalo}, {"strategy": LoopedStripes, "cuts": (0, 6, 12), "columns": 4}]
)
def test_every_command_understands_a_file_in_stripes(
    make: Callable[..., Striped], tmp_path: Path, way: dict[str, object]
) -> None:
    """Parts of its tensors are overwritten while other parts are still read."""
    _, rewritten = written(make(**{"strategy": RecomputedHalo, **way}), tmp_path)
    assert run("analyze", rewritten).returncode == 0
    assert run("check", rewritten, "--budget", "1MiB").returncode == 0
    done = run("verify", rewritten)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^  (byte replay|fingerprint replay) +ok ", done.stdout, re.MULTILINE)


@pytest.mark.slow
def test_a_part_that_is_still_read_must_stay(make: Callable[..., Striped], tmp_path: Path) -> None:
    made = make(strategy=KeptHalo)
    plan = planner.read_plan(read_tflite(made.file(), "m"))
    assert plan is not None
    refused = 0
    for tensor, at in enumerate(plan):
        if at >= planner.ALIGNMENT:
            _, rewritten = written(made, tmp_path, with_offset(made.file(), tensor, at - planner.ALIGNMENT))
            refused += run("verify", rewritten, "--quick").returncode == 4
    assert refused >= 3


def test_a_view_beside_its_operand_is_proved(corpus: Path, tmp_path: Path) -> None:
    """Its RESHAPE hands on bytes that another operator still reads under their first name."""
    original, packed = corpus / "tflite" / "litert_alias_bug.tflite", tmp_path / "packed.tflite"
    assert run("pack", original, "-o", packed, "--alias", "safe").returncode == 0
    assert run("verify", original, "--against", packed, "--quick").returncode == 0
