"""A program of stripes as a .tflite file: the old file with a new main graph in front of it.

Weights, quantisation, options, names, signatures and metadata stay where they are; tensors and operators of stripes
are new tables that point to them. Maps that nothing uses any more are taken off the list of tensors, since TFLM plans
every tensor on the list; numbers of tensors in what stays are changed where they stand.
"""

import struct
from collections.abc import Iterator, Sequence
from math import prod

from modelplan.formats.tflite.flatbuffer_tables import (
    BUFFER,
    CODE,
    MODEL,
    OPERATOR,
    OPTIONS,
    QUANTISATION,
    SUBGRAPH,
    TENSOR,
    FrontTables,
    unknown_fields,
)
from modelplan.formats.tflite.tflite_tables import child, field, get_metadata, root_table, slots, tables
from modelplan.model import Graph
from modelplan.ops.conditions import number
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.rewriting.striped_tflite.steps import JOIN, TfliteProgram, TfliteStep
from modelplan.rewriting.stripes.stripe_program import AddedValue
from modelplan.runtimes.tflm.metadata import MADE_FOR
from modelplan.runtimes.tflm.planner import METADATA

#: Field numbers of the TFLite schema.
_CODES, _SUBGRAPHS, _BUFFERS, _METADATA, _SIGNATURES = 1, 2, 4, 6, 7
_TENSORS, _INPUTS, _OUTPUTS, _OPERATORS = 0, 1, 2, 3
_OPCODE, _OP_INPUTS, _OP_OUTPUTS, _OPTIONS_TYPE, _OPTIONS, _INTERMEDIATES = 0, 1, 2, 3, 4, 8
_SHAPE, _TYPE, _BUFFER, _NAME, _QUANTIZATION, _VARIABLE, _SIGNATURE = 0, 1, 2, 3, 4, 5, 7
_SCALES, _ZERO_POINTS = 2, 3
_DATA = 0
#: Data of constants begin at multiples of so many bytes.
_ALIGNMENT = 16
_TYPES = {"int32": 2, "bool": 6}
#: Stands for tensors of subgraphs that stay as they are.
_NO_VALUE = -1
#: Number, version and kind of options of SLICE, PAD, the join and others that are added.
_ADDED = {
    "SLICE": (65, 2, 48),
    JOIN: (2, 2, 10),
    "PAD": (34, 2, 22),
    "GATHER": (36, 2, 23),
    "STRIDED_SLICE": (45, 2, 32),
    "TRANSPOSE": (39, 2, 26),
    "RESHAPE": (22, 1, 17),
    "WHILE": (119, 1, 93),
    "DYNAMIC_UPDATE_SLICE": (151, 1, 0),
}
#: The kind of options of operators whose padding is changed.
_OPTIONS_OF = {"CONV_2D": 1, "DEPTHWISE_CONV_2D": 2, "AVERAGE_POOL_2D": 5, "MAX_POOL_2D": 5}
#: How many fields the options of operators have that the rewrite writes in another way, by their kind.
_MOVING_FIELDS = {10: 2, 23: 2, 26: 0, 32: 6, 35: 1, 79: 1}
#: Code that stands in the old field of one byte for those that do not fit.
_LARGE_CODE = 127
_WHILE_OPTIONS = (4, 4)
#: Places of the dilations in the options of CONV_2D, 1 where they are left out.
_DILATIONS = {4: "dilation_w_factor", 5: "dilation_h_factor"}
_AXIS_OPTIONS = (4, 4)
#: Metadata that speaks of operators by number.
_BY_NUMBER = "model_control_dependencies"


def write_striped(model: bytes, program: TfliteProgram) -> tuple[bytes, list[int]]:
    """The file `model` with the program in place of its main graph, and the value behind each of its tensors.

    Tensors are counted over all subgraphs. Behind the main graph's stand those of the file's other subgraphs, which
    stay and are no values (-1), then those of loops, condition and body.

    The file carries no offline memory plan: the old one, if any, is for other tensors.

    Raises:
        ModelError: it holds what cannot be carried over.
        RequestError: operators are bound to numbers in its metadata.
    """
    return _Writer(model, program).write()


