"""The records of a plan that becomes C, which stand where those that check it see them too."""

from modelplan.model.c_program import (
    CProgram,
    KernelCall,
    RowsArrival,
    RowsRead,
    RowsWritten,
    Stage,
    Step,
    StoredValue,
    ValueShift,
)

__all__ = [
    "CProgram", "KernelCall", "RowsArrival", "RowsRead", "RowsWritten", "Stage", "Step", "StoredValue", "ValueShift",
]  # fmt: skip
