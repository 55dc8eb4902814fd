"""TFLite builtin operators: what each does to memory."""

from __future__ import annotations

from modelplan.ops.op_facts import OpFacts

OPERATORS: dict[str, OpFacts] = dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "BITCAST"), OpFacts(view=0))
