"""Writes a stage that goes by rows: loops over the rows of one operator, or tables of steps for several."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from modelplan.plain_c.writing.c_text import filled
from modelplan.plain_c.writing.step_tables import ARRIVAL, SHIFT, StepForm, StepTable
from modelplan.primitives.lazy_records import dataclass

#: Writes the calls of an operator's kernels: its number, the addresses of operands and results, rows, rows above, rows
#: computed, and the first computed column with their number, if that is not all; of a tile behind them the first column
#: of the operand that is there, and their number.
KernelCalls = Callable[[int, Sequence[str], Sequence[str], Sequence[str] | None], list[str]]


#: A table by its sort, and all that is in it.
TableKey = tuple[Any, ...]


@dataclass(frozen=True)
class StageText:
    """The text of stage `number` of a plan with so many bytes of `ram`; `titles` say what each operator is.

    All names begin with `prefix`. `owners` are the stages that define the tables which several stages have.
    """

    prefix: str
    number: int
    table: StepTable
    calls: KernelCalls
    titles: dict[int, str]
    ram: int
    element: str = "int8_t"
    owners: Mapping[TableKey, int] = field(default_factory=dict)

    @property
    def progress_bytes(self) -> int:
        """The bytes of what is remembered from one row to the next."""
        if not self.table.pushes:
            return 0
        counted = len(self.table.counted) * (2 if self._counters == "int16_t" else 4)
        return 4 + counted + -counted % 4

    @property
    def _counters(self) -> str:
        """The type of the addresses that are counted on; those that are remembered are short where they can be."""
        return "int16_t" if self.table.pushes and self.ram <= 1 << 15 else "int32_t"

    @property
    def table_bytes(self) -> int:
        """The bytes of the tables of steps."""
        if self._is_loop:
            return 0
        return sum(size for sort, size in self._sizes().items() if self._owner(sort) == self.number)

    def _sizes(self) -> dict[str, int]:
        """The bytes of each of its tables."""
        table, far = self.table, 2 if self._far < 1 << 15 else 4
        row = 1 + len(self._fields()) * (1 if self._many < 1 << 8 else 2)
        row += -row % far + self._width * far
        index = 1 if len(table.forms) < 1 << 8 else 2
        sizes = {"steps": row * len(table.forms), "order": index * len(table.order), "runs": 6 * len(table.runs)}
        return {**sizes, "pushes": len(table.pushes)}

    @cached_property
    def keys(self) -> dict[str, TableKey]:
        """What is in each of its tables; none where it is written without tables."""
        if self._is_loop:
            return {}
        table, types = self.table, (self._small, self._address, *self._fields(), self._width)
        contents: dict[str, TableKey] = {
            "steps": (*types, self._rows),
            "order": (self._index, *table.order),
            "runs": tuple(table.runs),
            "pushes": (len(table.runs) < 256, *table.pushes),
        }
        return {sort: (sort, *content) for sort, content in contents.items()}

    def _owner(self, sort: str) -> int:
        return self.owners.get(self.keys[sort], self.number)

    def _name(self, sort: str) -> str:
        """The name of one of its tables, or of the type of a step."""
        if sort == "step":
            return f"{self.prefix}_step_{self._owner('steps')}"
        return f"{self.prefix}_{sort}_{self._owner(sort)}"

    @property
    def _function_name(self) -> str:
        return f"{self.prefix}_stage_{self.number}"

    @cached_property
    def _width(self) -> int:
        """The most addresses of a step."""
        return max(len(form.places) for form in self.table.forms)

    @property
    def _small(self) -> str:
        """The type of numbers of rows and columns."""
        return "uint8_t" if self._many < 1 << 8 else "uint16_t"

    @property
    def _address(self) -> str:
        """The type of places and distances."""
        return "int16_t" if self._far < 1 << 15 else "int32_t"

    @property
    def _index(self) -> str:
        """The type of the number of a step."""
        return "uint8_t" if len(self.table.forms) < 256 else "uint16_t"

    def _fields(self) -> list[str]:
        """The numbers of rows and columns of a step, by their names in C."""
        columns = ["left", "columns"] if self._columns else []
        return ["rows", "above", "computed", *columns, *(["first", "width"] if self._tiles else [])]

    @cached_property
    def _is_loop(self) -> bool:
        """Whether loops are shorter than tables: of a single operator."""
        operators = {form.operator for form in self.table.forms}
        short = all(run.count <= 2 for run in self.table.runs) and not self._columns
        return len(operators) == 1 and not self.table.pushes and short

    @cached_property
    def _many(self) -> int:
        """The largest number of rows or columns."""
        forms = self.table.forms
        counts = ((f.rows, f.above, f.computed, *(f.columns or ()), *(f.held or ())) for f in forms)
        return max((n for count in counts for n in count), default=0)

    @cached_property
    def _far(self) -> int:
        """The farthest place or distance."""
        return max(abs(place) for form in self.table.forms for place in form.places)

    def text(self) -> str:
        """The definitions of the stage, its function last.

        Raises:
            ValueError: its tables do not give its steps; never to be seen.
        """
        self.table.check()
        if self._is_loop:
            return "\n".join(self._loops())
        return "\n\n".join(["\n".join(self._tables()), "\n".join(self._steps()), "\n".join(self._function())])

    def _counter(self, key: tuple[int, int]) -> str:
        return f"at[{list(self.table.counted).index(key)}]"

    def _beginning(self, indent: str = "    ") -> list[str]:
        """The declaration of the addresses that are counted on."""
        if not self.table.counted:
            return []
        first = ", ".join(str(place) for place in self.table.counted.values())
        return [f"{indent}int32_t at[{len(self.table.counted)}] = {{{first}}};"]

    def _loops(self) -> Iterator[str]:
        """A function with a loop for each run."""
        table = self.table
        yield f"STAGE void {self._function_name}(void)"
        yield "{"
        yield f"    /* {self.titles[table.forms[0].operator]} */"
        yield from self._beginning()
        for run in table.runs:
            indent = "        " if run.times > 1 else "    "
            if run.times > 1:
                yield f"    for (int32_t n = 0; n < {run.times}; n++) {{"
            for number in table.order[run.first : run.first + run.count]:
                for line in self._listed(table.forms[number]):
                    yield indent + line
            if run.times > 1:
                yield "    }"
        yield "}"

    def _listed(self, form: StepForm) -> list[str]:
        lines, places = [], []
        for position, place in enumerate(form.places):
            key = form.operator, position
            if key in self.table.counted:
                places.append(self._counter(key))
                if place:
                    lines.append(f"{places[-1]} {'+' if place > 0 else '-'}= {abs(place)};")
            else:
                places.append(str(place))
        numbers = str(form.rows), str(form.above), str(form.computed)
        columns = (str(form.columns[0]), str(form.columns[1])) if form.columns else None
        return lines + self.calls(form.operator, places, numbers, columns)

    @cached_property
    def _calls(self) -> list[tuple[int, bool, bool]]:
        """The calls of the stage by their number in its tables; what hands over rows comes behind, shifts last."""
        used = {form.call for form in self.table.forms if form.operator != SHIFT}
        return sorted(used, key=lambda call: (call[0] == ARRIVAL, call))

    @cached_property
    def _columns(self) -> bool:
        return any(form.columns for form in self.table.forms)

    @cached_property
    def _tiles(self) -> bool:
        return any(form.held for form in self.table.forms)

    def _tables(self) -> Iterator[str]:
        """Steps, their order and the runs of it, but for those that a stage before has too."""
        table = self.table
        for sort, lines in (
            ("steps", self._step_lines()),
            ("order", _list_lines(f"{self._index} {self._name('order')}", table.order)),
            ("runs", self._run_lines()),
            ("pushes", self._push_lines()),
        ):
            if self._owner(sort) == self.number:
                yield from lines

    def _step_lines(self) -> Iterator[str]:
        step, table = self._name("step"), self.table
        yield f"/* Steps of stage {self.number}: which operator, rows that it reads, rows above the map, rows that it"
        yield " * computes, and where operands and results are, or how far behind those of the last such step. */"
        yield f"struct {step} {{"
        yield "    uint8_t call;"
        yield from (f"    {self._small} {name};" for name in self._fields())
        yield f"    {self._address} at[{self._width}];"
        yield "};"
        named = f"/* {{call, {', '.join(self._fields())}, {{at}}}} */"
        yield f"static const struct {step} {self._name('steps')}[{len(table.forms)}] = {{ {named}"
        yield from filled(self._rows)
        yield "};"

    def _run_lines(self) -> Iterator[str]:
        runs = self.table.runs
        yield f"static const uint16_t {self._name('runs')}[{len(runs)}][3] = {{ /* first of the order, steps, times */"
        yield from filled(f"{{{run.first}, {run.count}, {run.times}}}" for run in runs)
        yield "};"

    def _push_lines(self) -> Iterator[str]:
        if self.table.pushes:
            index = "uint8_t" if len(self.table.runs) < 256 else "uint16_t"
            yield from _list_lines(f"{index} {self._name('pushes')}", self.table.pushes, " /* the run of each row */")

    @cached_property
    def _rows(self) -> tuple[str, ...]:
        """The forms of steps as the rows of their table."""
        calls = {call: number for number, call in enumerate(self._calls)}
        return tuple(self._row(calls.get(form.call, len(calls)), form) for form in self.table.forms)

    def _row(self, call: int, form: StepForm) -> str:
        columns = list(form.columns or (0, 0)) if self._columns else []
        columns += list(form.held or (0, 0)) if self._tiles else []
        numbers = ", ".join(map(str, (call, form.rows, form.above, form.computed, *columns)))
        places = ", ".join(map(str, (*form.places, *[0] * (self._width - len(form.places)))))
        return f"{{{numbers}, {{{places}}}}}"

    def _steps(self) -> Iterator[str]:
        """The function that performs a part of the order."""
        table = self.table
        counters = f", {self._counters} *at" if table.counted else ""
        row = f", const {self.element} *row" if table.pushes else ""
        yield f"static void {self._function_name}_steps(const {self._index} *order, int32_t count{counters}{row})"
        yield "{"
        if table.pushes and ARRIVAL not in {operator for operator, _, _ in self._calls}:
            yield "    (void)row;"
        yield "    for (int32_t i = 0; i < count; i++) {"
        yield f"        const struct {self._name('step')} *s = &{self._name('steps')}[order[i]];"
        yield "        switch (s->call) {"
        for number, call in enumerate(self._calls):
            yield f"        case {number}: {{"
            for line in self._case(call):
                yield f"            {line}"
            yield "            break;"
            yield "        }"
        yield "        default:"
        if any(form.operator == SHIFT for form in table.forms):
            yield "            /* what is kept of a value moves, to make room for its next rows */"
            yield "            move_bytes(RAM + s->at[0], RAM + s->at[1], s->at[2]);"
        yield "            break;"
        yield "        }"
        yield "    }"
        yield "}"

    def _case(self, call: tuple[int, bool, bool]) -> Iterator[str]:
        operator, by_columns, of_tiles = call
        places = list[str]()
        count = next(len(form.places) for form in self.table.forms if form.operator == operator)
        yield f"/* {self.titles.get(operator, 'bytes of the row that the caller hands over')} */"
        for position in range(count):
            key = operator, position
            step = f"s->at[{position}]"
            places.append(self._counter(key) if key in self.table.counted else step)
            if key in self.table.counted:
                short = self._counters == "int16_t"
                yield f"{places[-1]} = (int16_t)({places[-1]} + {step});" if short else f"{places[-1]} += {step};"
        if operator == ARRIVAL:
            source = f"(const char *)row + {places[1]}"
            yield f"(void)memcpy(RAM + {places[0]}, {source}, (size_t){places[2]});"
            return
        columns = ["s->left", "s->columns", *(["s->first", "s->width"] if of_tiles else [])] if by_columns else None
        yield from self.calls(operator, places, ("s->rows", "s->above", "s->computed"), columns)

    def _function(self) -> Iterator[str]:
        """What runs the stage; where rows are handed over, what starts it and what takes a row."""
        table, runs = self.table, self._name("runs")
        at = ", at" if table.counted else ""
        if table.pushes:
            yield from self._pushing()
            return
        yield f"STAGE void {self._function_name}(void)"
        yield "{"
        yield from self._beginning()
        yield f"    for (int32_t r = 0; r < {len(table.runs)}; r++) {{"
        yield f"        for (int32_t n = 0; n < {runs}[r][2]; n++) {{"
        order = f"{self._name('order')} + {runs}[r][0]"
        yield f"            {self._function_name}_steps({order}, {runs}[r][1]{at});"
        yield "        }"
        yield "    }"
        yield "}"

    def _pushing(self) -> Iterator[str]:
        table, progress = self.table, f"{self.prefix}_progress"
        yield "/* How far the rows have come. */"
        yield "static struct {"
        yield "    int32_t rows;"
        if table.counted:
            yield f"    {self._counters} at[{len(table.counted)}];"
        yield f"}} {progress};"
        yield ""
        yield f"static void {self.prefix}_begin(void)"
        yield "{"
        yield f"    {progress}.rows = 0;"
        for number, place in enumerate(table.counted.values()):
            yield f"    {progress}.at[{number}] = {place};"
        yield "}"
        yield ""
        yield f"STAGE void {self._function_name}(const {self.element} *row)"
        yield "{"
        yield f"    if ({progress}.rows < {len(table.pushes)}) {{"
        yield f"        const uint16_t *run = {self._name('runs')}[{self._name('pushes')}[{progress}.rows]];"
        at = f", {progress}.at" if table.counted else ""
        yield f"        {self._function_name}_steps({self._name('order')} + run[0], run[1]{at}, row);"
        yield "    }"
        yield f"    {progress}.rows++;"
        yield "}"


def _list_lines(name: str, numbers: Sequence[int], words: str = "") -> Iterator[str]:
    """The definition of a table of numbers, given by its type and name."""
    yield f"static const {name}[{len(numbers)}] = {{{words}"
    yield from filled(map(str, numbers))
    yield "};"
