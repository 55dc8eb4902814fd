"""A test of a network in C that runs on any machine: generated inputs, and hashes of every map and every output.

The hash of a map is the sum of the hashes of its pixels, so that rows may be computed in any order and part by part.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.model.c_program import CProgram, KernelCall
from modelplan.plain_c.kernel_records import C_TYPES, COperator, rows_of
from modelplan.plain_c.writing.c_source import CNames, c_files
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.generated_inputs import generated_inputs
from modelplan.runtimes.tflm.planner import without_plan
from modelplan.runtimes.tflm.runner import tflm_contents

_SEEN = """
#include <stdint.h>
#include <stdio.h>

/* Hashes of what was computed, by tensor. */
static uint32_t hashes[%d];

static uint32_t hash_of(const void *values, int32_t bytes)
{
    const uint8_t *const v = (const uint8_t *)values;
    uint32_t hash = 2166136261u;
    for (int32_t i = 0; i < bytes; i++) {
        hash = (hash ^ v[i]) * 16777619u;
    }
    return hash;
}

static void seen(int32_t tensor, const void *values, int32_t pixels, int32_t bytes)
{
    for (int32_t i = 0; i < pixels; i++) {
        hashes[tensor] += hash_of((const uint8_t *)values + i * bytes, bytes);
    }
}
"""
_NUMBERS = """
/* splitmix64 */
static uint64_t place;

