"""Tables of runs, rows, what they say, and files of rows."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from modelplan.answers.sweep_summary import SweepChange
from modelplan.cli import parser_of
from modelplan.cli.sweep import words_of
from modelplan.outputs.report import plain
from modelplan.outputs.reports import sweep_report
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.questions.sweeps import measured_runs
from modelplan.questions.sweeps.isolation import run_from
from modelplan.questions.sweeps.measured_runs import Memo, measured
from modelplan.questions.sweeps.run_table import RunBlock, RunTable, SweepRun, runs_of
from modelplan.questions.sweeps.summing import summarized
from modelplan.questions.sweeps.sweep_file import read_inputs, read_sweep, table_of
from modelplan.questions.sweeps.sweep_rows import COLUMNS, SweepRow, row_of

ROOT = Path(__file__).resolve().parents[3]
MODEL = str(ROOT / "models" / "ds_cnn_kws.tflite")


def row(**columns: object) -> SweepRow:
    names = dict.fromkeys(("runtime", "kernels", "schedule", "alias", "allocator"), "default")
    given = {"model": "m", "target": "t", **names, "dims": "", "shapes": "", "status": "done"} | columns
    return SweepRow(**given)  # type: ignore[arg-type]


def run_of(path: str = MODEL, **settings: str) -> SweepRun:
    from modelplan.questions.sweeps.sweep_request import digest

    words = {name: (value,) for name, value in settings.items()}
    table = table_of({"models": (path,), "targets": ("rp2040",)} | words)
    return next(runs_of(table, {path: digest(Path(path))}))


def test_every_combination_is_one_run_with_a_key_of_its_own() -> None:
    blocks = (RunBlock("a", 1), RunBlock("b", 2))
    table = RunTable(("x", "y"), blocks, aliases=("views", "safe"), allocators=("modelplan", "triton", "glow"))
    runs = list(runs_of(table, {"x": "1", "y": "2"}))
    assert len(runs) == len(table) == 24
    assert len({one.key for one in runs}) == 24
    assert [one.target for one in runs[:2]] == ["a", "b"]
    assert list(runs_of(table, {"x": "1", "y": "3"}))[-1].key != runs[-1].key


def test_a_table_without_targets_has_runs_without() -> None:
    only = next(runs_of(RunTable(("x",)), {"x": ""}))
    assert (only.target, only.target_bytes) == ("", None)


def test_a_row_says_what_the_commands_say() -> None:
    found = measured(run_of(alias="safe"), Memo())
    assert (found.status, found.used_runtime, found.used_alias, found.used_kernels) == (
        "done",
        "tflm",
        "safe",
        "cmsis-c",
    )
    assert (found.target_bytes, found.fits, found.plan_fits) == (270_336, True, True)
    assert found.height is not None
    assert found.bound is not None
    assert found.head is not None
    assert found.bound <= found.height <= found.head
    assert found.macs == 2_656_768
    assert set(asdict(found)) == set(COLUMNS)


def test_runs_of_one_model_share_what_does_not_depend_on_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    planned, plan = [], measured_runs._planned
    monkeypatch.setattr(measured_runs, "_planned", lambda *rest: planned.append(rest) or plan(*rest))  # type: ignore[func-returns-value]
    memo, first = Memo(), run_of()
    one, other = measured(first, memo), measured(replace(first, target="other", target_bytes=1), memo)
    assert len(planned) == 1
    assert (one.height, one.fits, other.fits) == (other.height, True, False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "missing.tflite"}, "missing.tflite: No such file"),
        ({"sha256": "0" * 64}, "its SHA-256 is"),
        ({"runtime": "ort", "kernels": "cmsis-c"}, "cmsis-c"),
    ],
)
def test_a_refusal_is_a_row(change: dict[str, str], message: str) -> None:
    found = measured(replace(run_of(), **change), Memo())  # type: ignore[arg-type]
    assert found.status == "refused"
    assert message in found.error


def test_a_mistake_of_modelplan_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr(measured_runs, "graph_macs", broken)
    found = measured(run_of(), Memo())
    assert (found.status, found.error) == ("failed", "ZeroDivisionError: by zero")


def test_names_of_an_option_may_stand_in_one_word() -> None:
    arguments = parser_of("sweep").parse_args(
        ["x.tflite", "-o", "o.parquet", "--targets", "rp2040,nrf52840", "stm32h743"]
    )
    assert words_of(arguments)["targets"] == ("rp2040", "nrf52840", "stm32h743")


def test_a_table_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").touch()
    (tmp_path / "b.onnx").touch()
    file = tmp_path / "fleet.toml"
    file.write_text('models = "*.onnx"\ntargets = ["rp2040", "stm32f746"]\nalias = ["views", "max"]\n')
    table = table_of(read_sweep(file))
    assert [Path(path).name for path in table.models] == ["a.onnx", "b.onnx"]
    assert (len(table), table.aliases) == (8, ("views", "max"))
    assert len(table_of({"models": ("x",), "targets": ("all",)}).targets) > 40


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = 'x'", "no such key"),
        ("models = []", "expected text"),
        ("models = [1]", "expected text"),
        ("models = '*.onnx'", "no file matches"),
        ("models = ", "not TOML"),
        ("alias = 'views'", "no models"),
    ],
)
def test_a_table_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "fleet.toml").write_text(text)
    with pytest.raises(RequestError, match=message):
        table_of(read_sweep(tmp_path / "fleet.toml"))


def test_inputs_of_single_models(tmp_path: Path) -> None:
    for name in ("a.onnx", "b.onnx"):
        (tmp_path / name).touch()
    file = tmp_path / "fleet.toml"
    file.write_text(
        'models = ["a.onnx", "b.onnx"]\ndim = "batch=1"\n'
        '[inputs."a.onnx"]\ndim = ["rows=8"]\nvalue = "sr=16000"\n[inputs."b.onnx"]\nshape = "x=1,2"\n'
    )
    table = table_of(read_sweep(file), read_inputs(file))
    first, second = runs_of(table, dict.fromkeys(table.models, ""))
    assert (first.dims, first.shapes, first.values) == (("batch=1", "rows=8"), (), ("sr=16000",))
    assert (second.dims, second.shapes, second.values) == (("batch=1",), ("x=1,2",), ())
    assert run_from(json.loads(json.dumps(asdict(first)))) == first
    assert row_of(first, "done").values == "sr=16000"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("inputs = 1", "expected tables"),
        ('[inputs]\n"x.onnx" = 1', "expected tables"),
        ('[inputs."x.onnx"]\ndims = "a=1"', "inputs: x.onnx: dims: no such key; there are: dim, shape, value"),
        ('[inputs."x.onnx"]\ndim = "a"', "expected"),
        ('[inputs."x.onnx"]\nvalue = "a"', "expected"),
        ('[inputs."y.onnx"]\ndim = "a=1"', "none of the models"),
        ('[inputs."z.onnx"]\ndim = "a=1"', "no file matches"),
    ],
)
def test_inputs_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    for name in ("x.onnx", "y.onnx"):
        (tmp_path / name).touch()
    file = tmp_path / "fleet.toml"
    file.write_text(f"models = 'x.onnx'\n{text}")
    with pytest.raises(RequestError, match=message):
        table_of(read_sweep(file), read_inputs(file))


def test_the_best_setting_decides_what_fits() -> None:
    rows = [
        row(alias="views", fits=False, plan_fits=False, arena=9, target_bytes=5),
        row(alias="max", fits=False, plan_fits=True, arena=9, height=3, target_bytes=5),
        row(model="n", status="crashed", target_bytes=5),
    ]
    assert [(fit.model, fit.verdict, fit.setting) for fit in summarized("", rows).fits] == [
        ("m", "with a plan", "max"),
        ("n", "unknown", ""),
    ]


def test_settings_are_compared_over_the_plans_that_all_have() -> None:
    facts = {"used_runtime": "tflm", "used_kernels": "reference", "runtime_height": 20, "bound": 9}
    rows = [
        row(alias="views", target="t", height=10, plan_seconds=1.0, **facts),
        row(alias="views", target="u", height=10, plan_seconds=1.0, **facts),
        row(alias="max", height=9, plan_seconds=3.0, **facts),
        row(alias="safe", height=10, plan_seconds=2.0, **facts),
        row(model="n", alias="views", height=5, plan_seconds=1.0, **facts),
    ]
    found = summarized("", rows).settings
    assert [(cost.name, cost.height, cost.seconds, cost.unbeaten) for cost in found.costs] == [
        ("max", 9, 3.0, True),
        ("views", 10, 1.0, True),
        ("safe", 10, 2.0, False),
    ]
    assert (found.plans, found.bound, found.runtime_height) == (1, 9, 20)


def test_what_became_worse_is_told_by_run() -> None:
    old = [row(model="gone"), row(arena=5, fits=True, height=4), row(model="n", arena=5), row(model="o", arena=7)]
    new = [row(arena=6, fits=False, height=3), row(model="n", status="timeout", error="late"), row(model="o", arena=6)]
    found = summarized("", new, old).changes
    assert found is not None
    assert found.worse == (
        SweepChange("m, t, default", "arena", "5", "6"),
        SweepChange("m, t, default", "fits", "yes", "no"),
        SweepChange("n, t, default", "answer", "done", "timeout: late"),
    )
    assert (found.better, found.same, found.only_old, found.only_new) == (1, 0, 1, 0)


def test_the_report_has_a_section_for_each_finding() -> None:
    facts = {"used_runtime": "tflm", "bound": 3, "runtime_height": 4, "height": 4, "plan_seconds": 0.5}
    rows = [
        row(fits=True, arena=5, target_bytes=9, **facts),
        row(model="n", status="refused", error="why", target_bytes=9),
    ]
    found = summarized("r.parquet", rows, rows)
    text = plain(sweep_report.sections(found))
    for part in (
        "r.parquet: 2 runs",
        "refused: why",
        "smallest target of each model",
        "Settings over 1 plan",
        "worse 0",
    ):
        assert part in text
    assert sweep_report.matrix(found) == "model,t (9)\nm,fits\nn,refused\n"


class TestStore:
    """Files of rows."""

    @pytest.fixture(autouse=True)
    def _needs_pyarrow(self) -> None:
        pytest.importorskip("pyarrow")

    @pytest.mark.slow
    def test_rows_survive_and_the_later_of_two_counts(self, tmp_path: Path) -> None:
        from modelplan.questions.sweeps.store import Results, read_rows

        results = Results(tmp_path / "r.parquet")
        results.open()
        k, other = "1" * 32, "2" * 32
        results.append([asdict(row(model="b", arena=1)), asdict(row(model="a", key=k))])
        results.append([asdict(row(model="b", arena=2, status="timeout", key=other))])
        # Killed here: another start finds the parts.
        assert results._lock is not None
        results._lock.close()
        (tmp_path / "r.parquet.parts" / ".0000000009.parquet.draft").write_bytes(b"half")
        again = Results(tmp_path / "r.parquet")
        again.open()
        every, kept = again.keys(), again.keys(("timeout",))
        assert [(key in every, key in kept) for key in (k, other)] == [(True, True), (True, False)]
        again.close()
        assert [(one.model, one.arena) for one in read_rows(tmp_path / "r.parquet")] == [("a", None), ("b", 2)]
        assert [path.name for path in tmp_path.iterdir()] == ["r.parquet"]

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(4))
    def test_parts_are_merged_a_batch_at_a_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
    ) -> None:
        from modelplan.questions.sweeps import store

        monkeypatch.setattr(store, "_BATCH", 3)
        monkeypatch.setattr(store, "_MOST_PARTS", 2)
        rng, latest = random.Random(seed), dict[tuple[str, str], int]()
        results = store.Results(tmp_path / "r.parquet")
        results.open()
        for number in range(40):
            names = [(rng.choice("abcd"), rng.choice(["", "t", "u"])) for _ in range(rng.randint(1, 4))]
            latest |= dict.fromkeys(names, number)
            results.append([asdict(row(model=m, target=t, arena=number)) for m, t in names])
        results.close()
        found = [((one.model, one.target), one.arena) for one in store.read_rows(tmp_path / "r.parquet")]
        assert found == sorted(latest.items())

    def test_a_file_in_another_order_is_read_sorted_and_merged(self, tmp_path: Path) -> None:
        import pyarrow
        import pyarrow.parquet

        from modelplan.questions.sweeps import store

        records = [asdict(row(model=name)) for name in "ba"]
        table = pyarrow.Table.from_pylist(records, store.SCHEMA)
        pyarrow.parquet.write_table(table, tmp_path / "r.parquet")
        assert [one.model for one in store.read_rows(tmp_path / "r.parquet")] == ["a", "b"]
        results = store.Results(tmp_path / "r.parquet")
        results.open()
        results.append([asdict(row(model="aa"))])
        results.close()
        assert [one.model for one in store.read_rows(tmp_path / "r.parquet")] == ["a", "aa", "b"]

    def test_keys_that_end_in_zeros_are_told_apart(self) -> None:
        from modelplan.questions.sweeps.store import Keys

        keys = Keys([f"{'ab' * 15}00", f"{'ab' * 14}0000", "no key"])
        assert len(keys) == 2
        assert f"{'ab' * 15}00" in keys
        assert f"{'ab' * 15}01" not in keys
        assert f"{'ff' * 16}" not in keys

    def test_two_sweeps_do_not_write_one_result(self, tmp_path: Path) -> None:
        from modelplan.questions.sweeps.store import Results

        pytest.importorskip("fcntl")
        first = Results(tmp_path / "r.parquet")
        first.open()
        with pytest.raises(RequestError, match="another sweep"):
            Results(tmp_path / "r.parquet").open()
        first.close()

    def test_what_is_no_result_is_refused(self, tmp_path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from modelplan.questions.sweeps.store import read_rows

        (tmp_path / "text.parquet").write_text("text")
        pq.write_table(pa.table({"model": ["x"]}), tmp_path / "other.parquet")
        for name, message in (("text", "no Parquet file"), ("other", "no column"), ("none", "No such file")):
            with pytest.raises(ModelError, match=message):
                list(read_rows(tmp_path / f"{name}.parquet"))
        (tmp_path / "none.parquet.parts").mkdir()
        with pytest.raises(ModelError, match="No such file or directory, but the rows of a sweep that did not end"):
            list(read_rows(tmp_path / "none.parquet"))


def test_the_row_of_a_run_without_an_answer_names_it() -> None:
    lost = row_of(run_of(), "lost", "why")
    assert (lost.model, lost.target, lost.status, lost.error, lost.arena) == (MODEL, "rp2040", "lost", "why", None)
