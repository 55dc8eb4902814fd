"""Plain C without an interpreter: what `fit --runtime c` writes, as whole maps that may run into each other."""

from __future__ import annotations

from dataclasses import replace

from modelplan.model import KernelLibrary, Runtime
from modelplan.runtimes.tflm import TFLM

_SHARING = replace(
    TFLM.sharing,
    views=frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"}),
    overwrites={kind: rule.operands for kind, rule in TFLM.sharing.proved.items()},
    at_graph_ends=True,
    source="modelplan's own kernels in rewriting/standalone_c/kernels, which go front to back like TFLM's reference",
)

C = Runtime(
    "c",
    alignment=4,
    pad="tensor",
    state="arena",
    allocator="modelplan",
    source="the C that modelplan writes: a buffer whose offsets are planned, no tail; each map at a multiple of 4",
    kernels="portable",
    unpacked=TFLM.unpacked,
    sharing=_SHARING,
    libraries=(
        KernelLibrary("portable", "modelplan's own in C99, without scratch", sequential=True, plain_loops=True),
    ),
    runs=("tflite",),
)
