"""Answers as plain data: JSON, dictionaries, and tables for pandas, polars and others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from modelplan.outputs import render
from modelplan.primitives.errors import RequestError

if TYPE_CHECKING:
    import pyarrow


def to_json(answer: object) -> str:
    """The answer as the JSON that its command writes with `--json`.

    Raises:
        RequestError: such an answer has no JSON; the message lists what it has.
    """
    return str(render(answer, ".json"))


def to_dict(answer: object) -> dict[str, Any]:
    """The answer as dictionaries, lists, numbers and text: what `to_json` says.

    Raises:
        RequestError: as `to_json`.
    """
    document: dict[str, Any] = json.loads(to_json(answer))
    return document


def to_dataframe(answer: object) -> pyarrow.Table:
    """The rows of the answer as a table, such as its buffers with lifetimes and offsets: what its .csv file has.

    The table speaks Arrow and the dataframe interchange: `.to_pandas()`, `polars.DataFrame(table)`.

    Raises:
        RequestError: such an answer has no rows, or pyarrow is not installed.
    """
    try:
        from pyarrow import csv, py_buffer
    except ImportError:
        raise RequestError("to_dataframe needs pyarrow: pip install pyarrow") from None
    return csv.read_csv(py_buffer(str(render(answer, ".csv")).encode()))
