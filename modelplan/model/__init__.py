"""Every noun of modelplan: frozen, in bytes and half-open steps, neighbours by index; derived facts are properties.

Graph --order--> Schedule --buffers--> Problem --place--> Placement;  a Plan remembers all four.
"""

from modelplan.model.alias_classes import Aliases, Member, Merge, Offer, Overlap, class_bytes
from modelplan.model.complete_plan import Plan
from modelplan.model.graph import Answer, Graph, Kind, Op, Tensor, Value, present
from modelplan.model.placement import Budget, Ended, Placement, Progress
from modelplan.model.problem import Buffer, BufferKind, Problem
from modelplan.model.runtime_facts import (
    Alternative,
    InPlace,
    Keeps,
    KernelLibrary,
    LibraryNeed,
    Padding,
    Part,
    Requirement,
    Requires,
    Runtime,
    ScratchSizes,
    Sharing,
)
from modelplan.model.schedule import FlowCase, OrderProblem, Overwrite, Schedule, Storage, Transfer, Witness
from modelplan.model.session_need import SessionMemory, SessionNeed
from modelplan.primitives.number_types import BoolArray, IntArray, column, rows_of, same_fields

__all__ = [
    "Aliases", "Alternative", "Answer", "BoolArray", "Budget", "Buffer", "BufferKind", "Ended", "FlowCase", "Graph",
    "InPlace", "IntArray", "Keeps", "KernelLibrary", "Kind", "LibraryNeed", "Member", "Merge", "Offer", "Op",
    "OrderProblem", "Overlap", "Overwrite", "Padding", "Part", "Placement", "Plan", "Problem", "Progress",
    "Requirement", "Requires", "Runtime", "Schedule", "ScratchSizes", "SessionMemory", "SessionNeed", "Sharing",
    "Storage", "Tensor", "Transfer", "Value", "Witness", "class_bytes", "column", "present", "rows_of", "same_fields",
]  # fmt: skip
