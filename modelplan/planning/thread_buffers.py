"""What kernels of ONNX Runtime that multiply integers keep for each thread, from their first run on.

It lies apart from an arena, grows to what the largest of them asks for, and stays when the session ends.

Source: onnxruntime, core/mlas/lib/qgemm.h MlasGemmQuantThreadInit, with the strides of the kernels for x86-64 with
AVX2, which AVX-512 has too; processors that multiply tiles (AMX) keep some 130,000 bytes more.
"""

from __future__ import annotations

from modelplan.model import Graph, Op

#: The two matrices among the operands of the operators that multiply integers.
_MATRICES = {
    "QLinearMatMul": (0, 3), "QLinearConv": (0, 3), "MatMulInteger": (0, 1), "ConvInteger": (1, 0),
    "com.microsoft.QGemm": (0, 3),
}  # fmt: skip
#: Bytes of panels of both matrices, and of sums of rows and columns, by the types of the matrices.
_PANELS = {
    ("uint8", "uint8"): 41_088, ("uint8", "int8"): 38_016, ("int8", "int8"): 19_520, ("int8", "uint8"): 19_520,
}  # fmt: skip


def panel_bytes(graph: Graph, op: Op, threads: int = 1) -> int:
    """The bytes of the panels of an operator's product, in all threads; 0 where it multiplies no integers."""
    if op.kind not in _MATRICES or max(_MATRICES[op.kind]) >= len(op.inputs):
        return 0
    a, b = (graph.tensors[op.inputs[operand]].dtype for operand in _MATRICES[op.kind])
    return threads * _PANELS.get((a, b), 0)


class ThreadBuffers:
    """The bytes that threads keep; a larger need takes a new buffer before the old one is given back."""

    def __init__(self) -> None:
        self.held = 0

    def need(self, size: int) -> int:
        """The most bytes while a kernel asks for so many."""
        most = self.held + size if size > self.held else self.held
        self.held = max(self.held, size)
        return most
