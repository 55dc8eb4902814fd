"""Proves the plan that a C source states as data, and that the source is what this plan gives.

The data is believed in nothing: the steps that follow from it are proved as those of any plan, and the text that is
written from them has to be the one that was read, token by token.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest

from modelplan.answers.proof_outcomes import Verdict
from modelplan.checking.verifier.c_rows import rows_verdict
from modelplan.checking.verifier.rewrites.reading import read_source
from modelplan.model.c_program import CProgram, PlanChoices
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.kernel_records import COperator
from modelplan.plain_c.rows.placing_rows import chosen_program
from modelplan.plain_c.rows.repeating import possible_repeats, with_repeats
from modelplan.plain_c.rows.row_graph import RowGraph, with_chains
from modelplan.plain_c.rows.spare_memory import with_scratch_at
from modelplan.plain_c.rows.stage_plan import StagedGraph
from modelplan.plain_c.rows.stage_search import can_run_in, rows_in_order
from modelplan.plain_c.rows.tile_search import chains_between
from modelplan.plain_c.writing.c_source import CNames, c_files
from modelplan.plain_c.writing.c_text import comment
from modelplan.plain_c.writing.plan_data import UnreadPlanError, stated_choices
from modelplan.primitives.version import __version__

LEVEL = "plan in C"
_TOKEN = re.compile(r"/\*.*?\*/|\s+|(\"[^\"\n]*\"|\w+|.)", re.DOTALL)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def stated_verdict(model: CModel, source: str, header: str) -> Verdict:
    """The verdict of the plan that a source and its header state.

    Cost: O(rows that all steps read and write), however long they are, and of the text.
    """
    try:
        names = stated_names(source, header)
        operators, program = stated_program(model, source)
    except UnreadPlanError as problem:
        return Verdict(LEVEL, "unproved", f"{problem}{_other_model(model, source)}{_other_release(source)}")
    verdict = rows_verdict(read_source(model.file), program)
    if verdict.outcome == "broken":
        return Verdict(LEVEL, "broken", verdict.details)
    again = c_files(model.file, operators, program, names)
    for name, text, wanted in (("source", source, again.source), ("header", header, again.header)):
        if other := _first_difference(text, wanted):
            fault = f"the {name} is not what its plan gives: {other}{_other_release(source)}"
            return Verdict(LEVEL, "unproved", fault)
    return Verdict(LEVEL, "ok", verdict.details)


def stated_names(source: str, header: str) -> CNames:
    """What everything public is called.

    Raises:
        UnreadPlanError: the header declares no network, or the source includes none.
    """
    prefix = re.search(r"\b(\w+)_(?:invoke\(void\)|push_row\()", header)
    included = re.search(r'^#include "([^"\n]+)"', source, re.MULTILINE)
    if prefix is None or included is None:
        raise UnreadPlanError("it is no network that `fit` writes")
    section = re.search(rf'^#define {prefix[1].upper()}_SECTION .*section\("([^"\n]*)"', source, re.MULTILINE)
    return CNames(prefix[1], included[1], section[1] if section else "")


def stated_program(model: CModel, source: str) -> tuple[Mapping[int, COperator], CProgram]:
    """The plan that a source states for a model, whether it is right or not, and the operators that it runs.

    Raises:
        UnreadPlanError: it states none, or one that is no plan of this model.
    """
    choices, nbytes, pushed = stated_choices(source)
    rows, spare = _with_stated_chains(_stated_rows(model, choices), choices), dict(choices.spare)
    if pushed and len(model.graph.inputs) != 1:
        raise UnreadPlanError(f"rows are handed over for one of {len(model.graph.inputs)} inputs")
    if not spare.keys() <= model.faster.keys():
        raise UnreadPlanError("working memory is kept for operators that need none")
    try:
        program = chosen_program(StagedGraph(rows, pushed), choices, nbytes)
    except ValueError as problem:
        raise UnreadPlanError(f"it states no plan of this model: {problem}") from problem
    program = with_scratch_at(replace(program, kernels=model.kernels), model.faster, spare)
    most = sum(value.nbytes + value.alignment for value in rows.values) + sum(program.scratch.values())
    if nbytes > most + 4 * len(program.scratch):
        raise UnreadPlanError(f"its buffer has {nbytes} bytes, and all of its values {most}")
    return model.operators_of(rows, program, {i: model.faster[i] for i in spare}), program


def _stated_rows(model: CModel, choices: PlanChoices) -> RowGraph:
    rows = model.rows
    if choices.order:
        if not can_run_in(rows, choices.order):
            raise UnreadPlanError("it states an order in which its operators cannot run")
        rows = rows_in_order(rows, choices.order)
    for repeat in choices.repeats:
        if model.kernels != "portable" or repeat not in set(possible_repeats(rows)):
            raise UnreadPlanError("it states that operators run again which cannot")
        rows = with_repeats(rows, [repeat])
    return rows


def _with_stated_chains(rows: RowGraph, choices: PlanChoices) -> RowGraph:
    members = [number for chain in choices.chains for number in chain.operators]
    possible = set(chains_between(rows, 0, len(rows.order))) if members else set()
    if len(set(members)) < len(members) or not possible.issuperset(choices.chains):
        raise UnreadPlanError("it states tiles of operators that make none")
    return with_chains(rows, choices.chains)


def _other_model(model: CModel, source: str) -> str:
    """Of which other file a source says that it was written; empty where it names this one, or none."""
    written = re.match(r"/\* (.*) as plain C, written by ", source)
    if written is None or written[1] == comment(model.file.name.rsplit("/", 1)[-1]):
        return ""
    return f"; it was written of {written[1]}"


def _other_release(source: str) -> str:
    """What to do where another release wrote a source; empty where this one did."""
    release = re.match(r"/\* .* written by modelplan (\S+)\.$", source.splitlines()[0] if source else "")
    if release is None or release[1] == __version__:
        return ""
    return f"; modelplan {release[1]} wrote it: write it again with `fit`"


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """All tokens but comments, each with its place."""
    return ((match[1], match.start()) for match in _TOKEN.finditer(text) if match[1])


def _first_difference(text: str, wanted: str) -> str:
    if _COMMENT.sub(" ", text) == _COMMENT.sub(" ", wanted):
        return ""  # tokens of large tables take long
    for (token, at), (right, _) in zip_longest(_tokens(text), _tokens(wanted), fillvalue=("nothing", len(text))):
        if token != right:
            return f"line {text.count(chr(10), 0, at) + 1} has {token} where {right} belongs"
    return ""
