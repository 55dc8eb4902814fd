"""What each operator reads, said once: an access map, and what follows from it by formula.

Views and parts of joins (`starts`), what a range of places needs (`rows`), how often a kernel multiplies and reads
(`counting`), and how far an output may run into an operand (`ops/safe_overlap.py`). `builders` makes the maps, `tflite`
and `onnx` read them from the options of an operator; its row in the tables of `ops/` names the builder. The forms, the
formulas and the reasons stand in docs/rows.md.
"""

from modelplan.ops.access.spans import AccessMap, Reads, Span

__all__ = ["AccessMap", "Reads", "Span"]
