"""Node data for Model Explorer: the colours of differences."""

from __future__ import annotations

import json

import pytest

from modelplan.formats.node_keys import NodeKeys
from modelplan.outputs.exchange.node_data import _content

GREEN, WHITE, ORANGE = "#1b9e77", "#ffffff", "#d95f02"


@pytest.mark.parametrize(
    ("values", "gradient"),
    [
        ((-10, 0, 30), [(0, GREEN), (0.25, WHITE), (1, ORANGE)]),
        ((-3, 0), [(0, GREEN), (1, WHITE)]),
        ((0, 7), [(0, WHITE), (1, ORANGE)]),
        ((0, 0), [(0, WHITE), (1, WHITE)]),
        ((), [(0, WHITE), (1, WHITE)]),
    ],
)
def test_what_did_not_change_is_white(values: tuple[int, ...], gradient: list[tuple[float, str]]) -> None:
    nodes = NodeKeys("main", {op: str(op) for op in range(len(values))})
    found = json.loads(_content("delta", dict(enumerate(values)), nodes))["main"]
    assert [(row["stop"], row["bgColor"]) for row in found["gradient"]] == gradient
    assert [row["value"] for row in found["results"].values()] == list(values)