def newer_operators(model: bytes) -> dict[int, str]:
    """Why no stripes are made of operators of the main graph that have fields of a newer schema, by number in the file.

    What such fields mean is not known. In operators that stay whole they stay as they are.
    """
    subgraph = tables(model, root_table(model), _SUBGRAPHS)[0]
    maps = tables(model, subgraph, _TENSORS)
    newer = {t for t, table in enumerate(maps) if unknown_fields(model, table, len(TENSOR))}
    reasons = {}
    for index, table in enumerate(tables(model, subgraph, _OPERATORS)):
        listed = [at for part in (_OP_INPUTS, _OP_OUTPUTS) for at in slots(model, table, part)]
        own = {int(struct.unpack_from("<i", model, at)[0]) for at in listed}
        if unknown_fields(model, table, len(OPERATOR)) or newer & own or _has_newer_options(model, table):
            reasons[index] = "it, its options or its tensors have fields that modelplan does not know"
    return reasons


def _has_newer_options(model: bytes, operator: int) -> bool:
    """Whether the options of a convolution, a pool or an operator that moves have fields of a newer schema."""
    kind, options = field(model, operator, _OPTIONS_TYPE), child(model, operator, _OPTIONS)
    known = {_OPTIONS_OF.get(name): len(fields) for name, fields in OPTIONS.items()}
    fields = _MOVING_FIELDS.get(model[kind], known.get(model[kind], 1 << 15)) if kind else 0
    return bool(kind and options and unknown_fields(model, options, fields))


