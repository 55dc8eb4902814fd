"""Since when TFLM can run what rewritten files need, from the history of the tflite-micro repository.

TFLM has no numbered releases: a version is the day of its sources, as in the wheel's version 0.dev20261023.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date

from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.file import FileModel

#: The first day of the repository; what came with it is older.
_START = date(2021, 4, 9)
_OLDEST = "ADD CONCATENATION FILL LESS MEAN MUL PAD PADV2 QUANTIZE RESHAPE STRIDED_SLICE SUB TRANSPOSE"
#: Operators that a rewrite may add: the day on which MicroMutableOpResolver could register each first.
_OPERATORS = {
    **dict.fromkeys(_OLDEST.split(), _START),
    "DYNAMIC_UPDATE_SLICE": date(2025, 11, 10),  # 62cbc8e3e, #3246
    "GATHER": date(2021, 5, 3),  # 15c609314
    "SLICE": date(2021, 10, 25),  # 284df73c5, #618
    "SUM": date(2022, 7, 22),  # 7257cf16b
    "WHILE": date(2022, 3, 16),  # 359c83a84, #973
}
_PLANS_OF_SUBGRAPHS = date(2022, 3, 1)  # 8c41f9606, #947
_PLANNED_VARIABLES = date(2023, 2, 13)  # 58aa9833f, #1676
_BOOLEAN_SLICE = date(2023, 3, 22)  # 69ada1118, #1832
#: The number of the data type in the schema.
_BOOL = 6
#: Since then WHILE copies no tensor onto itself: 8f1f3b262, #3633.
LOOPS_WITHOUT_COPIES = date(2026, 7, 20)


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a file asks of TFLM, and the first day on which TFLM could do it; None where nobody knows."""

    what: str
    since: date | None


def operator_since(kind: str) -> date | None:
    """The first day on which TFLM could register an operator that a rewrite adds; None where that is not known."""
    return _OPERATORS.get(kind)


def needs_of(file: FileModel, added: Sequence[str]) -> Iterator[Need]:
    """What a rewritten file asks of TFLM beyond its model: the operators that were added, and its plan."""
    for kind in added:
        yield Need(kind, operator_since(kind))
    if len(file.subgraphs) > 1:
        yield Need("an offline plan (addresses in the file) of several subgraphs", _PLANS_OF_SUBGRAPHS)
        if any(tensor.variable for tensor in file.tensors):
            yield Need("variables with planned addresses", _PLANNED_VARIABLES)
        if any(tensor.type == _BOOL for tensor in file.tensors):
            yield Need("SLICE of booleans", _BOOLEAN_SLICE)


def day_of(text: str) -> date:
    """The day that a version of TFLM names.

    Raises:
        RequestError: it names none.

    >>> day_of("0.dev20261023"), day_of("2025-11-10")
    (datetime.date(2026, 10, 23), datetime.date(2025, 11, 10))
    """
    match = re.fullmatch(r"(?:[\d.]*dev)?(\d{4})-?(\d\d)-?(\d\d)", text)
    try:
        return date(*map(int, match.groups())) if match else date.fromisoformat(f"no day: {text}")
    except ValueError:
        raise RequestError(
            f"cannot read {text!r} as a version of TFLM; expected a day like 2025-11-10 or a wheel like 0.dev20251110"
        ) from None
