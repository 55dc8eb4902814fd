"""Writes a plan as C: a source and a header, with one function for each stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.model.c_program import CProgram, KernelCall, RowsArrival, Stage, Step, ValueShift
from modelplan.primitives.errors import ModelError
from modelplan.primitives.version import __version__
from modelplan.rewriting.standalone_c.c_text import C_TYPES, columns, comment, number, table_text
from modelplan.rewriting.standalone_c.kernel_sources import all_sources, kernel_name, parameter_names
from modelplan.rewriting.standalone_c.records import CKernel, ConstTable, COperator
from modelplan.runtimes.tflm.file import FileModel, FileTensor
from modelplan.runtimes.tflm.kernels.calls import ELEMENT_BYTES


@dataclass(frozen=True, slots=True)
class CFiles:
    """The text of a C source, and that of its header."""

    source: str
    header: str


@dataclass(frozen=True, slots=True)
class CNames:
    """What everything public is called: `prefix`, the header's file name, and the section of the buffer, if any."""

    prefix: str
    header: str
    section: str = ""

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


@dataclass
class _Writer:
    model: FileModel
    operators: Mapping[int, COperator]
    program: CProgram
    names: CNames
    tables: dict[tuple[str, bytes], str] = field(default_factory=dict)
    taken: Counter[str] = field(default_factory=Counter)
    definitions: list[str] = field(default_factory=list)

    @property
    def tensors(self) -> Sequence[FileTensor]:
        """The tensors of the main subgraph."""
        return self.model.subgraphs[0].tensors

    def source(self) -> str:
        """The C source."""
        stages = [self._stage(number, stage) for number, stage in enumerate(self.program.stages)]
        used = [(k.source, k.variant) for _, k in self._kernels()]
        parameters = [self._parameters(index, number, k) for index, number, k in self._numbered()]
        parts = [
            self._beginning(),
            *(text.rstrip() for text in all_sources(used)),
            self._map(),
            self._memory(),
            *self.definitions,
            *parameters,
            *stages,
            *self._interface(),
        ]
        return "\n\n".join(parts) + "\n"

    def _kernels(self) -> Iterator[tuple[COperator, CKernel]]:
        """The kernels that are called."""
        for index in self._called:
            for kernel in self.operators[index].kernels:
                yield self.operators[index], kernel

    def _numbered(self) -> Iterator[tuple[int, int, CKernel]]:
        for index in self._called:
            for position, kernel in enumerate(self.operators[index].kernels):
                yield index, position, kernel

    @cached_property
    def _called(self) -> list[int]:
        """The operators that run, ascending; views whose result has the operand's place do not."""
        steps = (s for stage in self.program.stages for s in stage.steps if isinstance(s, KernelCall))
        return sorted({s.operator for s in steps if not self._is_void(s)})

    def _is_void(self, step: KernelCall) -> bool:
        """Whether nothing is to be done, since the result is the operand's bytes in their place."""
        operator = self.operators[step.operator]
        return operator.view and step.reads[0].address == step.writes[0].address

    def _beginning(self) -> str:
        name = comment(self.model.name.rsplit("/", 1)[-1])
        uses_floats = any(ctype == "float" for ctype in self._types())
        lines = [
            f"/* {name} as plain C, written by modelplan {__version__}.",
            " *",
            f" * {self.program.nbytes} bytes of RAM, no allocation, no recursion.",
            " * The interface is described in the header.",
            " */",
            f'#include "{self.names.header}"',
            "",
            *(["#include <math.h>"] if uses_floats else []),
            "#include <string.h>",
        ]
        return "\n".join(lines)

    def _types(self) -> set[str]:
        """The C types of all values in the buffer."""
        return {self._ctype(t) for value in self.program.values for t in value.tensors}

    def _ctype(self, tensor: int) -> str:
        dtype = DTYPES[self.tensors[tensor].type]
        if dtype not in C_TYPES:
            raise ModelError(f"{self.model.name}: tensor {self.tensors[tensor].name!r} is of type {dtype}, not in C")
        return C_TYPES[dtype]

    def _map(self) -> str:
        """Where everything lies, as a comment, and as names of offsets."""
        rows = [("offset", "bytes", "holds")]
        order = sorted(range(len(self.program.values)), key=lambda v: (self.program.values[v].offset, v))
        for v in order:
            value = self.program.values[v]
            part = f", {value.nbytes} in all" if value.slides else ""
            rows.append((str(value.offset), str(value.capacity), self._title(value.tensors[0]) + part))
        lines = ["/* The buffer:", *(f" *   {line}" for line in columns(rows)), " */", "enum {"]
        offsets = [f"    {self._at(v)} = {self.program.values[v].offset}" for v in range(len(self.program.values))]
        return "\n".join([*lines, ",\n".join(offsets), "};"])

    def _at(self, value: int) -> str:
        return f"AT_{self.program.values[value].tensors[0]}"

    def _title(self, tensor: int) -> str:
        t = self.tensors[tensor]
        return comment(f"{tensor} {t.name} [{', '.join(map(str, t.shape))}]")

    def _memory(self) -> str:
        """The buffer."""
        macro, widest = self.names.macro, self._widest
        section = f" {macro}_SECTION"
        plain = f"static int8_t memory[{macro}_RAM_BYTES]{section};\n#define RAM memory"
        if widest > 1:
            kind = {2: "int16_t", 4: "int32_t", 8: "int64_t"}[widest]
            plain = (
                f"static union {{\n    int8_t bytes[{macro}_RAM_BYTES];\n    {kind} aligned;\n"
                f"}} memory{section};\n#define RAM memory.bytes"
            )
        lines = [
            f"#ifdef {macro}_RAM",
            f"/* The caller names the memory: {macro}_RAM_BYTES bytes at a multiple of {widest}. */",
            f"#define RAM ((int8_t *)({macro}_RAM))",
            "#else",
            f"#ifndef {macro}_SECTION",
            f"#define {macro}_SECTION {self._section}".rstrip(),
            "#endif",
            plain,
            "#endif",
        ]
        return "\n".join(lines)

    @property
    def _section(self) -> str:
        return f'__attribute__((section("{self.names.section}")))' if self.names.section else ""

    @property
    def _widest(self) -> int:
        """The bytes of the widest element, to whose multiple the buffer begins."""
        dtypes = (DTYPES[self.tensors[t].type] for value in self.program.values for t in value.tensors)
        return max((ELEMENT_BYTES[d] for d in dtypes), default=1)

    def _table(self, index: int, table: ConstTable) -> str:
        """The name of a table, which is defined where it is new."""
        key = table.ctype, table.numbers.tobytes()
        if key not in self.tables:
            name = f"{table.name}_{index}"
            self.taken[name] += 1
            self.tables[key] = name if self.taken[name] == 1 else f"{name}_{self.taken[name]}"
            self.definitions.append(table_text(self.tables[key], table))
        return self.tables[key]

    def _parameters(self, index: int, position: int, kernel: CKernel) -> str:
        """The struct of parameters of a kernel."""
        name = kernel_name(kernel.source, kernel.variant)
        fields = parameter_names(kernel.source, kernel.variant)
        if set(fields) != set(kernel.parameters):
            raise ModelError(f"kernel {name} has other parameters than {sorted(kernel.parameters)}")
        values = []
        for key in fields:
            value = kernel.parameters[key]
            if isinstance(value, ConstTable):
                values.append(self._table(index, value))
            else:
                values.append(number(value, "float" if isinstance(value, float) else "int32_t"))
        rows = [f"    {v}, /* {key} */" for key, v in zip(fields, values, strict=True)]
        op = self.model.subgraphs[0].ops[index]
        title = comment(f"op {index} {op.kind}: {self.tensors[op.outputs[0]].name}")
        body = "\n".join(rows)
        return f"/* {title} */\nstatic const struct {name}_params {_struct(index, position)} = {{\n{body}\n}};"

    def _stage(self, index: int, stage: Stage) -> str:
        """The function of a stage."""
        lines = [f"static void {_stage_name(index)}(void)", "{"]
        for step in stage.steps:
            lines += [f"    {line}" for line in self.step_lines(step)]
        return "\n".join([*lines, "}"])

    def step_lines(self, step: Step) -> list[str]:
        """One step as statements."""
        if isinstance(step, ValueShift):
            place, source = self._place(step.value, step.to), self._place(step.value, step.address)
            return [f"(void)memmove({place}, {source}, {step.nbytes});"]
        if isinstance(step, RowsArrival):
            return [f"(void)memcpy({self._place(step.value, step.address)}, row, {step.nbytes});"]
        if self._is_void(step):
            return []
        operator = self.operators[step.operator]
        title = self._title(operator.results[0].tensor)
        lines = [f"/* {operator.kind} -> {title} */"]
        for position, kernel in enumerate(operator.kernels):
            lines += self._call(step, operator, position, kernel)
        return lines

    def _call(self, step: KernelCall, operator: COperator, position: int, kernel: CKernel) -> list[str]:
        """A call of a kernel, or a loop of calls for the maps of a batch."""
        name, written = kernel_name(kernel.source, kernel.variant), step.writes[kernel.result]
        rows, above, computed = kernel.whole
        if operator.by_rows:
            first = next((o for o in kernel.operands if isinstance(o, int)), 0)
            rows, above, computed = step.reads[first].rows, step.reads[first].above, written.rows
        sources, batch = [], ""
        for operand in kernel.operands:
            if isinstance(operand, ConstTable):
                sources.append(self._table(step.operator, operand))
                continue
            read = step.reads[operand]
            size = prod(self.tensors[read.tensor].shape) // kernel.repeats
            batch = f" + n * {size}" if kernel.repeats > 1 else ""
            sources.append(self._typed(read.tensor, read.value, read.address, const=True) + batch)
        target = self._typed(written.tensor, written.value, written.address)
        if kernel.repeats > 1:
            target += f" + n * {prod(self.tensors[written.tensor].shape) // kernel.repeats}"
        arguments = [f"&{_struct(step.operator, position)}", *sources, str(rows), str(above), str(computed), target]
        call = f"{name}({', '.join(arguments)});"
        if kernel.repeats == 1:
            return [call]
        return [f"for (int32_t n = 0; n < {kernel.repeats}; n++) {{", f"    {call}", "}"]

    def _place(self, value: int, address: int) -> str:
        """An address in the buffer."""
        more = address - self.program.values[value].offset
        return f"RAM + {self._at(value)}" + (f" {'+' if more > 0 else '-'} {abs(more)}" if more else "")

    def _typed(self, tensor: int, value: int, address: int, *, const: bool = False) -> str:
        """The same as a pointer to a tensor's elements."""
        ctype, place = self._ctype(tensor), self._place(value, address)
        if ctype == "int8_t":
            return place
        q = "const " if const else ""
        return f"({q}{ctype} *)({q}void *)({place})"

    def _interface(self) -> Iterator[str]:
        """The public functions."""
        for name, tensor, value, const in self._ends():
            q = "const " if const else ""
            place = self._typed(tensor, value, self.program.values[value].offset, const=const)
            yield f"{q}{self._ctype(tensor)} *{self.names.prefix}_{name}(void)\n{{\n    return {place};\n}}"
        calls = "\n".join(
            f"    {_stage_name(i)}();"
            for i, stage in enumerate(self.program.stages)
            if any(map(self.step_lines, stage.steps))
        )
        yield f"void {self.names.prefix}_invoke(void)\n{{\n{calls}\n}}"

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
        """The header."""
        prefix, macro = self.names.prefix, self.names.macro
        constants, functions = [f"#define {macro}_RAM_BYTES {self.program.nbytes}"], []
        for name, tensor, _, const in self._ends():
            constants += ["", f"/* {self._title(tensor)} {DTYPES[self.tensors[tensor].type]} */"]
            constants += self._end_constants(f"{macro}_{name.upper()}", self.tensors[tensor])
            q = "const " if const else ""
            functions.append(f"{q}{self._ctype(tensor)} *{prefix}_{name}(void);")
        lines = [
            f"/* {comment(self.model.name.rsplit('/', 1)[-1])} as plain C, written by modelplan {__version__}.",
            " *",
            f" * Write the input, call {prefix}_invoke(), read the output. The input is overwritten: write all of it",
            " * again before the next call.",
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
            f"void {prefix}_invoke(void);",
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            "#endif",
        ]
        return "\n".join(lines) + "\n"

    def _end_constants(self, name: str, tensor: FileTensor) -> Iterator[str]:
        yield f"#define {name}_BYTES {tensor.nbytes}"
        if tensor.quantization.scales:
            yield f"#define {name}_SCALE {number(tensor.quantization.scale, 'float')}"
            yield f"#define {name}_ZERO_POINT ({tensor.quantization.zero_point})"


def _struct(operator: int, position: int) -> str:
    return f"op_{operator}" + (f"_{position}" if position else "")


def _stage_name(index: int) -> str:
    return f"stage_{index}"