class _Writer:
    def __init__(self, model: bytes, program: TfliteProgram) -> None:
        self.model, self.program = model, program
        self.old = bytearray(model)
        self.root = root_table(model)
        subgraphs = tables(model, self.root, _SUBGRAPHS)
        self.others = subgraphs[1:]
        if get_metadata(model, _BY_NUMBER) is not None:
            raise RequestError(f"the metadata {_BY_NUMBER} names operators by number")
        self.subgraph = subgraphs[0]
        self.tensors = tables(model, self.subgraph, _TENSORS)
        self.operators = tables(model, self.subgraph, _OPERATORS)
        self.file_op = program.file_ops
        if len(self.tensors) != len(program.graph.tensors) or max(self.file_op, default=-1) >= len(self.operators):
            raise ModelError("the file has other tensors or operators than the graph that was read from it")
        self.number = self._numbered()
        self.places: dict[int, int] = {}  # of parts of constants in the old file
        self.emptied: set[int] = set()  # buffers of these constants

    def _numbered(self) -> dict[int, int]:
        """The new number of each value of the main graph that stays or is added."""
        graph = self.program.graph
        used = {t for step in self.program.steps for t in (*step.inputs, *step.outputs)}
        used |= {*graph.inputs, *graph.outputs, *self._named_elsewhere()}
        old = [t for t in range(len(graph.tensors)) if t in used]
        added = [len(graph.tensors) + i for i in range(len(self.program.added))]
        return {t: i for i, t in enumerate([*old, *(t for t in added if t in used)])}

    def _named_elsewhere(self) -> Iterator[int]:
        """The tensors that signatures name, and those in which operators that stay keep what they sum up."""
        for step in self.program.steps:
            if self._stays(step):
                yield from self._listed(self._table(step), _INTERMEDIATES)
        for signature in tables(self.model, self.root, _SIGNATURES):
            for entry in (*tables(self.model, signature, 0), *tables(self.model, signature, 1)):
                at = field(self.model, entry, 1)
                yield self._int(at) if at else 0

    def write(self) -> tuple[bytes, list[int]]:
        self._renumber()
        self._place_parts()
        front = self.front = FrontTables(bytes(self.old))
        self.codes = [front.at(at) for at in tables(self.model, self.root, _CODES)]
        self.code_of: dict[str, int] = {}
        buffers = enumerate(tables(self.model, self.root, _BUFFERS))
        self.buffers = [front.table(BUFFER, {}) if i in self.emptied else front.at(at) for i, at in buffers]
        self.written: dict[int, int] = {}
        loops = [step.loop for step in self.program.steps if step.loop is not None]
        kept = sum(len(tables(self.model, other, _TENSORS)) for other in self.others)
        values, subgraphs = [*self.number, *(_NO_VALUE,) * kept], [front.at(other) for other in self.others]
        for loop in loops:
            for steps, outputs in (((loop.condition,), loop.condition.outputs), (loop.body, loop.outputs)):
                used = dict.fromkeys((*loop.inputs, *(t for s in steps for t in (*s.inputs, *s.outputs))))
                number = {t: i for i, t in enumerate(t for t in used if t >= 0)}
                subgraphs.append(self._part(number, steps, loop.inputs, outputs))
                values += number
        main = self._main()
        fields = {
            _SUBGRAPHS: front.references([main, *subgraphs]),
            _CODES: front.references(self.codes),
            _BUFFERS: front.references(self.buffers),
            **self._metadata(),
        }
        model = front.table(MODEL, fields, self.root, "model")
        for buffer in tables(self.model, self.root, _BUFFERS):
            at = field(self.model, buffer, 1)
            if at and struct.unpack_from("<Q", self.model, at)[0] > 1:  # found by its position, which changes
                raise ModelError("holds data behind the flatbuffer, which is not rewritten")
        return front.file(model), values

    def _main(self) -> int:
        loops, operators = 0, []
        for step in self.program.steps:
            operators.append(self._operator(step, self.number, 1 + len(self.others) + 2 * loops))
            loops += step.loop is not None
        ends = (self._listed(self.subgraph, part) for part in (_INPUTS, _OUTPUTS))
        return self.front.table(SUBGRAPH, self._lists(self.number, operators, *ends), self.subgraph, "subgraph")

    def _part(
        self, number: dict[int, int], steps: Sequence[TfliteStep], inputs: Sequence[int], outputs: Sequence[int]
    ) -> int:
        """The condition or the body of a loop as a subgraph."""
        operators = [self._operator(step, number, 0, anew=True) for step in steps]
        return self.front.table(SUBGRAPH, self._lists(number, operators, inputs, outputs))

    def _lists(
        self, number: dict[int, int], operators: Sequence[int], inputs: Sequence[int], outputs: Sequence[int]
    ) -> dict[int, int]:
        """The fields of a subgraph with these numbers of values."""
        return {
            _TENSORS: self.front.references([self._tensor(value) for value in number]),
            _INPUTS: self.front.numbers([number[t] for t in inputs]),
            _OUTPUTS: self.front.numbers([number[t] for t in outputs]),
            _OPERATORS: self.front.references(operators),
        }

    def _listed(self, table: int, part: int) -> list[int]:
        """The tensors that an operator of the file, or its main graph, names in one of its lists."""
        return [self._int(at) for at in slots(self.model, table, part)]

    def _int(self, at: int) -> int:
        return int(struct.unpack_from("<i", self.model, at)[0])

    def _renumber(self) -> None:
        """Puts new numbers of tensors where operators and signatures that stay have the old ones."""
        for step in self.program.steps:
            if self._stays(step):
                table = self._table(step)
                for part in (_OP_INPUTS, _OP_OUTPUTS, _INTERMEDIATES):
                    for at in slots(self.model, table, part):
                        self._change(at)
        for signature in tables(self.model, self.root, _SIGNATURES):
            for part in (0, 1):
                for entry in tables(self.model, signature, part):
                    if at := field(self.model, entry, 1):
                        self._change(at)
                    elif self.number.get(0) != 0:
                        raise ModelError("a signature names tensor 0, which is taken off the list")

    def _change(self, at: int) -> None:
        t = self._int(at)
        if t >= 0:
            struct.pack_into("<i", self.old, at, self.number[t])

    def _table(self, step: TfliteStep) -> int:
        """The table of the operator of the file that a step carries out."""
        return self.operators[self.file_op[step.source]]

    def _stays(self, step: TfliteStep) -> bool:
        """Whether the operator's table in the file needs no change but tensor numbers."""
        if step.source < 0 or self._options(step):
            return False
        listed = [tuple(self._listed(self._table(step), part)) for part in (_OP_INPUTS, _OP_OUTPUTS)]
        return listed == [step.inputs, step.outputs]

    def _options(self, step: TfliteStep) -> dict[int, int]:
        """The options that an operator must have and has not in the file, by their places."""
        if step.kind not in OPTIONS:
            return {}
        op = self.program.graph.ops[step.source]
        wanted = {0: int(dict(step.changes).get("padding", op.attribute("padding")) == "VALID")}
        if step.kind == "CONV_2D":
            wanted |= {place: number(op, name, 1) for place, name in _DILATIONS.items()}
        options = child(self.model, self._table(step), _OPTIONS)
        return {place: value for place, value in wanted.items() if value != self._option(options, place)}

    def _option(self, options: int, place: int) -> int:
        """An option of a convolution or a pool as the file has it: the padding is a byte."""
        at = field(self.model, options, place)
        if not at:
            return int(place in _DILATIONS)
        return self._int(at) if place in _DILATIONS else self.model[at]

    def _tensor(self, value: int) -> int:
        """The table of a value; each is written once."""
        if value < len(self.tensors):
            return self.front.at(self.tensors[value])
        if value not in self.written:
            self.written[value] = self._new_tensor(self.program.added[value - len(self.tensors)], value)
        return self.written[value]

    def _new_tensor(self, added: AddedValue, value: int) -> int:
        name, shape = self.front.text(added.name), self.front.numbers(added.shape)
        fields = {_SHAPE: shape, _NAME: name}
        if added.part is not None:
            fields |= {_BUFFER: self._part_buffer(value)} | self._part_quantisation(added)
        if added.numbers is not None:
            layout = f"<{len(added.numbers)}{'?' if added.dtype == 'bool' else 'i'}"
            fields[_BUFFER] = self._buffer(self.front.data(struct.pack(layout, *added.numbers)))
        if added.tensor < 0:
            return self.front.table(TENSOR, fields | {_TYPE: _TYPES[added.dtype]})
        like = self.tensors[added.tensor]
        if child(self.model, like, _SIGNATURE):
            fields[_SIGNATURE] = shape
        if added.variable:
            fields[_VARIABLE] = 1
        return self.front.table(TENSOR, fields, like)

    def _part_buffer(self, value: int) -> int:
        """The buffer of a part of a constant: where the constant stood, or in front."""
        place = self.places.get(value)
        return self._buffer(self.front.data(self._part_content(value)) if place is None else self.front.at(place))

    def _part_content(self, value: int) -> bytes:
        """The bytes of a part of a constant."""
        added = self.program.added[value - len(self.tensors)]
        whole, (axis, low, high) = self.program.graph.tensors[added.tensor], added.part or (0, 0, 0)
        vector = self._data(added.tensor)
        if self._int(vector) != whole.nbytes:
            raise ModelError(f"{whole.name!r} has {self._int(vector)} bytes of data, not {whole.nbytes}")
        inner = whole.nbytes // prod(whole.shape[: axis + 1])
        size = inner * whole.shape[axis]
        starts = (vector + 4 + size * i for i in range(whole.nbytes // size))
        return b"".join(self.model[at + low * inner : at + high * inner] for at in starts)

    def _data(self, t: int) -> int:
        """The position of the data of a constant."""
        buffer = self._int(field(self.model, self.tensors[t], _BUFFER))
        return child(self.model, tables(self.model, self.root, _BUFFERS)[buffer], _DATA)

    def _part_quantisation(self, added: AddedValue) -> dict[int, int]:
        """The scales and zero points of a part, of a constant that has one for each index along its axis; else none."""
        old = child(self.model, self.tensors[added.tensor], _QUANTIZATION)
        axis, low, high = added.part or (0, 0, 0)
        scales, zeros = (slots(self.model, old, n) for n in (_SCALES, _ZERO_POINTS)) if old else ([], [])
        if len(scales) < 2:
            return {}
        if len(scales) != self.program.graph.tensors[added.tensor].shape[axis]:
            raise ModelError(f"{added.name!r} is cut along an axis without scales of its own")
        changed = {_SCALES: self.front.numbers([self._int(at) for at in scales[low:high]])}
        if len(zeros) > 1:
            first = zeros[0]
            points = [struct.unpack_from("<q", self.model, first + 8 * i)[0] for i in range(low, high)]
            changed[_ZERO_POINTS] = self.front.long_numbers(points)
        return {_QUANTIZATION: self.front.table(QUANTISATION, changed, old)}

    def _place_parts(self) -> None:
        """Puts parts of constants where constants stood that nothing reads any more, as far as they fit there."""
        added, count = self.program.added, len(self.tensors)
        parts = [value for value in self.number if value >= count and added[value - count].part is not None]
        others = [table for subgraph in self.others for table in tables(self.model, subgraph, _TENSORS)]
        inside = {t for step in self.program.steps if step.loop for inner in step.loop.body for t in inner.inputs}
        staying = [*(self.tensors[t] for t in self.number.keys() | inside if 0 <= t < count), *others]
        used = {self._int(at) for table in staying if (at := field(self.model, table, _BUFFER))}
        used |= {self._int(at) for m in tables(self.model, self.root, _METADATA) if (at := field(self.model, m, 1))}
        vectors = [child(self.model, table, _DATA) for table in tables(self.model, self.root, _BUFFERS)]
        kept = {vectors[number] for number in used}
        free = {self._data(added[value - count].tensor) for value in parts} - kept
        self.emptied = {number for number, vector in enumerate(vectors) if vector in free}
        spans = [(vector, vector + 4 + self._int(vector)) for vector in sorted(free)]
        contents = {value: self._part_content(value) for value in parts}
        for value, content in sorted(contents.items(), key=lambda pair: -len(pair[1])):
            for i, (start, end) in enumerate(spans):
                at = start + (-start - 4) % _ALIGNMENT
                if at + 4 + len(content) <= end:
                    self.old[at : at + 4 + len(content)] = struct.pack("<I", len(content)) + content
                    self.places[value], spans[i] = at, (at + 4 + len(content), end)
                    break

    def _buffer(self, data: int) -> int:
        self.buffers.append(self.front.table(BUFFER, {_DATA: data}))
        return len(self.buffers) - 1

    def _operator(self, step: TfliteStep, number: dict[int, int], subgraph: int, *, anew: bool = False) -> int:
        """The table of an operator; `subgraph` is that of the condition where it is a loop."""
        if not anew and self._stays(step):
            return self.front.at(self._table(step))
        inputs = self.front.numbers([number.get(t, -1) for t in step.inputs])
        outputs = self.front.numbers([number[t] for t in step.outputs])
        fields = {_OP_INPUTS: inputs, _OP_OUTPUTS: outputs}
        if step.source < 0:
            return self.front.table(OPERATOR, fields | self._added(step, subgraph))
        table = self._table(step)
        changed = self._options(step)
        if changed:
            options = child(self.model, table, _OPTIONS)
            fields[_OPTIONS] = self.front.table(OPTIONS[step.kind], changed, options)
        return self.front.table(OPERATOR, fields, table)

    def _added(self, step: TfliteStep, subgraph: int) -> dict[int, int]:
        """The code and the options of an operator that the rewrite adds."""
        number, version, options = _ADDED[step.kind]
        if step.kind not in self.code_of:
            self.code_of[step.kind] = len(self.codes)
            self.codes.append(self.front.table(CODE, {0: min(number, _LARGE_CODE), 2: version, 3: number}))
        code = {_OPCODE: self.code_of[step.kind]}
        if not options:
            return code
        if step.kind in (JOIN, "GATHER"):
            table = self.front.table(_AXIS_OPTIONS, {0: int(str(dict(step.changes)["axis"]))})
        elif step.kind == "WHILE":
            table = self.front.table(_WHILE_OPTIONS, {0: subgraph, 1: subgraph + 1})
        else:
            table = self.front.table((), {})
        return code | {_OPTIONS_TYPE: options, _OPTIONS: table}

    def _metadata(self) -> dict[int, int]:
        """The entries of the metadata but for the old plan and what it was made for."""
        entries = tables(self.model, self.root, _METADATA)
        kept = [entry for entry in entries if self._text(entry) not in (METADATA.encode(), MADE_FOR.encode())]
        if len(kept) == len(entries):
            return {}
        return {_METADATA: self.front.references([self.front.at(entry) for entry in kept])}

    def _text(self, entry: int) -> bytes:
        at = child(self.model, entry, 0)
        return self.model[at + 4 : at + 4 + self._int(at)] if at else b""


def added_kinds(program: TfliteProgram, model: Graph) -> Sequence[str]:
    """The operators that the program has and the model has not, as a resolver must register them."""
    before = {op.kind for op in model.ops}
    steps = [*program.steps, *(s for step in program.steps if step.loop for s in step.loop.body)]
    return sorted({step.kind for step in steps} - before)
