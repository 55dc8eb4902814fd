"""A model as operators in C, and as the graph of rows that plans see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from modelplan.model import Graph
from modelplan.model.c_program import CProgram
from modelplan.plain_c.folding import expanded_depthwise, with_pooled_convolutions, without_pads
from modelplan.plain_c.instruction_counts import faster_of
from modelplan.plain_c.kernel_records import COperator, MissingKernelError
from modelplan.plain_c.libraries.kernel_libraries import library_operators
from modelplan.plain_c.operator_calls.operator_table import c_operator
from modelplan.plain_c.operator_calls.reading import OperatorReader
from modelplan.plain_c.operator_calls.state_layout import handle_key
from modelplan.plain_c.rows.row_graph import RowGraph, operator_rows, row_graph
from modelplan.rewriting.stripes.ordering import late_reads, late_writes
from modelplan.runtimes.tflm.file import FileModel


@dataclass
class CModel:
    """A model that becomes C, with its operators: those that run, and those that run where there is memory to spare.

    `portable` are those that call no library; they need no working memory and can take the place of any that do.
    `expanded` are depthwise convolutions that may compute the convolution before them too, with its number.
    """

    graph: Graph
    file: FileModel
    kernels: str = "portable"
    operators: Mapping[int, COperator] = field(init=False)
    faster: Mapping[int, COperator] = field(init=False)
    portable: Mapping[int, COperator] = field(init=False)
    expanded: Mapping[int, tuple[int, COperator]] = field(init=False)

    def __post_init__(self) -> None:
        operators = without_pads(self.graph, dict(enumerate(_operators(self.file))))
        self.expanded = {}
        if self.kernels == "portable":
            operators = with_pooled_convolutions(self.graph, operators)
            self.expanded = expanded_depthwise(self.graph, operators)
        self.portable = operators
        self.operators, self.faster = library_operators(self.file, operators, self.kernels)

    @cached_property
    def rows(self) -> RowGraph:
        """What a plan sees of it."""
        computed = {i: operator_rows(c) for i, c in self.operators.items() if not c.view and c.kernels}
        views = frozenset(i for i, c in self.operators.items() if c.view)
        rows = row_graph(self.graph, computed, views, self._order)
        return replace(rows, expanded={i: (first, operator_rows(c)) for i, (first, c) in self.expanded.items()})

    def operators_of(
        self, rows: RowGraph, program: CProgram, faster: Mapping[int, COperator]
    ) -> Mapping[int, COperator]:
        """The operators of a plan: of its graph of rows, of which some compute others too; for which memory is spared.

        Where a library is called each one has its kernel or the portable one, whichever takes fewer instructions.
        """
        operators = {**self.operators, **{i: self.expanded[i][1] for i in rows.folded}, **faster}
        return operators if self.kernels == "portable" else faster_of(program, operators, self.portable)

    @property
    def _order(self) -> Sequence[int]:
        """Producers first; variables are read and assigned late, unless two handles are those of the same one."""
        main, order = self.file.subgraphs[0], self.graph.producers_first
        handles = [handle_key(OperatorReader(self.file, i)) for i, op in enumerate(main.ops) if op.kind == "VAR_HANDLE"]
        if len(set(handles)) < len(handles):
            return order
        return late_writes(self.graph, late_reads(self.graph, order))


def _operators(file: FileModel) -> list[COperator]:
    operators, missing = list[COperator](), list[tuple[str, str, str]]()
    for index in range(len(file.subgraphs[0].ops)):
        try:
            operators.append(c_operator(file, index))
        except MissingKernelError as problem:
            missing += problem.missing
    if missing:
        raise MissingKernelError(file.name, missing)
    return operators
