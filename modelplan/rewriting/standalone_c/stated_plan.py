"""Reads the plan that a C source states: its offsets, tables, loops and calls give back every step.

What is read is believed in nothing: the steps are proved as those of any plan, and the source that they give has to be
the one that was read, token by token. So a fault of a source is a fault of its steps, or a token that differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from modelplan.answers.proof import Verdict
from modelplan.checking.verifier.c_rows import rows_verdict
from modelplan.checking.verifier.rewrites.reading import read_source
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
from modelplan.rewriting.standalone_c.c_model import CModel
from modelplan.rewriting.standalone_c.kernel_records import COperator
from modelplan.rewriting.standalone_c.row_graph import RowGraph, TileChain, tile_bytes, with_chains
from modelplan.rewriting.standalone_c.scheduling import OperandUse, StageOperator, stage_operators
from modelplan.rewriting.standalone_c.stated_statements import StatedStatements, UnreadSourceError, counted_from
from modelplan.rewriting.standalone_c.step_tables import ARRIVAL, SHIFT, OrderRun, StepForm, StepTable
from modelplan.rewriting.standalone_c.writing import CNames, c_files

LEVEL = "plan in C"
_TOKEN = re.compile(r"/\*.*?\*/|\s+|(\"[^\"\n]*\"|\w+|.)", re.DOTALL)
#: How a counter goes on by what a table says.
_COUNTED = re.compile(r"^ *at\[(\d+)\] .*\bs->at\[(\d+)\]\)?;", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_CASE = re.compile(r"^        case \d+: \{\n(.*?)^            break;", re.MULTILINE | re.DOTALL)


def stated_verdict(model: CModel, source: str, header: str) -> Verdict:
    """The verdict of the plan that a source and its header state.

    Cost: O(bytes that all steps read and write).
    """
    plan = StatedPlan(model, source, header)
    try:
        program = plan.program
        verdict = rows_verdict(read_source(model.file), program)
        if verdict.outcome == "broken":
            return Verdict(LEVEL, "broken", verdict.details)
        again = c_files(model.file, plan.operators, program, plan.names)
    except (UnreadSourceError, ValueError, IndexError, KeyError) as problem:
        return Verdict(LEVEL, "unproved", f"its steps are not those of a source that `fit` writes: {problem}")
    for name, text, wanted in (("source", source, again.source), ("header", header, again.header)):
        if other := _first_difference(text, wanted):
            return Verdict(LEVEL, "unproved", f"the {name} is not what this plan gives: {other}")
    return Verdict(LEVEL, "ok", verdict.details)


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """All tokens but comments, each with its place."""
    return ((match[1], match.start()) for match in _TOKEN.finditer(text) if match[1])


def _first_difference(text: str, wanted: str) -> str:
    if _COMMENT.sub("", text) == _COMMENT.sub("", wanted):
        return ""  # tokens of large tables take long
    for (token, at), (right, _) in zip_longest(_tokens(text), _tokens(wanted), fillvalue=("nothing", len(text))):
        if token != right:
            return f"line {text.count(chr(10), 0, at) + 1} has {token} where {right} belongs"
    return ""


@dataclass
class StatedPlan:
    """A source with its header, read as the plan of a model."""

    model: CModel
    source: str
    header: str

    @cached_property
    def names(self) -> CNames:
        """What everything public is called."""
        prefix = self._one(r"\b(\w+)_(?:invoke\(void\)|push_row\()", self.header)[1]
        section = re.search(rf'^#define {prefix.upper()}_SECTION .*section\("([^"]*)"', self.source, re.MULTILINE)
        return CNames(prefix, self._one(r'^#include "([^"]+)"', self.source)[1], section[1] if section else "")

    @cached_property
    def offsets(self) -> dict[str, int]:
        """The named offsets."""
        lines = re.findall(r"^    ((?:AT|SCRATCH)_\d+) = (\d+)", self.source, re.MULTILINE)
        return {name: int(at) for name, at in lines}

    @cached_property
    def operators(self) -> Mapping[int, COperator]:
        """The operators, of which those with working memory may be faster ones."""
        faster = {i: o for i, o in self.model.faster.items() if f"SCRATCH_{i}" in self.offsets}
        return {**self.model.operators_of(self.rows), **faster}

    @cached_property
    def rows(self) -> RowGraph:
        """The graph of rows, in which some operators compute the one before them too."""
        rows = self.model.rows
        stated = {int(n) for n in re.findall(r" expanded_depthwise_int8_params op_(\d+) ", self.source)}
        chains = [TileChain((first, i), 1) for i, (first, _) in rows.expanded.items() if i in stated]
        return with_chains(rows, chains)

    @cached_property
    def program(self) -> CProgram:
        """The plan."""
        rows, main = self.rows, self.model.file.subgraphs[0]
        values = tuple(
            StoredValue(v.tensors, v.nbytes, v.nbytes, self.offsets.get(f"AT_{v.tensors[0]}", 0), v.producer == -2)
            for v in rows.values
        )
        size = int(self._one(rf"^#define {self.names.macro}_RAM_BYTES (\d+)$", self.header)[1])
        inputs, outputs = (tuple(rows.value_of[t] for t in end) for end in (main.inputs, main.outputs))
        scratch = {i: o.scratch for i, o in self.operators.items() if f"SCRATCH_{i}" in self.offsets}
        numbers = sorted({int(n) for n in re.findall(r"^static void stage_(\d+)\(", self._steps, re.MULTILINE)})
        stages = tuple(self._stage(number) for number in numbers)
        scratch |= {i: self._tile_bytes(i, stages) for i in rows.folded}
        kernels = self.model.kernels
        return CProgram(values, stages, size, size, inputs, outputs, self._pushed, scratch, kernels)

    def _tile_bytes(self, operator: int, stages: Sequence[Stage]) -> int:
        """The working memory of an operator that computes the one before too, for the most columns of a call."""
        facts, result = self.rows.operators[operator], self.rows.graph.ops[operator].writes[0]
        calls = (s for stage in stages for s in stage.steps if isinstance(s, KernelCall) and s.operator == operator)
        whole = 0, self.rows.shape(result).columns
        columns = max((right - left for left, right in (call.columns or whole for call in calls)), default=1)
        return tile_bytes(self.rows, facts, columns)

    @cached_property
    def _steps(self) -> str:
        """What follows the tables and parameters of operators."""
        return self.source[max(self.source.rfind("_params op_"), 0) :]

    @cached_property
    def _pushed(self) -> bool:
        return "_push_row(" in self.header

    def _one(self, pattern: str, text: str) -> re.Match[str]:
        match = re.search(pattern, text, re.MULTILINE | re.DOTALL)
        if match is None:
            raise UnreadSourceError(f"nothing is like {pattern}")
        return match

    def _stage(self, number: int) -> Stage:
        body = self._one(rf"^static void stage_{number}\([^)]*\)\n\{{\n(.*?)^\}}", self._steps)[1]
        if f"stage_{number}_steps(" in body:
            forms = list(self._table(number, body).steps())
        else:
            statements = StatedStatements(self.operators, self.offsets, self._at_value)
            forms = list(statements.forms([line.strip() for line in body.splitlines()]))
        operators = list(dict.fromkeys(form.operator for form in forms if form.operator >= 0))
        facts = stage_operators(self.rows, operators, 1, backward=False)
        tiled = _tiled(facts, forms)
        backward = _is_backward([form for form in forms if form.operator not in tiled])
        return Stage(tuple(operators), tuple(_StatedSteps(self, facts, tiled, backward).steps(forms)))

    def _at_value(self, tensor: int) -> int:
        """Where the value begins that a tensor is."""
        return self.offsets[f"AT_{self.rows.values[self.rows.value_of[tensor]].tensors[0]}"]

    def _table(self, number: int, body: str) -> StepTable:
        steps = self._one(rf"^static void stage_{number}_steps\(.*?^\}}", self._steps)[0]
        cases, counters = [], dict[int, tuple[int, int]]()
        for case in _CASE.findall(steps):
            operator = ARRIVAL if "(const char *)row" in case else self._operator_of(case)
            cases.append((operator, self._places(operator), "s->columns" in case, "s->width" in case))
            for counter, position in _COUNTED.findall(case):
                counters[int(counter)] = operator, int(position)
        begun = counted_from(body) or counted_from(self._steps, progress=True)
        table = StepTable(counted={counters[i]: begun[i] for i in range(len(counters))})
        fields = self._one(rf"^struct step_{number} \{{.*?^\}};", self._steps)[0]
        listed = 4 + 2 * (" left;" in fields) + 2 * (" width;" in fields)
        table.forms = [_form(row, cases, listed) for row in self._rows(f"steps_{number}")]
        table.order = [row[0] for row in self._rows(f"order_{number}")]
        table.runs = [OrderRun(row[0], row[1], row[2]) for row in self._rows(f"runs_{number}")]
        if self._pushed and not number:
            table.pushes = [row[0] for row in self._rows(f"pushes_{number}")]
        return table

    def _places(self, operator: int) -> int:
        """How many operands and results an operator has."""
        if operator == ARRIVAL:
            return 3
        return len(self.operators[operator].operands) + len(self.operators[operator].results)

    def _rows(self, name: str) -> Iterator[list[int]]:
        """The numbers of a table, in brackets or one by one."""
        body = self._one(rf"^static const [\w ]+ {name}\[\d+\](?:\[3\])? = \{{[^\n]*\n(.*?)^\}};", self._steps)[1]
        for row in re.findall(r"\{[^{}]*(?:\{[^{}]*\})?[^{}]*\}|-?\d+", body):
            yield [int(n) for n in re.findall(r"-?\d+", row)]

    def _operator_of(self, text: str) -> int:
        """The operator that a call names, or a comment where nothing is called."""
        if named := re.search(r"\bop_(\d+)", text):
            return int(named[1])
        return StatedStatements(self.operators, self.offsets, self._at_value).titled(text)


def _form(row: Sequence[int], cases: Sequence[tuple[int, int, bool, bool]], numbers: int) -> StepForm:
    operator, places, parts, tiles = cases[row[0]] if row[0] < len(cases) else (SHIFT, 3, False, False)
    columns, held = (row[4], row[5]) if parts else None, (row[6], row[7]) if tiles else None
    return StepForm(operator, row[1], row[2], row[3], tuple(row[numbers : numbers + places]), columns, held)


def _is_backward(forms: Sequence[StepForm]) -> bool:
    """Whether the last columns come first, or addresses fall from the first step of each operator to its last."""
    if part := next((form.columns for form in forms if form.columns), None):
        return part[0] > 0
    ends: dict[tuple[int, int], tuple[int, int]] = {}
    for form in forms:
        for position, place in enumerate(form.places if form.operator >= 0 else ()):
            first, _ = ends.get((form.operator, position), (place, place))
            ends[form.operator, position] = first, place
    return sum(last - first for first, last in ends.values()) < 0


def _tiled(facts: Mapping[int, StageOperator], forms: Sequence[StepForm]) -> set[int]:
    """The operators that make tiles: those of whose results others hold some columns."""
    makers = {result[1]: number for number, operator in facts.items() for result in operator.results}
    return {makers[facts[form.operator].uses[0].tensor] for form in forms if form.held}


@dataclass
class _StatedSteps:
    """Gives forms of a stage their rows: each operator computes the rows behind, or before, those that it has."""

    plan: StatedPlan
    facts: Mapping[int, StageOperator]
    tiled: set[int]
    backward: bool

    def steps(self, forms: Sequence[StepForm]) -> Iterator[Step]:
        rows = self.plan.rows
        done, tiles = dict.fromkeys(self.facts, 0), list[StepForm]()
        for form in forms:
            if form.operator in self.tiled:
                tiles.append(form)
                continue
            if tiles and form.operator < 0:
                raise UnreadSourceError("between tiles and what reads them is another step")
            if form.operator == SHIFT:
                to, address, size = form.places[:3]
                value = rows.value_of[form.places[3]] if len(form.places) > 3 else 0
                yield ValueShift(value, address, to, size)
            elif form.operator == ARRIVAL:
                yield RowsArrival(rows.value_of[rows.graph.inputs[0]], form.places[0], form.places[2])
            else:
                yield from self._chain(tiles, self._call(form, self.facts[form.operator], done))
                tiles = []

    def _chain(self, tiles: Sequence[StepForm], last: KernelCall) -> Iterator[KernelCall]:
        """The calls that make tiles, and the last one, from whose rows theirs follow."""
        calls = [last]
        for form in reversed(tiles):
            facts, reader = self.facts[form.operator], calls[0]
            window = self.facts[reader.operator].uses[0].window
            if window is None or reader.reads[0].tensor != facts.results[0][1]:
                raise UnreadSourceError(f"a tile of op {form.operator} is not what op {reader.operator} reads")
            first = min(max(reader.writes[0].first * window.rows.stride - window.rows.before, 0), facts.shape.rows)
            calls.insert(0, self._placed(form, facts, first))
        yield from calls

    def _call(self, form: StepForm, facts: StageOperator, done: dict[int, int]) -> KernelCall:
        extent, before = facts.shape.rows, done[form.operator]
        first = extent - before - form.computed if self.backward else before
        call = self._placed(form, facts, first)
        columns = call.columns
        ended = columns is None or (columns[0] == 0 if self.backward else columns[1] == facts.shape.columns)
        done[form.operator] += form.computed if ended else 0
        return call

    def _placed(self, form: StepForm, facts: StageOperator, first: int) -> KernelCall:
        """A call that computes rows from `first` on."""
        columns = (form.columns[0], sum(form.columns)) if form.columns else None
        held = form.held or (0, 0)
        reads = []
        for position, (use, place) in enumerate(zip(facts.uses, form.places, strict=False)):
            rows, above = (form.rows, form.above) if not position else _rows_read(use, first, form.computed)
            reads.append(RowsRead(use.tensor, use.value, first, rows, above, place, *held))
        writes = tuple(
            RowsWritten(tensor, value, first, form.computed, place)
            for (value, tensor, _), place in zip(facts.results, form.places[len(reads) :], strict=True)
        )
        scratch = self.plan.offsets.get(f"SCRATCH_{form.operator}", -1)
        return KernelCall(form.operator, tuple(reads), writes, columns, scratch)


def _rows_read(use: OperandUse, first: int, count: int) -> tuple[int, int]:
    """How many rows of an operand some rows of a result read, and how many rows of their window lie above the map."""
    if use.window is None:
        return use.shape.rows, 0
    top, end = use.window.rows.read(first, first + count)
    end = min(end, use.shape.rows)
    return max(end - min(max(top, 0), use.shape.rows), 0), max(-top, 0)
