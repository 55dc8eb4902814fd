"""Plans without sharing for plain C, whole or in random slices of rows, and programs that run what is written."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from modelplan.model.c_program import CProgram, KernelCall, RowsRead, RowsWritten, Stage, StoredValue
from modelplan.plain_c.kernel_records import COperator
from modelplan.plain_c.libraries.kernel_libraries import library_operators
from modelplan.plain_c.operator_calls.operator_table import c_operator
from modelplan.plain_c.writing.c_source import CNames, c_files
from modelplan.runtimes.tflm.file import FileModel, read_tflite

WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror"]
#: Not optimised, which would take longer than it saves: warnings that need it are asked for where nothing is run.
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
#: The share of operators that are computed in slices where there are any.
_SLICED = 2 / 3

#: Reads all inputs, runs the network, and writes the whole buffer, run after run.
MAIN = """
#include <stdio.h>
int main(void)
{
    for (;;) {
%s
        net_invoke();
        if (fwrite(&net_memory, 1, NET_RAM_BYTES, stdout) != NET_RAM_BYTES) { return 1; }
    }
}
"""


def c_operators(model: FileModel, kernels: str = "portable") -> dict[int, COperator]:
    operators = {index: c_operator(model, index) for index in range(len(model.subgraphs[0].ops))}
    return dict(library_operators(model, operators, kernels)[0])


def apart(
    model: FileModel, operators: Mapping[int, COperator], rng: random.Random | None = None, kernels: str = "portable"
) -> CProgram:
    """All tensors and working memory lie apart; with `rng` two of three operators compute random slices of rows."""
    main = model.subgraphs[0]
    used = {*main.inputs, *main.outputs}
    for op in operators.values():
        used |= {o.tensor for o in op.operands} | {result.tensor for result in op.results}
    dynamic = [t for t, tensor in enumerate(main.tensors) if t in used]
    values: list[StoredValue] = []
    number: dict[int, int] = {}
    offset = 0
    for t in dynamic:
        offset = -(-offset // 8) * 8
        size = main.tensors[t].nbytes
        number[t] = len(values)
        values.append(StoredValue((t,), size, size, offset))
        offset += size
    stages, scratch = [], {i: op.scratch for i, op in operators.items() if op.scratch}
    for index, op in operators.items():
        work = -(-offset // 8) * 8 if op.scratch else -1
        offset = work + op.scratch if op.scratch else offset
        steps, row, all_rows = [], 0, op.results[0].rows if op.results else 1
        sliced = rng is not None and op.by_rows and rng.random() < _SLICED
        while row < all_rows:
            count = rng.randint(1, all_rows - row) if rng and sliced else all_rows - row
            steps.append(replace(_call(index, op, row, count, values, number), scratch=work))
            row += count
        stages.append(Stage((index,), tuple(steps)))
    inputs, outputs = (tuple(number[t] for t in end) for end in (main.inputs, main.outputs))
    ends = offset, offset, inputs, outputs
    return CProgram(tuple(values), tuple(stages), *ends, scratch=scratch, kernels=kernels)


def _call(
    index: int, op: COperator, row: int, count: int, values: Sequence[StoredValue], number: Mapping[int, int]
) -> KernelCall:
    reads = []
    for operand in op.operands:
        value, first, end, above = number[operand.tensor], 0, operand.rows, 0
        if window := operand.window:
            start = row * window.stride - window.before
            end = (row + count - 1) * window.stride - window.before + window.reach
            first, above = min(max(start, 0), operand.rows), max(-start, 0)
            end = max(min(end, operand.rows), first)
        address = values[value].offset + first * operand.row_bytes
        reads.append(RowsRead(operand.tensor, value, first, end - first, above, address))
    writes = []
    for result in op.results:
        value = number[result.tensor]
        writes.append(RowsWritten(result.tensor, value, row, count, values[value].offset + row * result.row_bytes))
    return KernelCall(index, tuple(reads), tuple(writes))


def data_to_relocate(source: Path, level: str) -> str:
    """What of a source would be written into RAM before it runs, where it may be loaded anywhere: section and bytes."""
    command = ["cc", "-std=c99", "-fPIE", level, "-c", source.name, "-o", "moved.o"]
    subprocess.run(command, cwd=source.parent, check=True)
    sizes = subprocess.run(["size", "-A", "moved.o"], cwd=source.parent, capture_output=True, text=True, check=True)
    return " ".join(re.findall(r"^\.data\S*\s+[1-9]\d*", sizes.stdout, re.MULTILINE))


class CNetwork:
    """A model as C with all of its tensors apart, compiled in a folder."""

    def __init__(
        self, folder: Path, content: bytes, flags: Sequence[str] = SANITIZERS, rng: random.Random | None = None
    ) -> None:
        self.model = read_tflite(content, "net.tflite")
        operators = c_operators(self.model)
        self.program = apart(self.model, operators, rng)
        files = c_files(self.model, operators, self.program, CNames("net", "net.h"))
        (folder / "net.c").write_text(files.source)
        (folder / "net.h").write_text(files.header)
        main = self.model.subgraphs[0]
        names = ["input"] if len(main.inputs) == 1 else [f"input_{i}" for i in range(len(main.inputs))]
        reads = [
            f"        if (fread(net_{n}(), 1, NET_{n.upper()}_BYTES, stdin) != NET_{n.upper()}_BYTES) {{ return 0; }}"
            for n in names
        ]
        (folder / "main.c").write_text('#include "net.c"\n' + MAIN % "\n".join(reads))
        self.program_file = folder / "net"
        command = ["cc", *WARNINGS, *flags, "-o", str(self.program_file), str(folder / "main.c"), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:3000]

    def run(self, runs: Sequence[Sequence[bytes]]) -> list[dict[int, bytes]]:
        """The bytes of every tensor after each run."""
        fed = b"".join(b"".join(run) for run in runs)
        done = subprocess.run([self.program_file], input=fed, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()[:3000]
        size = self.program.nbytes
        assert len(done.stdout) == size * len(runs)
        images = [done.stdout[i * size : (i + 1) * size] for i in range(len(runs))]
        return [{v.tensors[0]: image[v.offset : v.offset + v.nbytes] for v in self.program.values} for image in images]
