"""A test of an .onnx model in C that runs on any machine: generated inputs, and what ONNX Runtime computes of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from modelplan.checking.verifier.session_outputs import session_runs
from modelplan.checking.verifier.verdicts import Skipped
from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.model.c_program import CProgram
from modelplan.plain_c.kernel_records import C_TYPES, COperator
from modelplan.plain_c.writing.c_self_test import end_names, fills_of, judged_runs, require_generated
from modelplan.plain_c.writing.c_source import CNames, c_files
from modelplan.plain_c.writing.c_text import filled, number
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.generated_inputs import generated_inputs
from modelplan.runtimes.tflm.stated_network import StatedNetwork

_HEAD = """
#include <stdio.h>

static int wrong;
"""
_CHECK = """
static void check_%(name)s(int run, const %(type)s *found, const %(type)s *expected, double most)
{
    for (int32_t i = 0; i < %(count)d; i++) {
        const double off = (double)found[i] - (double)expected[i];
        if (!(off <= most && off >= -most)) {
            wrong++;
            printf("FAIL run %%d: %(name)s[%%ld] is %%.9g, expected %%.9g\\n", run, (long)i, (double)found[i],
                   (double)expected[i]);
            return;
        }
    }
}
"""


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedOutputs:
    """The outputs of a run, and by how much each of them may differ: codes by nothing."""

    values: tuple[npt.NDArray[Any], ...]
    most: tuple[float, ...]


def session_expected(path: str, network: StatedNetwork, seed: int = 0, runs: int = 3) -> tuple[ExpectedOutputs, ...]:
    """What ONNX Runtime computes of an .onnx file on generated inputs, in the order in which the C has it.

    Raises:
        RequestError: it is not installed, computes codes otherwise on this machine, or the ends of the C are codes.
        ModelError: it does not run the model.
    """
    feeds = [generated_inputs(network, seed, run) for run in range(runs)]
    try:
        computed = session_runs(path, network.asked, seed, runs, feeds)
    except Skipped as reason:
        raise RequestError(f"{path}: no self-test, for {reason}") from None
    return tuple(
        ExpectedOutputs(tuple(run.optimised), tuple(run.allowed(i) for i in range(len(run.optimised))))
        for run in computed
    )


def session_self_test(
    network: StatedNetwork,
    operators: Mapping[int, COperator],
    program: CProgram,
    names: CNames,
    runs: Sequence[ExpectedOutputs],
    seed: int = 0,
) -> str:
    """A C file that holds the network and a `main` which prints PASS, or the first element that is not as expected.

    Raises:
        RequestError: an input has a type for which no numbers are generated.
    """
    require_generated(network)
    source = c_files(network, operators, program, names).source
    outputs = _outputs(network)
    checks = [_CHECK % {"name": name, "type": ctype, "count": runs[0].values[i].size}
              for i, (name, ctype) in enumerate(outputs)]  # fmt: skip
    tables = [line for i, (name, ctype) in enumerate(outputs) for line in _tables(name, ctype, i, runs)]
    judged = [
        f"        check_{name}(run, {names.prefix}_{name}(), expected_{name}[run], most_{name}[run]);"
        for name, _ in outputs
    ]
    main = judged_runs(network, names.prefix, (len(runs), seed), (), judged, pushed=program.pushed)
    parts = [source, _HEAD, *checks, fills_of(network, program), *tables, "\nint main(void)\n{", *main]
    return "\n".join(parts) + "\n"


def _outputs(network: StatedNetwork) -> list[tuple[str, str]]:
    """The names and types of outputs."""
    main = network.subgraphs[0]
    names = end_names("output", main.outputs)
    return [(name, C_TYPES[DTYPES[main.tensors[t].type]]) for name, t in zip(names, main.outputs, strict=True)]


def _tables(name: str, ctype: str, position: int, runs: Sequence[ExpectedOutputs]) -> Iterator[str]:
    """What is expected of an output, run after run, and by how much it may differ."""
    size = runs[0].values[position].size
    yield f"static const {ctype} expected_{name}[{len(runs)}][{size}] = {{"
    for run in runs:
        yield "    {"
        yield from filled((number(v, ctype) for v in run.values[position].ravel().tolist()), "        ")
        yield "    },"
    yield "};"
    yield f"static const double most_{name}[{len(runs)}] = {{{', '.join(f'{r.most[position]:.9g}' for r in runs)}}};"
