"""Runs every combination of models, targets and settings on a cluster, and writes one row for each as Parquet.

MODEL is a .tflite or .onnx file, or a .toml file with the table itself. What is there already is not run again, so a
sweep that was ended in any way goes on where it was. A model that is refused, crashes or takes too long is a row too.
"""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from modelplan.answers.sweep_summary import SweepProgress
from modelplan.cli import files, model_options, terminal
from modelplan.outputs.report import Section
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import counted
from modelplan.questions.sweeps.sweep_file import KEYS, Words, read_inputs, read_sweep, table_of
from modelplan.questions.sweeps.sweep_request import RETRIED, SweepRequest, sweep

#: Options that are lists of names.
_LISTS = ("targets", "runtimes", "kernels", "schedules", "alias", "allocators")
#: Seconds between two lines of progress on a terminal, and elsewhere.
_PACE, _SLOW_PACE = 0.2, 10.0


def configure(parser: ArgumentParser) -> None:
    parser.usage = "modelplan sweep MODEL ... -o RESULTS.parquet [--targets NAME ...] [option ...]"
    parser.add_argument("models", metavar="MODEL", nargs="+", help="a .tflite or .onnx file, or a table as .toml")
    parser.add_argument("-o", "--output", metavar="RESULTS.parquet", required=True, help="the file of rows")
    table = parser.add_argument_group(
        "table", f"every combination is a run; `all` for all names; in TOML: {', '.join(KEYS)}"
    )
    table.add_argument("--targets", metavar="NAME", nargs="+", help="as --target of other commands takes them")
    table.add_argument("--runtimes", metavar="NAME", nargs="+", help="default: by the file's format")
    model_options.add_kernels(table, "default: the target's, else all of them", nargs="+")
    table.add_argument("--schedules", metavar="NAME", nargs="+", help="default: best")
    table.add_argument("--alias", metavar="MODE", nargs="+", help="default: the runtime's usual one")
    table.add_argument("--allocators", metavar="NAME", nargs="+", help="default: modelplan")
    table.add_argument("--dim", metavar="SYMBOL=N", nargs="+", help="extents that every model leaves open")
    table.add_argument("--shape", metavar="TENSOR=N,N,...", nargs="+", help="shapes that every model leaves open")
    table.add_argument("--value", metavar="INPUT=N,...", nargs="+", help="values of inputs that decide what runs")
    how = parser.add_argument_group("cluster")
    where = how.add_mutually_exclusive_group()
    where.add_argument("--workers", type=int, metavar="N", default=2, help="processes of this machine (default: 2)")
    where.add_argument(
        "--scheduler", metavar="ADDRESS", help="a Dask scheduler, such as tcp://host:8786, whose workers see the models"
    )
    how.add_argument(
        "--timeout", type=float, metavar="S", default=300.0, help="seconds by the clock for one run (default: 300)"
    )
    how.add_argument("--retry", action="store_true", help=f"run again what ended as {', '.join(RETRIED)}")


def run(arguments: Namespace) -> int:
    output = Path(arguments.output)
    if output.suffix != ".parquet":
        raise RequestError(f"-o {output}: a result's name must end in .parquet")
    if not 0 < arguments.timeout < float("inf"):
        raise RequestError(f"--timeout is {arguments.timeout:g}, expected more than 0 seconds")
    if arguments.workers < 1:
        raise RequestError(f"--workers is {arguments.workers}, expected at least 1")
    files.check_outputs([arguments.output], arguments.models)
    table = table_of(words_of(arguments), _inputs_of(arguments))
    scheduler = arguments.scheduler or ""
    request = SweepRequest(table, output, arguments.workers, scheduler, arguments.timeout, arguments.retry)
    line = _ProgressLine()
    try:
        outcome = sweep(request, line.show)
    finally:
        line.clear()
    terminal.show([Section(f"{output}: {counted(len(table), 'run')}", tuple(_ended(outcome, output)))])
    return 0


def words_of(arguments: Namespace) -> dict[str, tuple[str, ...]]:
    """The sweep's table as texts: options replace what the .toml file states."""
    tables = [path for path in arguments.models if path.endswith(".toml")]
    if tables and len(arguments.models) > 1:
        raise RequestError(f"{tables[0]} is a table; it names its models itself, expected no other MODEL")
    words = read_sweep(Path(tables[0])) if tables else {"models": tuple(arguments.models)}
    for key in KEYS[1:]:
        if getattr(arguments, key):
            words[key] = tuple(_names(getattr(arguments, key)) if key in _LISTS else getattr(arguments, key))
    if arguments.scheduler:
        words["models"] = tuple(str(Path(path).absolute()) for path in words.get("models", ()))
    return words


def _names(given: Sequence[str]) -> Iterator[str]:
    """The names of an option, with blanks or commas between them; a file may have a comma in its name."""
    for text in given:
        yield from [text] if text.startswith("from:") else filter(None, text.split(","))


def _inputs_of(arguments: Namespace) -> dict[str, Words]:
    """What the .toml file says of the inputs of single models."""
    inputs = read_inputs(Path(arguments.models[0])) if arguments.models[0].endswith(".toml") else {}
    return {str(Path(path).absolute()) if arguments.scheduler else path: own for path, own in inputs.items()}


class _ProgressLine:
    """The line that tells how far the sweep is, rewritten in place on a terminal."""

    def __init__(self) -> None:
        self._shown: float | None = None

    def show(self, progress: SweepProgress) -> None:
        """Writes the line, if it is some time since the last one."""
        now, live = time.monotonic(), sys.stderr.isatty()
        if self._shown is None or now - self._shown >= (_PACE if live else _SLOW_PACE):
            self._shown = now
            text = progress_line(progress)
            sys.stderr.write(f"\r\033[K{text}" if live else f"{text}\n")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._shown is not None and sys.stderr.isatty():
            sys.stderr.write("\r\033[K")


def progress_line(progress: SweepProgress) -> str:
    """How far the sweep is, how fast, how long it will take."""
    rate = progress.ended / max(progress.seconds, 1e-9)
    done, every = progress.there + progress.ended, progress.there + progress.missing
    bar = ("#" * (20 * done // every)).ljust(20, ".")
    left = _time((progress.missing - progress.ended) / rate)
    rest = f"{done:,} of {counted(every, 'run')}, {rate:.1f} a second, {left} left"
    return f"[{bar}] {rest}" + (f", {progress.refused:,} without an answer" if progress.refused else "")


def _time(seconds: float) -> str:
    """Seconds as people read them.

    >>> _time(40.2), _time(130), _time(7300)
    ('40 s', '2 min', '2 h 2 min')
    """
    minutes = round(seconds) // 60
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def _ended(outcome: SweepProgress, output: Path) -> Iterator[str]:
    if outcome.there:
        yield f"there already   {outcome.there:,}"
    yield from (f"{status:15} {count:,}" for status, count in sorted(outcome.counts.items()))
    yield f"`modelplan report {output}` shows them"
