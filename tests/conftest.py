"""Where tests find real models, and how golden files are rewritten."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import onnx
import pytest
from hypothesis import settings
from installs import wrong_install
from shares import examples

settings.register_profile("modelplan", examples(100, deadline=None))  # no test asserts a time
settings.load_profile("modelplan")

#: What the extra `test-all` has beside `test`: the tests of these parts skip visibly where one is missing.
OPTIONAL = (
    "ai_edge_litert", "distributed", "onnxruntime", "optuna", "ortools", "perfetto", "pyarrow", "pytest_cov",
    "selenium", "tflite_micro", "viztracer",
)  # fmt: skip
ROOT = Path(__file__).resolve().parent.parent
gc.disable()  # until all tests are collected: what is made till then stays


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the golden files instead of comparing")
    parser.addoption("--record", metavar="FILE", type=Path, help="add the names of the tests that pass to FILE")
    parser.addoption("--recorded", metavar="FILE", type=Path, help="leave out the tests that FILE names")


def pytest_configure(config: pytest.Config) -> None:
    """Elsewhere a test without its real component skips visibly; under CI that would hide a missing install step."""
    os.environ.pop("COLUMNS", None)  # reports are as wide as without a terminal
    os.unsetenv("COLUMNS")  # readline sets it behind the back of os.environ
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us with Ctrl-C ignored
    if reason := wrong_install(ROOT):
        pytest.exit(reason, returncode=1)
    missing = [name for name in OPTIONAL if find_spec(name) is None]
    if missing and os.environ.get("CI"):
        pytest.exit(f"not installed: {', '.join(missing)}; pip install '.[test-all]'", returncode=1)
    record = config.getoption("--record")
    if record and not hasattr(config, "workerinput"):  # with several workers, reports reach the controller
        config.pluginmanager.register(Recorder(record))


class Recorder:
    """Adds the name of each test that passes to a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            with self.file.open("a") as lines:
                lines.write(f"{report.nodeid}\n")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What `.ci/run` has seen pass without a corpus does not run again with one."""
    recorded = config.getoption("--recorded")
    if recorded:
        passed = set(recorded.read_text().splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in passed])
        items[:] = [item for item in items if item.nodeid not in passed]


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # the usual ones take a sixteenth of the time
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """For `.ci/long`, which has a kit and ExecuTorch, a test that skips is a failure."""
    report = yield
    if report.skipped and os.environ.get("MODELPLAN_LONG"):
        report.outcome = "failed"
    return report


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The corpus of real models and problems; missing is a failure under CI and a visible skip elsewhere.

    A fork's CI has none and says so: MODELPLAN_CORPUS is `none`.
    """
    folder = Path(os.environ.get("MODELPLAN_CORPUS", ROOT.parent / "shared" / "corpus"))
    if folder.is_dir():
        return folder
    if os.environ.get("CI") and str(folder) != "none":
        pytest.fail(f"no corpus at {folder}; set MODELPLAN_CORPUS")
    pytest.skip(f"no corpus at {folder}; set MODELPLAN_CORPUS")


@pytest.fixture(scope="session")
def light() -> Path:
    """The model zoo's structures that come with the onnx package."""
    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


@pytest.fixture(scope="session")
def models() -> Path:
    """The project's own models."""
    return ROOT / "models"
