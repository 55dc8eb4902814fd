"""No runtime in particular: for code generators and for runtimes that modelplan does not know."""

from modelplan.model import KernelLibrary, Runtime, Sharing
from modelplan.ops.op_facts import ONNX_RESHAPES, TFLITE_RESHAPES

GENERIC = Runtime(
    "generic",
    alignment=16,
    pad="tensor",
    state="arena",
    allocator="tflite-greedy-by-size",
    source="no runtime in particular: 16-byte alignment, every tensor padded",
    sharing=Sharing(
        views=TFLITE_RESHAPES | ONNX_RESHAPES | {"Identity"},
        at_graph_ends=True,
        source="no kernels are known: only views are safe",
    ),
    libraries=(KernelLibrary("reference", "loops over one element after the other", sequential=True),),
    runs=("tflite", "onnx"),
)
