"""Published and recomputed figures on real networks: Glow's 79 traces, MobileNet v1 and v2."""

from __future__ import annotations

from pathlib import Path

import networks
import pytest

from modelplan import height, place

#: allocator: networks at the load, mean height/load, worst, as first recomputed from the published behaviour.
EXPECTED = {
    "vela-hill-climb": (79, "1.0000", "1.000"),
    "glow": (76, "1.0042", "1.111"),
    "tvm-hill-climb": (76, "1.0042", "1.111"),
    "tflite-greedy-by-size": (70, "1.0098", "1.111"),
    "xla-spatial": (70, "1.0098", "1.111"),
    "triton": (67, "1.0141", "1.111"),
    "tflm-greedy": (67, "1.0309", "1.333"),
    "xla-temporal": (64, "1.0427", "1.445"),
    "tflite-greedy-by-size-objects": (35, "1.109", "1.481"),
    "tflite-greedy-by-breadth": (34, "1.109", "1.417"),
    "tflite-greedy-in-order": (36, "1.205", "1.903"),
}

#: MiB for v1 and v2; the naive figures and the number of tensors are the paper's.
MOBILENET = {
    "bound of shared objects": ("4.594", "6.604"),
    "load (bound of offsets)": ("4.594", "5.742"),
    "naive (objects)": ("19.248", "26.313"),
    "tflite-equality (objects)": ("8.912", "17.544"),
    "tflite-greedy-in-order (objects)": ("4.594", "8.039"),
    "tflite-greedy-by-breadth (objects)": ("4.594", "6.891"),
    "tflite-greedy-by-size-objects (objects)": ("4.594", "6.699"),
    "tflite-min-cost-flow (objects)": ("5.359", "7.513"),
    "tflite-greedy-by-size": ("4.594", "5.742"),
    "tflite-greedy-by-breadth-offsets": ("4.594", "5.742"),
}


@pytest.fixture(scope="module")
def traces(corpus: Path) -> list[networks.Network]:
    return networks.read(corpus / "problems" / "glow" / "traces.txt")


def test_glow_reaches_the_peak_of_its_own_test_on_all_79(traces: list[networks.Network]) -> None:
    assert len(traces) == 79
    for network in traces:
        assert height(network.problem, place(network.problem, "glow")) == network.expected, network.name


@pytest.mark.parametrize("name", EXPECTED)
def test_planners_reach_what_was_recomputed(name: str, traces: list[networks.Network]) -> None:
    at_load, mean, worst = EXPECTED[name]
    found = networks.score(name, traces)
    assert found is not None
    digits = len(mean.partition(".")[2])
    assert (found.at_load, f"{found.mean:.{digits}f}", f"{found.worst:.3f}") == (at_load, mean, worst)


def test_mobilenet() -> None:
    assert (len(networks.mobilenet_v1()), len(networks.mobilenet_v2())) == (30, 65)
    rows = {name: (f"{one:.3f}", f"{two:.3f}") for name, one, two in networks.mobilenet_rows()}
    assert {name: rows[name] for name in MOBILENET} == MOBILENET


def test_the_report_has_a_line_for_every_score(traces: list[networks.Network]) -> None:
    page = "\n".join(networks.report(traces[:3]))
    assert page.count("| glow |") == 1
    assert "3 networks of Glow's" in page
