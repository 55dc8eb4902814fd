"""`modelplan sweep` and `report` as a user runs them: killed and started again, with models that crash and hang."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from commands import run

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

import killed_sweeps

from modelplan.questions.sweeps.store import read_rows, same_rows

ROOT = Path(__file__).resolve().parents[2]
SMALL = ROOT / "models" / "ds_cnn_kws.tflite"
LIMIT = 120


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds workers in /proc")
def test_a_killed_sweep_ends_with_the_rows_of_one_that_was_not(tmp_path: Path) -> None:
    models = (str(SMALL), *killed_sweeps.broken_models(tmp_path, SMALL), "missing.tflite")
    words = [*models, "--targets", "rp2040", "--alias", "views", "max", "--timeout", "10", "-o"]
    whole, killed = tmp_path / "whole.parquet", tmp_path / "killed.parquet"
    done = killed_sweeps.start([*words, str(whole)], tmp_path)
    done.communicate(timeout=LIMIT)
    assert done.returncode == 0
    statuses = Counter(row.status for row in read_rows(whole))
    assert statuses == {"done": 4, "crashed": 1, "timeout": 1, "refused": 2}

    process, deadline = killed_sweeps.start([*words, str(killed)], tmp_path), time.monotonic() + LIMIT
    while not killed_sweeps.measures(process) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert killed_sweeps.kill_worker(process)
    time.sleep(1)
    killed_sweeps.kill(process)
    again = killed_sweeps.start([*words, str(killed)], tmp_path)
    again.communicate(timeout=LIMIT)
    assert again.returncode == 0
    assert same_rows(whole, killed)
    assert not list(tmp_path.glob("*.parts"))


@pytest.mark.slow
def test_a_worker_that_is_killed_at_the_start_is_replaced(tmp_path: Path) -> None:
    rows = tmp_path / "rows.parquet"
    process = killed_sweeps.start([str(SMALL), "--schedules", "file", "-o", str(rows)], tmp_path)
    deadline = time.monotonic() + LIMIT
    while not killed_sweeps.kill_worker(process) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.communicate(timeout=LIMIT)
    assert process.returncode == 0
    assert [row.status for row in read_rows(rows)] == ["done"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["-o", "x.csv"], 2, "must end in .parquet"),
        (["-o", "x.parquet", "--targets", "nrf52841"], 2, "no target"),
        (["-o", "x.parquet", "--alias", "some"], 2, "no 'some'"),
        (["-o", "x.parquet", "--dim", "n=1", "m"], 2, "--dim 'm': expected SYMBOL=N"),
        (["-o", "x.parquet", "--shape", "x=1,n"], 2, "expected TENSOR=N,N"),
        (["-o", "x.parquet", "--timeout", "0"], 2, "--timeout"),
        (["-o", "x.parquet", "--workers", "0"], 2, "--workers"),
        (["-o", "nowhere/x.parquet"], 2, "no folder"),
        (["-o", "x.parquet", "--scheduler", "tcp://127.0.0.1:9"], 2, "--scheduler"),
        (["-o", "x.parquet", "--scheduler", "cluster"], 2, "expected an address such as tcp://host:8786"),
        (["-o", "x.parquet", "--scheduler", "http://127.0.0.1:9"], 2, "expected an address such as tcp://host:8786"),
        (["-o", "x.parquet", "--scheduler", "tls://127.0.0.1:9"], 2, "expected an address such as tcp://host:8786"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_request_is_one_line(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    done = run("sweep", SMALL, *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
