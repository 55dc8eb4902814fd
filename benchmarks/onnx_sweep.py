"""Random CNNs on ONNX Runtime, in stripes and as fit makes them: equal outputs, lower peaks at the settings told.

    python benchmarks/onnx_sweep.py [--count 200] [--again]

Each net of tests/sweeps/onnx_stripes.py runs at optimization levels off, basic and extended on one thread. What was
measured is kept beside the page as .csv after each net; a second start goes on from there, `--again` begins anew. Nets
that ONNX Runtime does not run as they stand are not counted. Exit code 1 where outputs differ or a written
file is not better.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path

import reporting

sys.path.append(str(reporting.ROOT / "tests" / "sweeps"))
from onnx_stripes import LEVELS, Row, rows_of

from modelplan.runtimes.ort.measuring import ort_version


def main() -> int:
    """Runs the nets that are missing and writes the page."""
    arguments = reporting.parse(PARSER)
    kept = arguments.output.with_suffix(".csv")
    if arguments.again or not kept.exists():
        kept.write_text(",".join(field.name for field in fields(Row)) + "\n")
    rows = read_rows(kept)
    while counted(rows) < arguments.count:
        done = {row.net for row in rows}
        net = next(k for k in range(len(done) + 1) if k not in done)
        with tempfile.TemporaryDirectory() as folder:
            found = rows_of(net, Path(folder))
        with kept.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(map(astuple, found))
        rows += found
        reporting.progress(f"net {net}: {'; '.join(filter(None, (row.wrong for row in found))) or 'all is well'}")
    rows.sort(key=lambda row: row.net)
    with kept.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([[f.name for f in fields(Row)], *map(astuple, rows)])
    arguments.again = False
    first = reporting.made_by(PARSER, arguments, f" with ONNX Runtime {ort_version()}, x86-64, one thread")
    title = f"{counted(rows)} random CNNs in stripes on ONNX Runtime"
    reporting.save(arguments.output, first, title, page(rows, kept.name))
    return int(any(row.wrong for row in rows))


def read_rows(path: Path) -> list[Row]:
    """The rows of the nets that were measured at all levels."""
    kinds = {"str": str, "int": int, "float": float}
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    rows = [Row(**{f.name: kinds[str(f.type)](line[f.name]) for f in fields(Row)}) for line in lines]
    whole = Counter(row.net for row in rows)
    return sorted((row for row in rows if whole[row.net] == len(LEVELS)), key=lambda row: row.net)


def counted(rows: Sequence[Row]) -> int:
    """The nets that ONNX Runtime runs."""
    return len({row.net for row in rows if not row.refused})


def page(rows: Sequence[Row], cells: str) -> Iterator[str]:
    """The lines of the report."""
    run = [row for row in rows if not row.refused]
    refused = len({row.net for row in rows if row.refused})
    yield f"{refused} further nets are none that ONNX Runtime runs as they stand. `{cells}` has each net at each level."
    yield ""
    yield "*Stripes*: one random stretch in a random number of stripes, rows kept or recomputed, extents named or not,"
    yield "as far as the rule for partial sums allows it; arena and memory patterns off. Here a higher peak is no"
    yield "fault: nothing was chosen. *Fit*: what `modelplan fit --least --max-macs 1000%` does; where it writes one,"
    yield "model and file are measured again in further processes at the settings that it names. Equal: bit by bit on"
    yield "five random and three extreme inputs. Wrong: outputs differ, or a written file needs no less than the model."
    yield "Refused: ONNX Runtime does not run the stripes."
    yield ""
    yield from at_the_defaults([row for row in run if row.fit_ulps >= 0])
    yield ""
    heads = (
        "level", "nets", "in stripes", "refused", "equal", "lower", "same", "higher", "fit writes", "equal", "lower",
        "least saved", "median", "most", "higher at the defaults", "settings alone", "nothing better", "wrong",
    )  # fmt: skip
    yield from reporting.table(heads, (line(level, [r for r in run if r.level == level]) for level in LEVELS))
    wrong = [row for row in run if row.wrong]
    if wrong:
        yield ""
    yield from (f"* net {row.net} at level {row.level}: {row.wrong}" for row in wrong)


def at_the_defaults(written: Sequence[Row]) -> Iterator[str]:
    """What the files that fit writes need where the settings are left as they are."""
    if not written:
        yield "Fit wrote no file."
        return
    more = sorted(row.usual_after - row.usual_before for row in written)
    higher = sum(bytes_ > 0 for bytes_ in more)
    mid, most = max(more[len(more) // 2], 0), max(more[-1], 0)
    share = 100 * max(row.usual_after / row.usual_before - 1 for row in written)
    least, largest = (found(row.usual_before for row in written) / 2**20 for found in (min, max))
    yield "A written file needs less than the model at the settings that the command names; at others nothing is said."
    yield f"At the defaults, arena and memory patterns on, {higher} of {len(written)} files need more than the model:"
    yield f"{mid:,} bytes in the median, {most:,} at most ({share:.1f} %). These models are small: for one the"
    yield f"arena takes {least:.0f} to {largest:.0f} MiB there, in blocks of 1 MiB and more, whatever is alive in it."


def line(level: str, rows: Sequence[Row]) -> list[object]:
    """One level's line of the table."""
    striped = [row for row in rows if row.ulps >= 0]
    change = Counter((row.after > row.before) - (row.after < row.before) for row in striped)
    written = [row for row in rows if row.fit_ulps >= 0]
    saved = sorted(1 - row.fit_after / row.fit_before for row in written) or [0.0]
    done = Counter(row.fit for row in rows)
    return [
        level, len(rows), len(striped), sum(bool(row.stripes_refused) for row in rows),
        sum(not row.ulps for row in striped), change[-1], change[0], change[1],
        len(written), sum(not row.fit_ulps for row in written), sum(row.fit_after < row.fit_before for row in written),
        *(f"{100 * saved[place]:.0f} %" for place in (0, len(saved) // 2, -1)),
        sum(row.usual_after > row.usual_before for row in written), done["settings"], done["as is"],
        sum(bool(row.wrong) for row in rows),
    ]  # fmt: skip


PARSER = reporting.command_line(__file__, __doc__, "onnx_sweep.md", corpus=False)
PARSER.add_argument("--count", type=int, default=200, help="nets (default: 200)")
PARSER.add_argument("--again", action="store_true", help="forget what was measured")

if __name__ == "__main__":
    sys.exit(main())
