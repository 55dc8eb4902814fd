"""In which order ESP-NN's kernels for the ESP32-S3 read and write, as rounds, and where their maps must lie.

What a round is stands in `cmsis_nn.py`. The C kernels stand in for the vector kernels on other machines, so that a
round is never less than theirs, element after element. Planning has `runtimes/tflm/kernels/esp_nn_overlap.py`.
Source: espressif/esp-nn 1.2.3, src/convolution; espressif/esp-tflite-micro, kernels/esp_nn.
"""

from modelplan.checking.verifier.cmsis_nn import CheckedWindow, Map, Round

#: Libraries whose orders are known here, and all for which files must be right on vector units.
ORDERED = ("esp-nn", "esp-nn@1.2.3")
#: Kernels in C that finish one element after the other.
ONE_BY_ONE = "esp-nn-generic"
_VECTOR_LIBRARIES = (*ORDERED, "esp-nn@1.2.1", "esp-nn@1.2.0", "esp-nn@1.1.0", "esp-nn@all", "all",
                     "esp-nn-p4", "esp-nn-p4@1.2.3", "esp-nn-p4@1.1.0")  # fmt: skip
_VECTOR_KERNELS = {
    "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "MUL", "MAX_POOL_2D", "AVERAGE_POOL_2D", "SOFTMAX",
}  # fmt: skip
#: Bytes of a vector register: loads and stores forget what an address has beyond a multiple of them.
_REGISTER = 16
#: Bytes of a padded map that a depthwise convolution copies as a whole; of a larger one it copies three rows.
_COPIED_WHOLE = 40 * 1024


def needed_multiple(library: str, kind: str) -> int:
    """The number whose multiples the addresses of an operator's maps must be."""
    return _REGISTER if library in _VECTOR_LIBRARIES and kind in _VECTOR_KERNELS else 1


def convolution(shape: Map, window: CheckedWindow) -> list[Round] | str:
    """The rounds of an undilated CONV_2D; "elements" where each element is finished in turn."""
    pointwise = window.kernel == window.strides == (1, 1) and window.pads == (0, 0)
    if not pointwise or shape.into[3] % 8 == 0:
        return "elements"
    rounds: list[Round] = []
    for pixels in shape.images:
        eights = len(pixels) // 8 * 8
        parts = [pixels[i : i + 8] for i in range(0, eights, 8)]
        parts += [pixels[i : i + 1] for i in range(eights, len(pixels))]
        rounds += [(part, part.stop * shape.out[3] - 1) for part in parts]
    return rounds


def depthwise(shape: Map, window: CheckedWindow) -> str:
    """Whether an undilated DEPTHWISE_CONV_2D reads all before it writes there: "elements" where so, else ""."""
    channels = shape.into[3]
    if window.kernel != (3, 3) or channels % 16 or channels != shape.out[3] or window.pads == (1, 1):
        return "elements"
    if window.pads != (0, 0):
        return ""  # its working buffer is too small
    reach = [shape.out[1 + a] * window.strides[a] + 2 for a in (0, 1)]
    if reach == [shape.into[1], shape.into[2]]:  # not copied, and walked over once for sixteen channels
        return "elements" if channels == 16 else ""
    return "elements" if reach[0] * reach[1] * channels <= _COPIED_WHOLE else ""
