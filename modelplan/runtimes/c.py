"""Plain C without an interpreter: what `fit --runtime c` writes, as whole maps that may run into each other."""

from dataclasses import replace

from modelplan.model import Graph, KernelLibrary, Op, Runtime
from modelplan.ops.op_facts import TFLITE_RESHAPES
from modelplan.runtimes.tflm import TFLM

_PORTABLE, _ESP_NN = "portable", "esp-nn"
#: Operators whose kernels of CMSIS-NN are called with scratch.
_WITH_SCRATCH = {"AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D"}
#: What a header calls the bytes of the buffer, where nothing else is said.
RAM_MACRO = "NET_RAM_BYTES"


def _scratch(graph: Graph, op: Op, library: str) -> tuple[int, ...]:
    """Bytes of each working buffer of an operator: with CMSIS-NN as in TFLM, none with portable kernels and ESP-NN."""
    called_with_it = library not in (_PORTABLE, _ESP_NN) and op.kind in _WITH_SCRATCH
    return TFLM.scratch(graph, op, library) if TFLM.scratch and called_with_it else ()


_SHARING = replace(
    TFLM.sharing,
    views=TFLITE_RESHAPES,
    overwrites={kind: rule.operands for kind, rule in TFLM.sharing.proved.items()},
    at_graph_ends=True,
    source="modelplan's own kernels in plain_c/kernels, which go front to back like TFLM's reference",
)

C = Runtime(
    "c",
    alignment=4,
    pad="tensor",
    state="arena",
    allocator="modelplan",
    source="the C that modelplan writes: a buffer whose offsets are planned, no tail; each map at a multiple of 4",
    scratch=_scratch,
    kernels=_PORTABLE,
    unpacked=TFLM.unpacked,
    sharing=_SHARING,
    libraries=(
        KernelLibrary(_PORTABLE, "modelplan's own in C99, without scratch", sequential=True, plain_loops=True),
        *(replace(library, sequential=False, leads={}) for library in TFLM.libraries if "cmsis" in library.name),
        KernelLibrary(_ESP_NN, "ESP-NN's kernels in C, which every chip has, without scratch"),
    ),
    runs=("tflite", "onnx"),
)
