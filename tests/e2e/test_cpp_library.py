"""The solver as a library for C and C++: built by CMake without Python, found by another project, asked by ctypes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import modelplan
from modelplan import Budget, Problem
from modelplan.model import IntArray, bounds
from modelplan.planning.allocators.solver import STEPS, STEPS_PER_BUFFER

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
OK, INVALID, NO_PLACEMENT, REJECTED = range(4)
INTS = ctypes.POINTER(ctypes.c_int64)
REPORT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Buffers(ctypes.Structure):
    _fields_ = [
        ("count", ctypes.c_size_t), ("size", INTS), ("start", INTS), ("end", INTS), ("alignment", INTS), ("pin", INTS),
        ("members", ctypes.c_size_t), ("member", INTS), ("group", INTS), ("delta", INTS),
    ]  # fmt: skip


class Options(ctypes.Structure):
    _fields_ = [
        ("capacity", ctypes.c_int64), ("steps", ctypes.c_int64), ("seconds", ctypes.c_double),
        ("seed", ctypes.c_uint64), ("threads", ctypes.c_int), ("stop", ctypes.c_void_p), ("progress", REPORT),
        ("user", ctypes.c_void_p),
    ]  # fmt: skip


class Result(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("height", "bound", "steps")] + [("ended", ctypes.c_int)]


def cmake(*words: str | Path) -> None:
    program = shutil.which("cmake")
    if program is None:
        assert not os.environ.get("CI"), "CMake is not installed"
        pytest.skip("CMake is not installed: pip install 'modelplan[test-all]'")
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cpp")
    quick = "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1"  # answers are the same, compiled in less time
    cmake("-S", ROOT / "core", "-B", folder / "build", f"-DCMAKE_INSTALL_PREFIX={folder / 'installed'}", *quick)
    cmake("--build", folder / "build", "-j2")
    cmake("--install", folder / "build")
    return folder / "installed"


@pytest.fixture(scope="module")
def library(installed: Path) -> Any:
    """The installed archive as a shared library."""
    archive, shared = next(installed.rglob("libmodelplan.a")), installed / "shared.so"
    whole = "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive"
    subprocess.run(["c++", "-shared", "-o", shared, *whole, "-pthread"], check=True)
    found = ctypes.CDLL(str(shared))
    found.modelplan_default_options.restype = Options
    found.modelplan_ended_name.restype = ctypes.c_char_p
    found.modelplan_new_stop.restype = ctypes.c_void_p
    return found


def pointer(column: IntArray) -> Any:
    return np.ascontiguousarray(column).ctypes.data_as(INTS)


def buffers_of(problem: Problem) -> Buffers:
    member, group, delta = (np.ascontiguousarray(column) for column in problem.groups.T)
    columns = (pointer(column) for column in (problem.size, problem.start, problem.end, problem.alignment, problem.pin))
    found = Buffers(len(problem), *columns, len(member), pointer(member), pointer(group), pointer(delta))
    found.kept = member, group, delta, problem
    return found


def ask(library: Any, buffers: Buffers, **options: Any) -> tuple[int, IntArray, Result, str]:
    asked = library.modelplan_default_options()
    for name, value in options.items():
        setattr(asked, name, value)
    offsets, result, message = np.full(buffers.count, -1, np.int64), Result(), ctypes.create_string_buffer(200)
    status = library.modelplan_place(
        ctypes.byref(buffers), ctypes.byref(asked), pointer(offsets), ctypes.byref(result), message, len(message)
    )
    return status, offsets, result, message.value.decode()


def drawn(seed: int, *, groups: bool = False) -> Problem:
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 40))
    start = random.integers(0, 30, count)
    end = start + random.integers(1, 12, count)
    names = tuple(f"b{k}" for k in range(count))
    rows = [[2 * k, k, 0] for k in range(count // 4)] + [[2 * k + 1, k, 512] for k in range(count // 4)]
    table = np.array(rows if groups else [], np.int64).reshape(-1, 3)
    size, alignment = random.integers(0, 300, count), 2 ** random.integers(0, 4, count)
    if groups:
        alignment[:] = 1
    return Problem(names, size, start, end, alignment, np.full(count, -1), groups=table)


def test_the_example_finds_the_library_and_places_buffers(installed: Path, tmp_path: Path) -> None:
    cmake("-S", ROOT / "docs" / "cpp_library", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={installed}")
    cmake("--build", tmp_path)
    said = subprocess.run([tmp_path / "place_buffers"], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[0] == "3 buffers in 96 bytes, no placement needs less than 96: optimal"
    many = subprocess.run([tmp_path / "place_buffers", "100000"], capture_output=True, text=True, check=True).stdout
    assert many.startswith("100000 buffers in 103680 bytes, no placement needs less than 103680: optimal")


@pytest.mark.parametrize("groups", [False, True])
def test_answers_are_those_of_python(library: Any, groups: bool) -> None:
    for seed in range(100):
        problem = drawn(seed, groups=groups)
        steps = 300 if groups else 2000
        ours = modelplan.place(problem, budget=Budget(steps=steps, seed=seed))
        status, offsets, result, message = ask(library, buffers_of(problem), steps=steps, seed=seed)
        assert (status, message) == (OK, "")
        assert offsets.tolist() == ours.offsets.tolist()
        assert (result.height, result.bound) == (bounds.height(problem, ours), ours.lower_bound)
        assert library.modelplan_check(ctypes.byref(buffers_of(problem)), pointer(offsets), None, 0) == OK


def test_defaults_are_those_of_python(library: Any) -> None:
    asked = library.modelplan_default_options()
    assert (asked.capacity, asked.steps, asked.seconds, asked.seed, asked.threads) == (-1, 0, 0.0, 0, 1)
    problem = drawn(228)  # whose steps are quick, and are all taken
    budget = Budget(steps=STEPS + STEPS_PER_BUFFER * len(problem))
    _, offsets, result, _ = ask(library, buffers_of(problem))
    assert offsets.tolist() == modelplan.place(problem, budget=budget).offsets.tolist()
    assert result.steps > STEPS


def test_a_capacity_is_met_or_proved_too_small(library: Any) -> None:
    problem = drawn(3)
    least = ask(library, buffers_of(problem), steps=2000)[2]
    endings = [ask(library, buffers_of(problem), capacity=c)[2].ended for c in (10 * least.height, least.bound - 1)]
    assert [library.modelplan_ended_name(ended) for ended in endings] == [b"fits", b"infeasible"]
    assert library.modelplan_ended_name(99) == b"unknown"


def test_a_clash_is_found_by_the_check(library: Any) -> None:
    problem = Problem(("a", "b"), np.array([8, 8]), np.array([0, 1]), np.array([2, 3]), np.ones(2, np.int64),
                      np.array([-1, 8]))  # fmt: skip
    message = ctypes.create_string_buffer(200)
    for offsets, said in (([4, 8], b"share bytes while both are alive"), ([0, 16], b"1 does not stand at its pin"),
                          ([-8, 8], b"0: its offset")):  # fmt: skip
        told = library.modelplan_check(ctypes.byref(buffers_of(problem)), pointer(np.array(offsets)), message, 200)
        assert (told, said in message.value) == (REJECTED, True)


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"size": [-1, 8]}, INVALID, "buffer 0: size -1, expected"),
        ({"size": [2**60, 2**60]}, INVALID, "buffer 1: size"),
        ({"start": [-2, 0]}, INVALID, "buffer 0: start -2"),
        ({"end": [2, 0]}, INVALID, "buffer 1: end 0, expected a step behind its start"),
        ({"alignment": [1, 0]}, INVALID, "buffer 1: alignment 0"),
        ({"pin": [-2, -1]}, INVALID, "buffer 0: pin -2"),
        ({"pin": [0, 4]}, NO_PLACEMENT, "exclude every placement"),
        ({"member": [2], "group": [0], "delta": [0]}, INVALID, "a group names a buffer that does not exist"),
        ({"member": [0, 0], "group": [0, 1], "delta": [0, 0]}, INVALID, "buffer 0 is in two groups"),
        ({"member": [0], "group": [0], "delta": [-1]}, INVALID, "buffer 0: distance -1"),
        ({"size": None}, INVALID, "a column is missing"),
    ],
)
def test_what_makes_no_sense_is_refused(library: Any, change: dict[str, Any], status: int, said: str) -> None:
    columns: dict[str, Any] = {"size": [8, 8], "start": [0, 0], "end": [2, 2], **change}
    kept = {name: np.array(values, np.int64) for name, values in columns.items() if values is not None}
    buffers = Buffers(count=2, members=len(columns.get("member", ())))
    for name, values in kept.items():
        setattr(buffers, name, pointer(values))
    found, offsets, _, message = ask(library, buffers)
    assert (found, said in message, offsets.tolist()) == (status, True, [-1, -1])
    assert library.modelplan_place(None, None, None, None, None, 0) == INVALID


def test_no_buffers_need_no_bytes(library: Any) -> None:
    status, _, result, _ = ask(library, Buffers())
    assert (status, result.height, result.bound) == (OK, 0, 0)


def test_a_call_reports_and_stops_when_it_is_asked_to(library: Any) -> None:
    heights = []
    stop = ctypes.c_void_p(library.modelplan_new_stop())

    def report(_user: int, height: int, _bound: int, _steps: int) -> None:
        heights.append(height)
        library.modelplan_request_stop(stop)

    random = np.random.default_rng(5)
    start = random.integers(0, 900, 3000)
    problem = Problem(tuple(map(str, range(3000))), random.integers(1, 10**6, 3000), start,
                      start + random.integers(1, 300, 3000), np.ones(3000, np.int64), np.full(3000, -1))  # fmt: skip
    status, _, result, _ = ask(library, buffers_of(problem), seconds=60.0, stop=stop, progress=REPORT(report))
    library.modelplan_free_stop(stop)
    assert status == OK
    assert library.modelplan_ended_name(result.ended) == b"cancelled"
    assert heights[0] >= result.height