static uint64_t next_number(void)
{
    uint64_t z;
    place += UINT64_C(0x9E3779B97F4A7C15);
    z = (place ^ (place >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}
"""
_CHECK = """
static int wrong;

static void check(const char *what, const char *name, int run, uint32_t found, uint32_t expected)
{
    if (found != expected) {
        wrong++;
        printf("FAIL run %d: %s %s is %08lx, expected %08lx\\n", run, what, name, (unsigned long)found,
               (unsigned long)expected);
    }
}
""".replace("\\\\", "\\")
#: How an element of each type is made of a number, as `generated_inputs` does.
_ELEMENTS = {
    "int8": "(int8_t)(uint8_t)(z >> 56)", "uint8": "(uint8_t)(z >> 56)", "int16": "(int16_t)(uint16_t)(z >> 48)",
    "int32": "(int32_t)(z >> 61)", "int64": "(int64_t)(z >> 61)", "bool": "(uint8_t)(z >> 63)",
    "float32": "(float)(uint32_t)(z >> 40) / 8388608.0f - 1.0f",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CExpectedRun:
    """What a run gives: the hash of each output, and that of each computed tensor by its number."""

    outputs: tuple[int, ...]
    maps: Mapping[int, int]


def pixel_hashes(content: bytes, pixel: int, times: npt.NDArray[np.uint64] | None = None) -> int:
    """The sum of the hashes of all pixels of so many bytes, in 32 bits, each so many times.

    >>> pixel_hashes(b"ab", 1) == pixel_hashes(b"ba", 1), pixel_hashes(b"ab", 2) == pixel_hashes(b"ba", 2)
    (True, False)
    """
    pixels = np.frombuffer(content, np.uint8).reshape(-1, pixel)
    hashes = np.full(len(pixels), 2166136261, np.uint32)
    for column in pixels.T:
        hashes = (hashes ^ column) * np.uint32(16777619)
    return int((hashes * (1 if times is None else times)).sum(dtype=np.uint64) & np.uint64(0xFFFFFFFF))


def _times(
    program: CProgram, model: FileModel, operators: Mapping[int, COperator]
) -> dict[int, npt.NDArray[np.uint64]]:
    """How often each pixel is computed of maps that are computed by parts of rows, or again."""
    times: dict[int, npt.NDArray[np.uint64]] = {}
    again = {n for repeat in (program.choices.repeats if program.choices else ()) for n in repeat.operators}
    for step in (step for stage in program.stages for step in stage.steps):
        if isinstance(step, KernelCall) and (step.columns or step.operator in again):
            write, rows = step.writes[0], operators[step.operator].results[0].rows
            pixels = prod(model.subgraphs[0].tensors[write.tensor].shape[:-1])
            counts = times.setdefault(write.tensor, np.zeros((rows, pixels // rows), np.uint64))
            counts[write.first : write.first + write.rows, slice(*step.columns or (None,))] += np.uint64(1)
    return times


def expected_c_runs(
    model: FileModel, operators: Mapping[int, COperator], program: CProgram, seed: int = 0, runs: int = 3
) -> tuple[CExpectedRun, ...]:
    """What TFLM's reference kernels give on generated inputs, run after run.

    Raises:
        RequestError: tflite-micro is not installed.
        ModelError: TFLM does not run the model.
    """
    main = model.subgraphs[0]
    steps = (s for stage in program.stages for s in stage.steps if isinstance(s, KernelCall))
    called = sorted({s.operator for s in steps if operators[s.operator].kernels and not operators[s.operator].view})
    tensors = [r.tensor for index in called for r in operators[index].results if main.tensors[r.tensor].nbytes]
    feeds = [generated_inputs(model, seed, run) for run in range(runs)]
    expected_runs, times = [], {t: counts.ravel() for t, counts in _times(program, model, operators).items()}
    for outputs, contents in tflm_contents(without_plan(model.data), feeds, tensors):
        hashes = {}
        for t, content in zip(tensors, contents, strict=True):
            pixel_bytes = main.tensors[t].nbytes // max(prod(main.tensors[t].shape[:-1]), 1)
            hashes[t] = pixel_hashes(content, pixel_bytes, times.get(t))
        expected_runs.append(CExpectedRun(tuple(pixel_hashes(o.tobytes(), o.nbytes) for o in outputs), hashes))
    return tuple(expected_runs)


def c_self_test(
    model: FileModel,
    operators: Mapping[int, COperator],
    program: CProgram,
    names: CNames,
    runs: Sequence[CExpectedRun],
    seed: int = 0,
) -> str:
    """A C file that holds the network and a `main` which prints PASS, or what is not as expected.

    Raises:
        RequestError: an input has a type for which no numbers are generated.
    """
    require_generated(model)
    source = c_files(model, operators, program, replace(names, traced=True)).source
    parts = [_SEEN % len(model.subgraphs[0].tensors), source, _CHECK, fills_of(model, program)]
    return "\n".join([*parts, "\n".join(_main(model, names, runs, seed, pushed=program.pushed))]) + "\n"


def require_generated(model: FileModel) -> None:
    """Refuses a model one of whose inputs has a type for which no numbers are generated."""
    main = model.subgraphs[0]
    for t in main.inputs:
        if DTYPES[main.tensors[t].type] not in _ELEMENTS:
            raise RequestError(
                f"{model.name}: no self-test, for input {main.tensors[t].name!r} has no generated values"
            )


def end_names(side: str, tensors: Sequence[int]) -> list[str]:
    """What the inputs or outputs of a network are called."""
    return [side] if len(tensors) == 1 else [f"{side}_{i}" for i in range(len(tensors))]


def fills_of(model: FileModel, program: CProgram) -> str:
    """What makes the numbers of inputs, and a function that writes each of them."""
    return "\n".join([_NUMBERS, *_fills(model, program)]) if model.subgraphs[0].inputs else ""


def _fills(model: FileModel, program: CProgram) -> Iterator[str]:
    """Functions that write an input."""
    main = model.subgraphs[0]
    for name, t in zip(end_names("input", main.inputs), main.inputs, strict=True):
        tensor = main.tensors[t]
        dtype = DTYPES[tensor.type]
        count, ctype = tensor.elements, C_TYPES[dtype]
        if program.pushed:
            count //= rows_of(tensor.shape)
        yield f"static void fill_{name}({ctype} *values)\n{{"
        yield f"    for (int32_t i = 0; i < {count}; i++) {{"
        yield f"        const uint64_t z = next_number();\n        values[i] = {_ELEMENTS[dtype]};\n    }}\n}}\n"


def _main(model: FileModel, names: CNames, runs: Sequence[CExpectedRun], seed: int, *, pushed: bool) -> Iterator[str]:
    main, prefix, macro = model.subgraphs[0], names.prefix, names.macro
    tensors, outputs = list(runs[0].maps), end_names("output", main.outputs)
    rows = [", ".join(f"{n}u" for n in (*run.outputs, *run.maps.values())) for run in runs]
    yield "int main(void)\n{"
    yield f"    static const uint32_t expected[{len(runs)}][{len(outputs) + len(tensors)}] = {{"
    yield from (f"        {{{row}}}," for row in rows)
    yield "    };"
    yield f"    static const int16_t tensors[{max(len(tensors), 1)}] = {{{', '.join(map(str, tensors)) or '0'}}};"
    clear = f"        for (int32_t i = 0; i < {len(main.tensors)}; i++) {{\n            hashes[i] = 0u;\n        }}"
    checks = [
        f"        for (int32_t i = 0; i < {len(tensors)}; i++) {{",
        '            char name[12];\n            (void)sprintf(name, "%d", (int)tensors[i]);',
        f'            check("tensor", name, run, hashes[tensors[i]], expected[run][{len(outputs)} + i]);\n        }}',
    ]
    for position, name in enumerate(outputs):
        hash_call = f"hash_of({prefix}_{name}(), {macro}_{name.upper()}_BYTES)"
        checks.append(f'        check("output", "{name}", run, {hash_call}, expected[run][{position}]);')
    yield from judged_runs(model, prefix, (len(runs), seed), [clear], checks, pushed=pushed)


def judged_runs(
    model: FileModel, prefix: str, drawn: tuple[int, int], before: Sequence[str], checks: Sequence[str], *, pushed: bool
) -> Iterator[str]:
    """The end of a `main`: so many runs on inputs of a seed, what stands before and behind each, and the verdict."""
    runs, seed = drawn
    main = model.subgraphs[0]
    yield f"    for (int run = 0; run < {runs}; run++) {{"
    yield from before
    for position, name in enumerate(end_names("input", main.inputs)):
        start = (seed * 0x100000001B3 + position) & ((1 << 64) - 1)
        yield f"        place = UINT64_C({start}) + ((uint64_t)run << 32);\n        (void)next_number();"
        if pushed:
            tensor = main.tensors[main.inputs[0]]
            rows = rows_of(tensor.shape)
            yield f"        {prefix}_start();\n        for (int32_t y = 0; y < {rows}; y++) {{"
            yield f"            static {C_TYPES[DTYPES[tensor.type]]} row[{tensor.elements // rows}];"
            yield f"            fill_{name}(row);\n            (void){prefix}_push_row(row);\n        }}"
        else:
            yield f"        fill_{name}({prefix}_{name}());"
    if not pushed:
        yield f"        {prefix}_invoke();"
    yield from checks
    yield f'    }}\n    puts(wrong == 0 ? "PASS: {runs} runs" : "FAIL");\n    return wrong == 0 ? 0 : 1;\n}}'
