"""What sessions took when they were measured: kept in the user's cache folder, so that a file is measured once."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from modelplan.primitives.allocation_trace import LIBRARY
from modelplan.runtimes.ort.feeding import Feeds
from modelplan.runtimes.ort.measuring import (
    Measured,
    MeasuringLimits,
    SessionSettings,
    Shapes,
    measure_each,
    ort_version,
    reach,
)
from modelplan.runtimes.ort.reaching import Aim

#: An entry `location` of external data, as protobuf writes it, up to the length of the name that follows.
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x80-\xff]?[\x00-\x7f])", re.DOTALL)


def cache_folder() -> Path:
    """Where measurements are kept: modelplan/sessions in $XDG_CACHE_HOME, by default ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "modelplan" / "sessions"


class RememberedSessions:
    """Measurements of one model file, by its content, the version of ONNX Runtime and that of the meter.

    Weights in other files count by size and time of the last change, since they may be large.
    """

    def __init__(self, path: str, content: bytes) -> None:
        self.path = path
        meter = hashlib.sha256(LIBRARY.read_bytes()).hexdigest()  # a changed trace may count otherwise
        parts = (hashlib.sha256(content).hexdigest(), ort_version(), meter, *_weights(Path(path).parent, content))
        self._file = cache_folder() / f"{hashlib.sha256(' '.join(parts).encode()).hexdigest()}.json"
        self._rows = _read(self._file)

    def known(self) -> bool:
        """Whether anything of this file was measured before."""
        return bool(self._rows)

    def measured(
        self, shapes: Shapes, settings: Sequence[SessionSettings], limits: MeasuringLimits, feeds: Feeds, draw: int = 0
    ) -> list[Measured]:
        """What the model takes at each of several settings; what is not remembered is measured. `draw` is as there.

        Raises:
            ModelError: ONNX Runtime does not load or run the file within the limits.
        """
        keys = [_key(shapes, feeds, asdict(setting), draw) for setting in settings]
        missing = {key: setting for key, setting in zip(keys, settings, strict=True) if key not in self._rows}
        if missing:
            answers = measure_each(self.path, shapes, list(missing.values()), limits, feeds, draw)
            rows = ([getattr(answer, name) for name in _COLUMNS] for answer in answers)
            self._rows |= zip(missing, rows, strict=True)
            self._keep()
        return [_from_row(self._rows[key]) for key in keys]

    def reached(self, shapes: Shapes, aim: Aim, limits: MeasuringLimits, feeds: Feeds) -> Mapping[str, Any]:
        """What a run reaches of an aim, as `reach` answers; what is not remembered is tried.

        Raises:
            ModelError: ONNX Runtime does not load the file, or gives no answer within the limits.
        """
        key = _key(shapes, feeds, aim.plain())
        if key not in self._rows:
            self._rows[key] = [dict(reach(self.path, shapes, aim, limits, feeds))]
            self._keep()
        answer: Mapping[str, Any] = self._rows[key][0]
        return answer

    def _keep(self) -> None:
        """Writes the file anew; without a folder that can be written to the next process measures again."""
        draft = self._file.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(self._rows))
            draft.replace(self._file)


def _weights(folder: Path, content: bytes) -> Iterator[str]:
    """Names, sizes and times of the files beside an .onnx file that hold weights of it."""
    for name in _locations(content):
        with suppress(OSError, ValueError):  # the session says that it cannot be read
            status = (folder / os.fsdecode(name)).stat()
            yield f"{name.hex()} {status.st_size} {status.st_mtime_ns}"


def missing_weights(folder: Path, content: bytes) -> str:
    """The first of the files that hold weights of an .onnx file and do not lie in `folder`; empty where all do."""
    names = (os.fsdecode(name) for name in _locations(content) if b"\0" not in name)
    return next((name for name in names if not os.path.exists(folder / name)), "")  # noqa: PTH110 -- raises nothing


def _locations(content: bytes) -> list[bytes]:
    names = {content[match.end() : match.end() + _length(match[1])] for match in _LOCATION.finditer(content)}
    return sorted(names)


def _length(varint: bytes) -> int:
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(varint))


def _read(path: Path) -> dict[str, list[Any]]:
    """The measurements in a file; none where there is no such file, or another program wrote it."""
    try:
        measurements = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    rows = measurements.values() if isinstance(measurements, dict) else [None]
    return measurements if all(isinstance(row, list) and len(row) in (1, len(_COLUMNS)) for row in rows) else {}


def _key(shapes: Shapes, feeds: Feeds, question: Mapping[str, Any], draw: int = 0) -> str:
    plain = {name: list(map(int, shape)) for name, shape in shapes.items()}
    return json.dumps([plain, feeds.plain(), question, draw], sort_keys=True)


#: What is kept of a measurement: all but outputs.
_COLUMNS = tuple(field.name for field in fields(Measured) if field.name != "outputs")


def _from_row(row: Sequence[Any]) -> Measured:
    known = dict(zip(_COLUMNS, row, strict=True))
    return Measured(**{**known, "heap": tuple(known["heap"])})
