"""ESP-NN's scratch by release, as its functions returned it when they were compiled at each tag."""

from __future__ import annotations

import pytest

from modelplan.runtimes.tflm.kernels import LIBRARIES, LIBRARY_GROUPS, esp_nn, spoken_kernels
from modelplan.runtimes.tflm.kernels.esp_nn import EspWindow

#: Input, filter, stride, output, padding (height and width each), channels in, convolved, and multiplied.
GEOMETRIES = [
    ((30, 30), (1, 1), (1, 1), (30, 30), (0, 0), 8, 16, 1),
    ((7, 7), (1, 1), (1, 1), (7, 7), (0, 0), 12, 9, 1),
    ((20, 20), (3, 3), (1, 1), (20, 20), (1, 1), 24, 16, 1),
    ((49, 10), (10, 4), (1, 1), (49, 10), (4, 1), 1, 64, 1),
    ((40, 40), (3, 3), (1, 1), (40, 40), (1, 1), 16, 8, 1),
    ((30, 40), (5, 5), (1, 1), (30, 40), (2, 2), 8, 4, 1),
    ((11, 9), (3, 3), (2, 2), (5, 4), (0, 0), 5, 4, 1),
    ((33, 35), (3, 3), (1, 1), (33, 35), (1, 1), 1, 8, 4),
    ((12, 12), (3, 3), (1, 1), (10, 10), (0, 0), 1, 8, 1),
]
_OLD = [288, 1216, 16320, 41932, 29440, 13616, 624, 2511, 1216]
CONVOLUTIONS = {
    "esp-nn@1.1.0": (esp_nn.conv_1_1, _OLD),
    "esp-nn@1.2.0": (esp_nn.conv_1_1, _OLD),
    "esp-nn@1.2.1": (esp_nn.conv_1_2_1, [288, 1216, 31776, 3440, 58816, 26544, 320, 4190, 1600]),
    "esp-nn@1.2.3": (esp_nn.conv_1_2_3, [320, 1248, 31808, 3472, 58848, 26576, 352, 4222, 1632]),
    "esp-nn-p4@1.1.0": (esp_nn.conv_1_1, _OLD),
    "esp-nn-p4@1.2.3": (esp_nn.conv_p4, [384, 244, 312, 328, 208, 248, 93, 2511, 3520]),
}
_NEW = [14448, 2592, 31584, 32, 28384, 19632, 2000, 2414, 32]
DEPTHWISE = {
    "esp-nn@1.1.0": (esp_nn.depthwise_1_1, [32, 32, 19648, 32, 28384, 32, 32, 2398, 32]),
    "esp-nn@1.2.0": (esp_nn.depthwise_1_2_0, [32, 32, 19664, 32, 28384, 32, 32, 2414, 32]),
    "esp-nn@1.2.1": (esp_nn.depthwise_1_2_1, _NEW),
    "esp-nn@1.2.3": (esp_nn.depthwise_1_2_1, _NEW),
}


@pytest.mark.parametrize("release", CONVOLUTIONS)
def test_convolutions(release: str) -> None:
    size, expected = CONVOLUTIONS[release]
    windows = [EspWindow(a, b, d, e, c, inputs, outputs) for a, b, c, d, e, inputs, outputs, _ in GEOMETRIES]
    assert [size(window) for window in windows] == expected


@pytest.mark.parametrize("release", DEPTHWISE)
def test_depthwise_convolutions(release: str) -> None:
    size, expected = DEPTHWISE[release]
    windows = [EspWindow(a, b, d, e, c, inputs, inputs * m, m) for a, b, c, d, e, inputs, _, m in GEOMETRIES]
    assert [size(window) for window in windows] == expected


def test_every_release_is_here_and_those_between_two_are_names_of_one() -> None:
    assert set(CONVOLUTIONS) == {*LIBRARY_GROUPS["esp-nn@all"], *LIBRARY_GROUPS["esp-nn-p4"]}
    assert set(DEPTHWISE) == set(LIBRARY_GROUPS["esp-nn@all"])
    for release in ("1.0.0", "1.0.1", "1.0.2", "1.1.0", "1.1.1", "1.1.2", "1.2.0", "1.2.1", "1.2.2", "1.2.3"):
        assert spoken_kernels(f"esp-nn@{release}") in LIBRARIES
