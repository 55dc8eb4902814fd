"""In which order CMSIS-NN's kernels read and write, as rounds.

A round is a run of pixels of the output with the number of elements that are written when its last read is done. A
kernel that gathers pixels in scratch has then written none of them; a matrix product of pixels where they lie all but
those of its last step. The verifier follows the loops of the sources itself; planning has
`runtimes/tflm/kernels/cmsis_nn_overlap.py`.
Source: CMSIS-NN of June 2026 and tflite-micro of August 2026, micro/kernels/cmsis_nn.
"""

from collections.abc import Iterator

from modelplan.primitives.lazy_records import dataclass

#: The name that stands for all of the libraries below.
EVERY_PATH = "cmsis-nn"
#: The vector instructions of each library: how many pixels are im2col before a product.
IM2COL_PIXELS = {"cmsis-c": 2, "cmsis-dsp": 2, "cmsis-mve": 4}
#: Channels that a depthwise convolution with Helium finishes in one walk over the map.
_CHANNELS_AT_ONCE = 124

Round = tuple[range, int]


@dataclass(frozen=True, slots=True)
class CheckedWindow:
    """What each pixel reads of an NHWC operand: rows and columns of the kernel, strides, dilations, padding before."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Map:
    """Batches, rows, columns and channels of an output, and the operand's."""

    out: tuple[int, int, int, int]
    into: tuple[int, int, int, int]

    @property
    def image(self) -> int:
        """Pixels of one image of the output."""
        return self.out[1] * self.out[2]

    @property
    def images(self) -> Iterator[range]:
        """The pixels of each image of the output."""
        return (range(b * self.image, (b + 1) * self.image) for b in range(self.out[0]))


def convolution(library: str, bits: int, shape: Map, window: CheckedWindow) -> list[Round]:
    """The rounds of CONV_2D with 8-bit weights, one group."""
    channels, rows, columns = shape.out[3], range(shape.out[0] * shape.out[1]), shape.out[2]
    if bits == 8 and window.kernel == (1, 1) and window.dilations == (1, 1) and window.pads == (0, 0):
        every = range(shape.out[0] * shape.image)
        parts = [every] if window.strides == (1, 1) else [range(r * columns, (r + 1) * columns) for r in rows]
        return [kernel_round for part in parts for kernel_round in product(library, part, channels)]
    if bits == 8 and library == "cmsis-mve" and _one_row(shape, window):
        return [kernel_round for pixels in shape.images for kernel_round in _row(shape, window, pixels)]
    return im2col(shape, IM2COL_PIXELS[library])


def im2col(shape: Map, count: int) -> list[Round]:
    """Rounds of `count` pixels that are copied to scratch before any of them is written."""
    parts = (pixels[i : i + count] for pixels in shape.images for i in range(0, len(pixels), count))
    return [(part, part.start * shape.out[3]) for part in parts]


def product(library: str, pixels: range, channels: int) -> Iterator[Round]:
    """The rounds of arm_nn_mat_mult_nt_t_s8 over pixels that are read where they lie."""
    if library == "cmsis-mve":
        fours = len(pixels) // 4 * 4
        parts = [pixels[i : i + 4] for i in range(0, fours, 4)] + [pixels[i : i + 1] for i in range(fours, len(pixels))]
        yield from ((part, part.stop * channels - 1) for part in parts)
    elif channels <= 2:  # one walk over the pixels, as many at a time as there are channels
        parts = [pixels[i : i + channels] for i in range(0, len(pixels), channels)]
        yield from ((part, part.start * channels) for part in parts)
    else:  # a walk for two channels each, the last for two or one
        yield pixels, pixels.stop * channels - (1 if channels % 2 else 2)


def _one_row(shape: Map, window: CheckedWindow) -> bool:
    """Whether arm_convolve_1_x_n_s8 runs, and not in the way of other convolutions."""
    if shape.into[1] != 1 or window.kernel[0] != 1 or window.dilations[1] != 1:
        return False
    return window.strides[1] * shape.into[3] % 4 == 0 and sum(_edges(shape, window)) <= shape.out[2]


def _edges(shape: Map, window: CheckedWindow) -> tuple[int, int]:
    """Pixels at the left and the right end that arm_convolve_1_x_n_s8 counts as reading padding."""
    pad, stride = window.pads[1], window.strides[1]
    odd = abs((shape.out[2] - 1) * stride + window.kernel[1] - shape.into[2]) % 2
    left, right = ((n + stride - 1) // stride for n in (pad, pad + odd))
    return (max(1, left) if pad else 0, max(1, right) if pad + odd else 0)


def _row(shape: Map, window: CheckedWindow, pixels: range) -> Iterator[Round]:
    """The ends of a row are im2col, what lies between is not."""
    left, right = _edges(shape, window)
    channels, end = shape.out[3], len(pixels) - right
    if left:
        yield pixels[:left], pixels.start * channels
    yield from product("cmsis-mve", pixels[left:end], channels)
    if right:
        yield pixels[end:], pixels[end] * channels


def depthwise(library: str, bits: int, shape: Map, window: CheckedWindow, each: int) -> list[Round] | str:
    """The rounds of DEPTHWISE_CONV_2D; "elements" where each element is finished in turn, "" where nothing is known."""
    if each * shape.into[3] != shape.out[3]:
        return ""
    if bits == 8 and library == "cmsis-mve" and shape.into[3] == 1 < shape.out[3]:
        return ""  # TFLM asks for scratch before it knows the stride that decides on its size
    if bits != 8 or each != 1 or shape.into[0] != 1 or window.dilations != (1, 1):
        return "elements"
    if library == "cmsis-mve":
        return im2col(shape, IM2COL_PIXELS[library]) if shape.out[3] <= _CHANNELS_AT_ONCE else ""
    small = window.kernel == (3, 3) and max(window.pads) <= 1
    return "elements" if small or library == "cmsis-c" else im2col(shape, 1)


def largest(shape: Map) -> list[Round]:
    """The rounds of MAX_POOL_2D: a pixel is begun with memcpy, which writes all of it, and then raised."""
    return [(pixels[i : i + 1], (pixels[i] + 1) * shape.out[3]) for pixels in shape.images for i in range(len(pixels))]
