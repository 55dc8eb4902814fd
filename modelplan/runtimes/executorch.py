"""ExecuTorch: what it does with memory."""

from modelplan.model import Runtime, Sharing
from modelplan.ops.op_facts import ONNX_RESHAPES, TFLITE_RESHAPES

EXECUTORCH = Runtime(
    "executorch",
    alignment=16,
    pad="tensor",
    state="arena",
    allocator="executorch-greedy",
    source="ExecuTorch, exir/tensor.py ALIGNMENT, exir/memory_planning.py",
    sharing=Sharing(
        views=TFLITE_RESHAPES | ONNX_RESHAPES,
        source="ExecuTorch, exir/passes/replace_view_copy_with_view_pass.py; reinplace.py does index_put only",
    ),
)
