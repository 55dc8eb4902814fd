"""Writes a plan as C: a source and a header, with one function for each stage."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import prod
from typing import Any

from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.model.c_program import CProgram, KernelCall, RowsArrival, Stage, Step, ValueShift
from modelplan.plain_c.kernel_records import (
    C_TYPES,
    CKernel,
    ConstTable,
    COperator,
    StateReference,
    const_table,
    rows_of,
)
from modelplan.plain_c.kernel_sources import (
    all_sources,
    kernel_name,
    kernels_checksum,
    parameter_names,
    table_names,
    takes_scratch,
)
from modelplan.plain_c.libraries.kernel_libraries import library_includes
from modelplan.plain_c.operator_calls.reading import numbers_of
from modelplan.plain_c.operator_calls.state_layout import StateLayout, state_layout
from modelplan.plain_c.rows.row_graph import element_count
from modelplan.plain_c.writing.c_text import aligned_columns, check_numbers, comment, number, table_text
from modelplan.plain_c.writing.plan_data import plan_comment
from modelplan.plain_c.writing.stage_writing import StageText, TableKey
from modelplan.plain_c.writing.state_writing import reset_function, state_memory, state_pointer
from modelplan.plain_c.writing.step_tables import step_table
from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.tensor_names import name_forms
from modelplan.primitives.version import __version__
from modelplan.runtimes.tflm.file import FileModel, FileTensor
from modelplan.runtimes.tflm.kernels.calls import ELEMENT_BYTES
from modelplan.runtimes.tflm.stated_network import StatedNetwork

#: What the numbers of rows in a call of a kernel are: those handed over, those above the map, those to compute.
_ROW_NUMBERS = ("rows", "above", "computed")
#: The most statements of a stage that are written without a loop or a table.
_MOST_STATEMENTS = 4


@dataclass(frozen=True, slots=True)
class CSizes:
    """The bytes of static memory of a plan as C, and those of its tables."""

    ram: int
    tables: int


@dataclass(frozen=True, slots=True)
class CFiles:
    """The text of a C source, and that of its header."""

    source: str
    header: str


@dataclass(frozen=True, slots=True)
class CNames:
    """What everything public is called: `prefix`, the header's file name, and the section of the buffer, if any.

    With `traced`, `seen(tensor, values, pixels, bytes of a pixel)` is called for all that a step computes.
    """

    prefix: str
    header: str
    section: str = ""
    traced: bool = False

    @property
    def macro(self) -> str:
        """The prefix of macros."""
        return self.prefix.upper()


def c_files(model: FileModel, operators: Mapping[int, COperator], program: CProgram, names: CNames) -> CFiles:
    """A plan of a model as C.

    Raises:
        ModelError: an input or output of the model has a type that C has no kernels for, or is a constant.
    """
    writer = _Writer(model, operators, program, names)
    return CFiles(writer.source(), writer.header())


def c_sizes(model: FileModel, operators: Mapping[int, COperator], program: CProgram) -> CSizes:
    """What the C of a plan takes, of which no text is written.

    Raises:
        ModelError: an input or output of the model has a type that C has no kernels for, or is a constant.
    """
    writer = _Writer(model, operators, program, CNames("net", "net.h"))
    writer.check_literals()
    return CSizes(program.nbytes + writer.progress + writer.kept, writer.steps + writer.constants)


@dataclass
class _Writer:
    model: FileModel
    operators: Mapping[int, COperator]
    program: CProgram
    names: CNames
    tables: dict[tuple[str, bytes], str] = field(default_factory=dict)
    taken: Counter[str] = field(default_factory=Counter)
    definitions: list[str] = field(default_factory=list)
    _structs: dict[tuple[str, str], str] = field(default_factory=dict)
    _parameters_of: dict[tuple[int, int], str] = field(default_factory=dict)
    _tables_of: dict[tuple[int, int], dict[str, str]] = field(default_factory=dict)

    @property
    def progress(self) -> int:
        """The bytes of what is remembered from one row that the caller hands over to the next."""
        return sum(text.progress_bytes for text in self.texts.values())

    @property
    def steps(self) -> int:
        """The bytes of all tables of steps."""
        return sum(text.table_bytes for text in self.texts.values())

    @property
    def kept(self) -> int:
        """The bytes of what is remembered from run to run, and of the flag that it has its first values."""
        return self.state.nbytes + 1 if self.state.nbytes else 0

    @property
    def constants(self) -> int:
        """The bytes of all tables of operators."""
        tables = {(v.ctype, v.numbers.tobytes()) for v in self._arguments() if isinstance(v, ConstTable)}
        return sum(len(numbers) for _, numbers in tables)

    def _arguments(self) -> Iterator[int | float | ConstTable | StateReference]:
        """The operands and parameters of all kernels that are called."""
        for _, _, kernel in self._numbered():
            yield from (*kernel.operands, *kernel.parameters.values())
        yield from self._constants.values()

    @cached_property
    def _constants(self) -> dict[int, ConstTable]:
        """The outputs that are constants."""
        ends = zip(self.model.subgraphs[0].outputs, self.program.outputs, strict=True)
        numbers = {t: numbers_of(self.model, self.tensors[t]) for t, value in ends if value < 0}
        return {t: const_table("constant", self._ctype(t), v) for t, v in numbers.items() if v is not None}

    def check_literals(self) -> None:
        """Checks that C has a type for each tensor, and a literal for each number."""
        for tensor in (t for value in self.program.values for t in value.tensors):
            self._ctype(tensor)
        for argument in self._arguments():
            if isinstance(argument, (float, ConstTable)):
                check_numbers(argument.numbers if isinstance(argument, ConstTable) else argument)

    @cached_property
    def state(self) -> StateLayout:
        """What the network remembers."""
        return state_layout(self.model)

    @property
    def tensors(self) -> Sequence[FileTensor]:
        """The tensors of the main subgraph."""
        return self.model.subgraphs[0].tensors

    def source(self) -> str:
        used = [("inlining", "int8"), *((k.source, k.variant) for _, _, k in self._numbered())]
        used += [("turned", self._turn_variant(t)) for t in self._turned]
        if any(isinstance(step, ValueShift) for stage in self.program.stages for step in stage.steps):
            used.append(("move_bytes", "int8"))
        parameters = [self._parameters(index, number, k) for index, number, k in self._numbered()]
        stages = [self._stage(number, stage) for number, stage in enumerate(self.program.stages) if self._runs(stage)]
        interface = list(self._interface())
        kernels = all_sources(used)
        parts = [
            self._beginning(kernels),
            *kernels,
            self._map(),
            self._memory(),
            *(state_memory(self.state, self.names.prefix) if self.state.nbytes else []),
            *self.definitions,
            *parameters,
            *stages,
            *interface,
            "\n".join(["#undef RAM", *(["#undef STATE"] if self.state.nbytes else [])]),
            *filter(None, [plan_comment(self.program, self._asked)]),
        ]
        return "\n\n".join(parts) + "\n"

    def _numbered(self) -> Iterator[tuple[int, int, CKernel]]:
        """The kernels that are called, with the number of the operator and theirs in it."""
        for index in self._called:
            for position, kernel in enumerate(self.operators[index].kernels):
                if position not in self._parts_in_place.get(index, ()):
                    yield index, position, kernel

    @cached_property
    def _called(self) -> list[int]:
        """The operators that run, ascending; views whose result has the operand's place do not."""
        calls = [s for stage in self.program.stages for s in stage.steps if isinstance(s, KernelCall)]
        return sorted({s.operator for s in calls if s.operator not in self._skipped or not self._is_void(s)})

    def _runs(self, stage: Stage) -> bool:
        """Whether there is anything to do in a stage."""
        return any(not isinstance(s, KernelCall) or not self._is_void(s) for s in stage.steps)

    def _is_void(self, step: KernelCall) -> bool:
        """Whether nothing is to be done, since the result is the bytes of its operands in their place.

        What is looked at goes through all of them.
        """
        if step.operator not in self._skipped:
            return False
        operator = self.operators[step.operator]
        joined = len(self._parts_in_place.get(operator.index, ())) == len(operator.kernels) and not self.names.traced
        return joined or (operator.view and step.reads[0].address == step.writes[0].address)

    @cached_property
    def _skipped(self) -> set[int]:
        """The operators of whose steps some may be void."""
        return {i for i, operator in self.operators.items() if operator.view or operator.parts or not operator.kernels}

    def _beginning(self, kernels: Sequence[str]) -> str:
        name = comment(self.model.name.rsplit("/", 1)[-1])
        held = {self._ctype(t) for value in self.program.values for t in value.tensors}
        uses_floats = "float" in held | {table.ctype for table in self._constants.values()}
        uses_floats |= any("lrintf(" in text for text in kernels)
        lines = [
            f"/* {name} as plain C, written by modelplan {__version__}.",
            " *",
            f" * {self.program.nbytes + self.progress + self.kept} bytes of RAM, no allocation, no recursion.",
            " * The interface is described in the header.",
            " */",
            f'#include "{self.names.header}"',
            "",
            *(["#include <float.h>", "#include <math.h>"] if uses_floats else []),
            "#include <string.h>",
            *library_includes(self.program.kernels),
            "",
            *_one_release(),
        ]
        return "\n".join(lines)

    def _ctype(self, tensor: int) -> str:
        dtype = DTYPES[self.tensors[tensor].type]
        if dtype not in C_TYPES:
            raise ModelError(f"{self.model.name}: tensor {self.tensors[tensor].name!r} is of type {dtype}, not in C")
        return C_TYPES[dtype]

    def _map(self) -> str:
        """Where everything lies, as a comment, and as names of offsets."""
        rows = [("offset", "bytes", "holds")]
        order = sorted(self._held, key=lambda v: (self.program.values[v].offset, v))
        for v in order:
            value = self.program.values[v]
            part = (" again" if self._is_again(v) else "") + (f", {value.nbytes} in all" if value.slides else "")
            rows.append((str(value.offset), str(value.capacity), self._title(value.tensors[0]) + part))
        for index, address in self._scratch.items():
            rows.append((str(address), str(self.program.scratch[index]), f"scratch of op {index}"))
        lines = ["/* The buffer:", *(f" *   {line}" for line in aligned_columns(rows)), " */", "enum {"]
        offsets = [f"    {self._at(v)} = {self.program.values[v].offset}" for v in sorted(self._held)]
        offsets += [f"    {self.names.macro}_SCRATCH_{index} = {address}" for index, address in self._scratch.items()]
        return "\n".join([*lines, ",\n".join(offsets), "};"])

    @cached_property
    def _held(self) -> set[int]:
        """The values that are ever in the buffer."""
        held = {*self.program.inputs, *self.program.kept}
        for step in (step for stage in self.program.stages for step in stage.steps):
            if isinstance(step, KernelCall):
                held |= {read.value for read in step.reads} | {write.value for write in step.writes}
            else:
                held.add(step.value)
        return held

    @cached_property
    def _scratch(self) -> dict[int, int]:
        """Where the working memory of operators lies."""
        steps = (s for stage in self.program.stages for s in stage.steps if isinstance(s, KernelCall))
        return {s.operator: s.scratch for s in steps if s.scratch >= 0}

    @cached_property
    def _parts_in_place(self) -> dict[int, set[int]]:
        """For operators that join operands the parts that lie in the result already."""
        joins = {index for index, operator in self.operators.items() if operator.parts}
        calls = (s for stage in self.program.stages for s in stage.steps if isinstance(s, KernelCall)) if joins else ()
        return {
            s.operator: {
                kernel
                for kernel, (operand, offset) in enumerate(self.operators[s.operator].parts)
                if s.reads[operand].address == s.writes[0].address + offset
            }
            for s in calls
            if s.operator in joins
        }

    def _at(self, value: int) -> str:
        tensor = self.program.values[value].tensors[0]
        again = f"_{value}" if self._is_again(value) else ""
        return f"{self.names.macro}_AT_{tensor}{again}"

    def _is_again(self, value: int) -> bool:
        """Whether it is a tensor that another value is too."""
        tensor = self.program.values[value].tensors[0]
        return any(other.tensors[0] == tensor for other in self.program.values[:value])

    def _title(self, tensor: int) -> str:
        """A tensor by its number, what tells its name apart, and its shape."""
        shape = ", ".join(map(str, self.tensors[tensor].shape))
        return comment(f"{tensor} {self._short_names.get(tensor, self.tensors[tensor].name)} [{shape}]")

    @cached_property
    def _short_names(self) -> dict[int, str]:
        """The names of what is computed, as far as they tell it apart."""
        computed = sorted({t for value in self.program.values for t in value.tensors})
        forms = name_forms([self.tensors[t].name for t in computed])
        return {t: form[-1] for t, form in zip(computed, forms, strict=True)}

    def _memory(self) -> str:
        macro = self.names.macro
        dtypes = (DTYPES[self.tensors[t].type] for value in self.program.values for t in value.tensors)
        widest = max((4 if self._scratch else 1, *(ELEMENT_BYTES[d] for d in dtypes)))  # its multiple begins the buffer
        section = f'__attribute__((section("{self.names.section}")))' if self.names.section else ""
        memory = f"{self.names.prefix}_memory"
        plain = f"static int8_t {memory}[{macro}_RAM_BYTES] {macro}_SECTION;\n#define RAM {memory}"
        if widest > 1:
            kind = {2: "int16_t", 4: "int32_t", 8: "int64_t"}[widest]
            plain = (
                f"static union {{\n    int8_t bytes[{macro}_RAM_BYTES];\n    {kind} aligned;\n"
                f"}} {memory} {macro}_SECTION;\n#define RAM {memory}.bytes"
            )
        lines = [
            f"#ifdef {macro}_RAM",
            f"/* The caller names the memory: {macro}_RAM_BYTES bytes at a multiple of {widest}. */",
            f"#define RAM ((int8_t *)({macro}_RAM))",
            "#else",
            f"#ifndef {macro}_SECTION",
            f"#define {macro}_SECTION {section}".rstrip(),
            "#endif",
            plain,
            "#endif",
        ]
        return "\n".join(lines)

    def _table(self, index: int, table: ConstTable) -> str:
        """The name of a table, which is defined where it is new."""
        key = table.ctype, table.numbers.tobytes()
        if key not in self.tables:
            name = f"{self.names.prefix}_{table.name}_{index}"
            self.taken[name] += 1
            self.tables[key] = name if self.taken[name] == 1 else f"{name}_{self.taken[name]}"
            self.definitions.append(table_text(self.tables[key], table))
        return self.tables[key]

    def _parameters(self, index: int, position: int, kernel: CKernel) -> str:
        name = kernel_name(kernel.source, kernel.variant)
        fields, tables = (of(kernel.source, kernel.variant) for of in (parameter_names, table_names))
        numbers = {k: v for k, v in kernel.parameters.items() if not isinstance(v, ConstTable)}
        if set(fields) != set(numbers) or {*fields, *tables} != set(kernel.parameters):
            raise ModelError(f"kernel {name} has other parameters than {sorted(kernel.parameters)}")
        texts = [number(numbers[key], "float" if isinstance(numbers[key], float) else "int32_t") for key in fields]
        rows = [f"    {v}, /* {key} */" for key, v in zip(fields, texts, strict=True)]
        given = {key: kernel.parameters[key] for key in tables}
        self._tables_of[index, position] = {
            key: self._table(index, table) for key, table in given.items() if isinstance(table, ConstTable)
        }
        op = self.model.subgraphs[0].ops[index]
        results = ", ".join(self._short_names.get(t, self.tensors[t].name) for t in op.writes)
        title = comment(f"op {index} {op.kind}: {results}".rstrip(": "))
        body = "\n".join(rows)
        struct = self._structs.setdefault((name, body), self._struct(index, position))
        self._parameters_of[index, position] = struct
        if struct != self._struct(index, position):
            return f"/* {title}: as {struct} */"
        return f"/* {title} */\nstatic const struct {name}_params {struct} = {{\n{body}\n}};"

    @cached_property
    def texts(self) -> dict[int, StageText]:
        """The stages that are loops or tables, by their number."""
        stages = [(index, stage) for index, stage in enumerate(self.program.stages) if self._runs(stage)]
        owners: dict[TableKey, int] = {}
        tables = [(index, stage) for index, stage in stages if self._has_table(index, stage)]
        texts = {index: self._stage_text(index, stage, owners) for index, stage in tables}
        for index, text in texts.items():
            for key in text.keys.values():
                owners.setdefault(key, index)
        return texts

    def _has_table(self, index: int, stage: Stage) -> bool:
        """Whether a stage has more steps than are written one by one, or others than whole rows that are there."""
        if (self.program.pushed and not index) or len(stage.steps) > _MOST_STATEMENTS:
            return True
        return any(isinstance(step, KernelCall) and step.columns for step in stage.steps)

    def _stage_text(self, index: int, stage: Stage, owners: dict[TableKey, int]) -> StageText:
        pushed = self.program.pushed and not index
        steps: Sequence[Step] = stage.steps
        if not self._skipped.isdisjoint(stage.operators):
            steps = [s for s in steps if not (isinstance(s, KernelCall) and self._is_void(s))]
        table = step_table(steps, self._row_bytes if pushed else 0)
        titles = {k: self._call_title(k) for k in {form.operator for form in table.forms} if k >= 0}
        element = self._ctype(self.model.subgraphs[0].inputs[0]) if pushed else "int8_t"
        ram = self.program.nbytes
        return StageText(self.names.prefix, index, table, self._table_calls, titles, ram, element, owners)

    def _stage(self, index: int, stage: Stage) -> str:
        if index in self.texts:
            return self.texts[index].text()
        lines = [f"STAGE void {self.names.prefix}_stage_{index}(void)", "{"]
        for step in stage.steps:
            lines += [f"    {line}" for line in self.step_lines(step)]
        return "\n".join([*lines, "}"])

    @property
    def _row_bytes(self) -> int:
        """The bytes of a row that the caller hands over."""
        tensor = self.tensors[self.model.subgraphs[0].inputs[0]]
        return tensor.nbytes // rows_of(tensor.shape)

    def _struct(self, operator: int, position: int) -> str:
        """The name of the parameters of a kernel, where there are no equal ones before."""
        return f"{self.names.prefix}_op_{operator}" + (f"_{position}" if position else "")

    def _idle(self, operator: int) -> str:
        """A comment for an operator that has nothing to do."""
        return f"/* {self._call_title(operator)}: its bytes are in their place */"

    def _stage_call(self, index: int) -> list[str]:
        """The call of a stage, or comments that say why there is none."""
        stage = self.program.stages[index]
        if self._runs(stage):
            return [f"{self.names.prefix}_stage_{index}();"]
        return [self._idle(step.operator) for step in stage.steps if isinstance(step, KernelCall)]

    def _call_title(self, operator: int) -> str:
        kind, results = self.operators[operator].kind, self.operators[operator].results
        return f"{kind} -> {self._title(results[0].tensor)}" if results else kind

    def _table_calls(
        self, index: int, places: Sequence[str], rows: Sequence[str], columns: Sequence[str] | None
    ) -> list[str]:
        """The kernels of an operator at addresses that a table or a counter gives."""
        operator = self.operators[index]
        reads = [
            self._cast(o.tensor, f"RAM + {p}", const=True) for o, p in zip(operator.operands, places, strict=False)
        ]
        results = places[len(operator.operands) :]
        writes = [self._cast(o.tensor, f"RAM + {p}") for o, p in zip(operator.results, results, strict=True)]
        lines: list[str] = []
        for position in range(len(operator.kernels)):
            if position not in self._parts_in_place.get(index, ()):
                call = self._kernel_call(operator, position, reads, writes, rows, columns and columns[:2])
                lines += _in_block(_in_tile(call, columns))
        return [*lines, *self._seen(operator, writes, rows[2] if rows else "", columns)]

    def _seen(
        self, operator: COperator, writes: Sequence[str], computed: str, columns: Sequence[str] | None
    ) -> Iterable[str]:
        """Calls that look at what a step computed, where that is wanted."""
        for result, place in zip(operator.results, writes, strict=True):
            shape, nbytes = self.tensors[result.tensor].shape, result.rows * result.row_bytes
            pixel = nbytes // max(prod(shape[:-1]), 1)
            if self.names.traced and nbytes:
                whole = str(nbytes // pixel) if not operator.by_rows else f"{computed} * {result.row_bytes // pixel}"
                part = f"{computed} * {columns[1]}" if columns else whole
                yield f"seen({result.tensor}, {place}, {part}, {pixel});"

    def step_lines(self, step: Step) -> list[str]:
        if isinstance(step, ValueShift):
            place, source = self._place(step.value, step.to), self._place(step.value, step.address)
            return [f"move_bytes({place}, {source}, /* bytes */ {step.nbytes});"]
        if isinstance(step, RowsArrival):
            return [f"(void)memcpy({self._place(step.value, step.address)}, row, /* bytes */ {step.nbytes});"]
        if self._is_void(step):
            return [self._idle(step.operator)]
        operator = self.operators[step.operator]
        reads = [self._typed(r.tensor, r.value, r.address, const=True) for r in step.reads]
        writes = [self._typed(w.tensor, w.value, w.address) for w in step.writes]
        computed = str(step.writes[0].rows) if step.writes else ""
        lines = [f"/* {self._call_title(step.operator)} */"] if operator.kernels else []
        for position, kernel in enumerate(operator.kernels):
            rows: tuple[str, ...] = ()
            if operator.by_rows:
                first = step.reads[next(o for o in kernel.operands if isinstance(o, int))]
                rows = str(first.rows), str(first.above), computed
            if position not in self._parts_in_place.get(operator.index, ()):
                lines += _in_block(self._kernel_call(operator, position, reads, writes, rows))
        return [*lines, *self._seen(operator, writes, computed, None)]

    def _kernel_call(
        self,
        operator: COperator,
        position: int,
        reads: Sequence[str],
        writes: Sequence[str],
        rows: Sequence[str],
        columns: Sequence[str] | None = None,
    ) -> list[str]:
        """A call of a kernel, or a loop of calls for the maps of a batch.

        Tables are handed over in memory of the caller: constant addresses are numbers only where a program is linked
        to run at a fixed place, elsewhere whatever starts it has to write them, into RAM.

        `rows` are those that it reads, those above the map, and those that it computes; `columns` the first computed
        column and their number, where that is not all of a row.
        """
        kernel = operator.kernels[position]
        name, parameters = kernel_name(kernel.source, kernel.variant), self._parameters_of[operator.index, position]
        sources = [self._kernel_source(operator, kernel, operand, reads) for operand in kernel.operands]
        if isinstance(kernel.result, StateReference):
            target = state_pointer(kernel.result)
        else:
            target = self._of_batch(writes[kernel.result], operator.results[kernel.result].tensor, kernel)
        numbers = rows if operator.by_rows else map(str, kernel.whole)
        numbers = [f"/* {what} */ {n}" if n.isdigit() else n for what, n in zip(_ROW_NUMBERS, numbers, strict=True)]
        place = f"RAM + {self.names.macro}_SCRATCH_{operator.index}" if operator.index in self._scratch else "NULL"
        scratch = (place,) if takes_scratch(kernel.source, kernel.variant) else ()
        tables = self._tables_of[operator.index, position]
        lines = [*([f"struct {name}_tables q;"] if tables else []), *(f"q.{k} = {t};" for k, t in tables.items())]
        if columns:
            (left, count), counted = columns, element_count(operator)
            changed = [f"p.pad_left -= {left} * p.stride_width;", f"p.out_width = {count};"]
            if counted:
                pixel = self.tensors[operator.results[0].tensor].shape[-1]
                sources = [f"{source} + {left} * {pixel}" for source in sources]
                changed = [f"p.{counted} = {count} * {pixel};"]
            lines += [f"struct {name}_params p = {parameters};", *changed]
        given = ("&p" if columns else f"&{parameters}", *(["&q"] if tables else []))
        lines.append(f"{name}({', '.join((*given, *sources, *numbers, target, *scratch))});")
        if kernel.repeats == 1:
            return lines
        return [f"for (int32_t n = 0; n < {kernel.repeats}; n++) {{", *(f"    {line}" for line in lines), "}"]

    def _kernel_source(
        self, operator: COperator, kernel: CKernel, operand: int | ConstTable | StateReference, reads: Sequence[str]
    ) -> str:
        """What a kernel is given for an operand: a table, the state, or the map of the batch that it reads."""
        if isinstance(operand, ConstTable):
            name, size = self._table(operator.index, operand), operand.numbers.size // kernel.repeats
            return name if kernel.repeats == 1 else f"{name} + n * {size}"
        if isinstance(operand, StateReference):
            return state_pointer(operand)
        return self._of_batch(reads[operand], operator.operands[operand].tensor, kernel)

    def _of_batch(self, pointer: str, tensor: int, kernel: CKernel) -> str:
        """The pointer to map n of a batch, or to the only map."""
        if kernel.repeats == 1:
            return pointer
        return f"{pointer} + n * {prod(self.tensors[tensor].shape) // kernel.repeats}"

    def _place(self, value: int, address: int) -> str:
        more = address - self.program.values[value].offset
        return f"RAM + {self._at(value)}" + (f" {'+' if more > 0 else '-'} {abs(more)}" if more else "")

    def _typed(self, tensor: int, value: int, address: int, *, const: bool = False) -> str:
        """An address of a value as a pointer to a tensor's elements."""
        return self._cast(tensor, self._place(value, address), const=const)

    def _cast(self, tensor: int, pointer: str, *, const: bool = False) -> str:
        """A place in the buffer as a pointer to a tensor's elements."""
        ctype, q = self._ctype(tensor), "const " if const else ""
        return pointer if ctype == "int8_t" else f"({q}{ctype} *)({q}void *)({pointer})"

    def _interface(self) -> Iterator[str]:
        """The public functions."""
        for name, tensor, value, const in self._ends():
            q = "const " if const else ""
            place = self._table(tensor, self._constants[tensor]) if value < 0 else ""
            place = place or self._typed(tensor, value, self.program.values[value].offset, const=const)
            if not (self.program.pushed and name == "input"):
                yield f"{q}{self._ctype(tensor)} *{self.names.prefix}_{name}(void)\n{{\n    return {place};\n}}"
        calls = [
            line for i in range(int(self.program.pushed), len(self.program.stages)) for line in self._stage_call(i)
        ]
        calls = [*self._turns("input"), *calls, *self._turns("output")]
        if self.state.nbytes:
            yield reset_function(self.state, self.names.prefix)
        if self.program.pushed:
            yield from self._pushing(calls)
            return
        if self.state.nbytes:
            calls = [f"if ({self.names.prefix}_is_set == 0u) {{", f"    {self.names.prefix}_reset();", "}", *calls]
        body = "\n".join(f"    {call}" for call in calls)
        yield f"void {self.names.prefix}_invoke(void)\n{{\n{body}\n}}"

    @property
    def _asked(self) -> Mapping[str, Any]:
        """What the network was asked for, where no .tflite file holds it."""
        return self.model.asked if isinstance(self.model, StatedNetwork) else {}

    @property
    def _turned(self) -> frozenset[int]:
        """The ends whose channels stand first where the caller writes and reads them."""
        return self.model.turned if isinstance(self.model, StatedNetwork) else frozenset()

    def _turns(self, side: str) -> Iterator[str]:
        """Calls that bring the inputs to the order in which they are read, or outputs to that of the caller."""
        for name, tensor, value, _ in self._ends():
            if tensor in self._turned and name.startswith(side) and value >= 0:
                batches, *places, channels = self.tensors[tensor].shape
                lines, columns = (channels, prod(places)) if side == "input" else (prod(places), channels)
                place = self._typed(tensor, value, self.program.values[value].offset)
                call = f"{kernel_name('turned', self._turn_variant(tensor))}({place}, {lines}, {columns});"
                if batches > 1:
                    raise ModelError(f"{self.model.name}: {self._title(tensor)} has several maps; see --layout nhwc")
                yield call

    def _turn_variant(self, tensor: int) -> str:
        return DTYPES[self.tensors[tensor].type].removesuffix("32")

    def _pushing(self, calls: Sequence[str]) -> Iterator[str]:
        """The functions that take the input row by row."""
        prefix = self.names.prefix
        tensor = self.model.subgraphs[0].inputs[0]
        rows = f"{self.names.macro}_ROWS"
        reset = f"    if ({prefix}_is_set == 0u) {{\n        {prefix}_reset();\n    }}\n" if self.state.nbytes else ""
        yield f"void {prefix}_start(void)\n{{\n{reset}    {prefix}_begin();\n}}"
        lines = [
            f"int {prefix}_push_row(const {self._ctype(tensor)} *row)",
            "{",
            f"    if ({prefix}_progress.rows < {rows}) {{",
            f"        {prefix}_stage_0(row);",
            f"        if ({prefix}_progress.rows == {rows}) {{",
            *(f"            {call}" for call in calls),
            "        }",
            "    }",
            f"    return {prefix}_progress.rows == {rows};",
            "}",
        ]
        yield "\n".join(lines)

    def _ends(self) -> Iterator[tuple[str, int, int, bool]]:
        """Name, tensor, value and whether it is only read, of each input and output."""
        main = self.model.subgraphs[0]
        sides = (
            ("input", main.inputs, self.program.inputs, False),
            ("output", main.outputs, self.program.outputs, True),
        )
        for side, tensors, values, const in sides:
            for position, (tensor, value) in enumerate(zip(tensors, values, strict=True)):
                yield (side if len(tensors) == 1 else f"{side}_{position}"), tensor, value, const

    def header(self) -> str:
        macro = self.names.macro
        constants, functions = self._declarations()
        lines = [
            f"/* {comment(self.model.name.rsplit('/', 1)[-1])} as plain C, written by modelplan {__version__}.",
            " *",
            *(f" * {line}" for line in self._usage()),
            " */",
            f"#ifndef {macro}_H",
            f"#define {macro}_H",
            "",
            "#include <stdint.h>",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            *constants,
            "",
            *functions,
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            "#endif",
        ]
        return "\n".join(lines) + "\n"

    def _declarations(self) -> tuple[list[str], list[str]]:
        """The header's constants and its functions."""
        prefix, macro = self.names.prefix, self.names.macro
        constants, functions = [f"#define {macro}_RAM_BYTES {self.program.nbytes}"], []
        for name, tensor, _, const in self._ends():
            constants += [
                "",
                *self._order(tensor),
                f"/* {self._end_title(tensor)} {DTYPES[self.tensors[tensor].type]} */",
            ]
            end, scaling = f"{macro}_{name.upper()}", self.tensors[tensor].quantization
            constants.append(f"#define {end}_BYTES {self.tensors[tensor].nbytes}")
            if scaling.scales:
                constants.append(f"#define {end}_SCALE {number(scaling.scale, 'float')}")
                constants.append(f"#define {end}_ZERO_POINT ({scaling.zero_point})")
            q = "const " if const else ""
            if self.program.pushed and name == "input":
                constants.append(f"#define {macro}_ROWS {self.tensors[tensor].nbytes // self._row_bytes}")
                constants.append(f"#define {macro}_ROW_BYTES {self._row_bytes}")
                functions += [f"void {prefix}_start(void);"]
                functions += [f"int {prefix}_push_row(const {self._ctype(tensor)} *row);"]
            else:
                functions.append(f"{q}{self._ctype(tensor)} *{prefix}_{name}(void);")
        if not self.program.pushed:
            functions.append(f"void {prefix}_invoke(void);")
        if self.state.nbytes:
            constants.insert(1, f"#define {macro}_STATE_BYTES {self.state.nbytes}")
            functions += ["/* Forgets what was kept from earlier runs. */", f"void {prefix}_reset(void);"]
        return constants, functions

    def _end_title(self, tensor: int) -> str:
        """An end with its extents as the caller sees them."""
        t = self.tensors[tensor]
        shape = t.shape
        if tensor in self._turned:
            *outer, channels = shape
            shape = (outer[0], channels, *outer[1:])
        return comment(f"{tensor} {t.name} [{', '.join(map(str, shape))}]")

    def _order(self, tensor: int) -> list[str]:
        """In which order the elements of a map stand, where a model may have another one."""
        if not self._asked or len(self.tensors[tensor].shape) != 4:
            return []
        if tensor in self._turned:
            return ["/* The channels come first: all of the first one, then all of the second. */"]
        return ["/* The channels come last: all of the first place, then all of the next one in its row. */"]

    def _usage(self) -> Sequence[str]:
        prefix = self.names.prefix
        if self.program.pushed:
            return (
                f"Call {prefix}_start(), then {prefix}_push_row() for each row of the input from the top;",
                "it returns 1 when the output is there to be read.",
            )
        return (
            f"Write the input, call {prefix}_invoke(), read the output. The input is overwritten:",
            "write all of it again before the next call.",
        )


def _in_block(lines: list[str]) -> list[str]:
    """Statements in a block of their own where they begin with a declaration."""
    if not lines[0].startswith("struct "):
        return lines
    return ["{", *(f"    {line}" for line in lines), "}"]


def _in_tile(call: list[str], columns: Sequence[str] | None) -> list[str]:
    """A call for columns of a row, which reads a tile of its operand where the columns of that are named too."""
    if columns is None or len(columns) == 2:
        return call
    return [*call[:-1], f"p.pad_left += {columns[2]};", f"p.in_width = {columns[3]};", call[-1]]


def _one_release() -> list[str]:
    """What lets several networks be compiled as one file only where their kernels are the same."""
    return [
        f"#if defined(MODELPLAN_KERNELS) && MODELPLAN_KERNELS != {kernels_checksum()}",
        '#error "another release of modelplan wrote the network above: write both again, or compile each by itself"',
        "#endif",
        "#ifndef MODELPLAN_KERNELS",
        f"#define MODELPLAN_KERNELS {kernels_checksum()}",
        "#endif",
    ]
