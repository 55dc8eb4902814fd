"""`fit --runtime c`: a model as plain C that needs no interpreter."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from modelplan.formats import load_model
from modelplan.rewriting.standalone_c.c_text import identifier
from modelplan.rewriting.standalone_c.ladder import CGoal, CLadder, CModel, c_ladder
from modelplan.rewriting.standalone_c.writing import CNames
from modelplan.rewriting.stripes.ladder import Report, report_nothing
from modelplan.runtimes.tflm.file import load_tflite


@dataclass(frozen=True, slots=True, kw_only=True)
class FitCRequest(CGoal):
    """Asks for a .tflite file as plain C, and what every rung of the ladder needs.

    Args:
        path: the file.
        output: the name of the C file; that of the header follows from it.
        budget: bytes of static memory that there are; None asks for the least.
        name: what all public names begin with; empty: the output's.
        section: of the buffer, for the linker; empty: none.
        pushed: whether the caller hands over the input row by row, so that it is never held as a whole.
        max_macs: not used: nothing is computed twice.
        max_flash: bytes that the tables may have.
        without: rungs to skip: "maps", "overlaps", "rows", "parts".
        seed: of the search; the same seed gives the same file.
    """

    path: str = field(kw_only=False)
    output: str = "net.c"
    name: str = ""
    section: str = ""


def fit_c(request: FitCRequest, progress: Report = report_nothing) -> CLadder:
    """A .tflite file as plain C: the rungs with what they need, and the chosen one proved row by row.

    Args:
        request: the file, the memory there is, and what the C is called.
        progress: is called with a line now and then.

    Returns:
        The ladder; the chosen rung has the text of the source and of the header.

    Raises:
        ModelError: the file cannot be read, or operators in it cannot become C; names them all.
        RequestError: the request names what does not exist, or rows of an input that there are not.
        BrokenPlanError: the plan is not right; never to be seen.
    """
    stem = Path(request.output).stem
    names = CNames(identifier(request.name or stem), f"{stem}.h", request.section)
    return c_ladder(CModel(load_model(request.path), load_tflite(request.path)), request, names, progress)
