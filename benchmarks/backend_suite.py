"""Loads every model of onnx's backend suite and writes what is refused and why, with counts.

python benchmarks/backend_suite.py
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import onnx
import reporting

from modelplan import ModelError, Options, plan

DATA = reporting.LIGHT.parent

#: What the reasons have in common, tried in this order.
REASONS = (
    (r"^shapes contradict|^node \d+ ", "onnx's own inference rejects the model"),
    (r"unknown extents.*unknown rank", "a rank depends on the data"),
    (r"unknown extents.*TENSOR:AXIS<=N", "an extent depends on the data; `--dim TENSOR:AXIS<=N` plans for a bound"),
    (r"unknown extents", "an input's extent is open; `--dim` or `--shape` settles it"),
    (r"", "other"),
)


def models(folder: Path) -> Iterator[tuple[str, Path]]:
    """(kind, file) of every model: those that the wheel carries, and the node models, written to `folder`."""
    for kind in ("simple", "light", "pytorch-converted", "pytorch-operator"):
        for path in sorted((DATA / kind).rglob("*.onnx")):
            yield kind, path
    from onnx.backend.test.case import node
    from onnx.backend.test.case.model import collect_testcases as model_cases
    from onnx.backend.test.case.node import collect_testcases
    from onnx.backend.test.case.utils import import_recursive

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_recursive(node)
        cases = [("node", case.model, case.name) for case in collect_testcases(None)]
        cases += [("simple", case.model, case.name) for case in model_cases()]
    for kind, model, name in cases:
        if model is None:
            continue
        path = folder / kind / f"{name}.onnx"
        path.parent.mkdir(exist_ok=True)
        onnx.save(model, path)
        yield kind, path


def outcome(path: Path) -> str:
    """Why the model is refused, empty where it loads and plans."""
    try:
        plan(reporting.graph_of(path), Options(schedule="file", allocator="tflm-greedy"))
    except ModelError as problem:
        message = str(problem).removeprefix(f"{path}: ")
        return next(reason for pattern, reason in REASONS if re.search(pattern, message))
    return ""


def page(counts: dict[str, list[int]], refused: dict[str, list[str]]) -> Iterator[str]:
    planned, failed = (sum(row[i] for row in counts.values()) for i in (0, 1))
    yield "Each model is loaded and planned. None crashes; what is refused is refused in one line that names the place."
    yield ""
    rows = [(kind, good, bad) for kind, (good, bad) in counts.items()]
    together = ("all", f"{planned} ({planned / (planned + failed):.1%})", failed)
    yield from reporting.table(("models", "plan fully", "refused"), [*rows, together])
    yield ""
    reasons = sorted(refused.items(), key=lambda row: -len(row[1]))
    named = ((reason, len(names), ", ".join(sorted(names))) for reason, names in reasons)
    yield from reporting.table(("reason", "models", "which"), named, "<><")


PARSER = reporting.command_line(__file__, __doc__, "backend_suite.md", corpus=False)


def main() -> None:
    arguments = reporting.parse(PARSER)
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    refused: dict[str, list[str]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for kind, path in models(Path(folder)):
            reason = outcome(path)
            counts[kind][bool(reason)] += 1
            if reason:
                name = path.parent.name if path.stem == "model" else path.stem
                refused[reason].append(name.removeprefix("test_"))
    first = reporting.made_by(PARSER, arguments, f" with onnx {onnx.__version__}, without any `--dim`")
    reporting.save(arguments.output, first, "The ONNX backend suite", page(counts, refused))


if __name__ == "__main__":
    main()
