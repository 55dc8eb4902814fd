"""The JSON documents that commands write: of each its version and its JSON Schema."""

from collections.abc import Callable, Mapping, Sequence

from modelplan.answers import explanation as explaining
from modelplan.answers import model_difference as differences
from modelplan.answers.check_outcomes import Figures
from modelplan.answers.placement_answers import Row
from modelplan.answers.summary import RuntimePlan
from modelplan.answers.sweep_summary import SweepFindings
from modelplan.model import BufferKind, LibraryNeed, Part, Requirement
from modelplan.outputs import checks
from modelplan.outputs.checks import for_servers
from modelplan.outputs.reports import (
    comparison_report,
    difference_report,
    shared_report,
    stream_report,
    sweep_report,
    target_report,
    verdicts_report,
)
from modelplan.outputs.reports import explanation_report as explanation
from modelplan.outputs.schemas.plan_schema import (
    Definitions,
    Schema,
    array_of,
    head,
    moves_schema,
    plan_schema,
    record,
    region_schema,
)
from modelplan.questions.budgets import earlier_figures
from modelplan.targets.device import Block, Device

Fields = Mapping[str, Schema]

_INTEGER: Schema = {"type": "integer"}
_INTEGER_OR_NONE: Schema = {"type": ["integer", "null"]}
_TEXT: Schema = {"type": "string"}
_TEXT_OR_NONE: Schema = {"type": ["string", "null"]}
_FLAG: Schema = {"type": "boolean"}


def schema_of(name: str) -> Schema:
    """The schema of the document `name`, a key of `DOCUMENTS`; `$id` carries its version.

    Fields may be added without a new version, so that unknown ones are allowed.
    """
    return DOCUMENTS[name]()


def _suggestion(definitions: Definitions) -> Schema:
    """A suggestion, whose kinds are words."""
    suggestion = definitions.of(explaining.Suggestion)
    kinds = {"needs": explaining.Needs, "way": explaining.Way}
    words: Fields = {name: {"enum": [kind.name.lower() for kind in enum]} for name, enum in kinds.items()}
    definitions.extend(explaining.Suggestion, {**words, "name": _TEXT, "free": _FLAG})
    return suggestion


def _explain() -> Schema:
    definitions = Definitions()
    suggestion = _suggestion(definitions)
    fields: Fields = {
        "model": _TEXT,
        "capacity": _INTEGER_OR_NONE,
        "fits_after": _TEXT_OR_NONE,
        "ways_that_fit": array_of(_TEXT),
        "requirement": definitions.of(Requirement),
        "peak": definitions.of(explaining.Peak),
        "suggestions": array_of(suggestion),
        "same": array_of(_TEXT),
        "refused": array_of(record({"change": _TEXT, "reason": _TEXT})),
        "untried": array_of(_TEXT),
        "what_if": array_of(definitions.of(explaining.Compression)),
    }
    return _versioned("explain", explanation.SCHEMA, "what `explain --json` finds out", fields, definitions)


def _diff() -> Schema:
    definitions = Definitions()
    figure = record({"before": _INTEGER_OR_NONE, "after": _INTEGER_OR_NONE, "delta": _INTEGER})
    side = {
        "model": _TEXT,
        "basis": _TEXT,
        "refusals": array_of(_TEXT),
        "capacity": _INTEGER_OR_NONE,
        "peak": definitions.of(differences.PeakStep),
        "live": array_of(_INTEGER),
    }
    named = record({"name": _TEXT, **figure["properties"]})
    operator = {
        "change": definitions.of(differences.Change),
        "before": _INTEGER_OR_NONE,
        "after": _INTEGER_OR_NONE,
        "label": _TEXT,
        "line": _TEXT,
        "details": array_of(_TEXT),
        "effect": _INTEGER,
        **dict.fromkeys(("outputs", "scratch", "kept", "weights", "in_peak", "live"), figure),
    }
    fields: Fields = {
        "old": record(side),
        "new": record(side),
        "same": _FLAG,
        "whole": _FLAG,
        "settings": array_of(definitions.of(differences.Setting)),
        "arena": figure,
        "parts": array_of(named),
        "flash": array_of(named),
        "alive": array_of(record({"tensors": array_of(_TEXT), "made_by": _TEXT, **figure["properties"]})),
        "changes": array_of(record(operator)),
        "moved": _INTEGER,
    }
    what, more = "what `diff --json` finds out", {"by_itself": figure}
    return _versioned("diff", difference_report.SCHEMA, what, fields, definitions, more)


def _compare() -> Schema:
    records = Definitions()
    fields: Fields = {"source": _TEXT, "lower_bound": _INTEGER, "rows": array_of(records.of(Row))}
    more: Fields = {"kept": _INTEGER, "counted": _TEXT, "today": records.of(RuntimePlan), "target": _target(records)}
    return _versioned("compare", comparison_report.SCHEMA, "all answers, from `compare --json`", fields, records, more)


def _check() -> Schema:
    definitions = Definitions()
    alternative = record({"change": _TEXT, "commands": array_of(_TEXT), "refusal": _TEXT})
    alternative["properties"] |= {"required": _INTEGER, "head": _INTEGER, "fits": _FLAG}
    sized: Fields = {
        "model": _TEXT,
        "fits": _FLAG,
        "required": _INTEGER_OR_NONE,
        "excess": _INTEGER_OR_NONE,
        "refusals": array_of(_TEXT),
        "basis": _TEXT,
        "parts": array_of(definitions.of(Part)),
        "libraries": array_of(definitions.of(LibraryNeed)),
        "ways": array_of(_suggestion(definitions)),
        "searches": array_of(record({"name": _TEXT, "seconds": _INTEGER, "command": _TEXT})),
        "alternatives": array_of(alternative),
    }
    model, unread = record(sized), record({"model": _TEXT, "fits": {"const": False}, "problem": _TEXT})
    for entry in (model, unread):
        entry["properties"] |= {"name": _TEXT}
    number, either = {"type": "number"}, {"type": ["number", "null"]}
    pair = record({"before": number, "after": either})
    region = record({"name": _TEXT, "used": _INTEGER, "size": _INTEGER})
    again = record({"model": _TEXT, "fits": _FLAG, "seconds": pair, "traffic": pair, "regions": array_of(region),
                     "reasons": array_of(_TEXT)})  # fmt: skip
    fields: Fields = {"models": array_of({"anyOf": [model, unread, again]})}
    more: Fields = {"layout": _TEXT, "budget": _INTEGER_OR_NONE, "budgets": _TEXT, "target": _target(definitions)}
    return _versioned("check", checks.SCHEMA, "verdicts, from `check --json`", fields, definitions, more)


def _check_limits() -> Schema:
    """The list of `check --format json`, in size-limit's form, which has no place for a version."""
    definitions = Definitions()
    figures = definitions.of(Figures)
    definitions.extend(Figures, {})
    flat = definitions.definitions[Figures.__name__]["properties"]
    settings = {"runtime": _TEXT, "abi": _TEXT, "kernels": _TEXT, "dims": array_of(_TEXT), "shapes": array_of(_TEXT)}
    row = record(
        {"name": _TEXT, "passed": _FLAG, "size": _INTEGER_OR_NONE, "sizeLimit": _INTEGER_OR_NONE, "model": _TEXT}
    )
    baseline = record({"source": _TEXT, "figures": {"anyOf": [figures, {"type": "null"}]}, "change": _INTEGER_OR_NONE})
    baseline["properties"]["reason"] = _TEXT
    row["properties"] |= {
        "quantity": _TEXT,
        "target": _TEXT_OR_NONE,
        **settings,
        **flat,
        "reason": _TEXT,
        "baseline": baseline,
        "causes": array_of(_TEXT),
        "fix": record({"change": _TEXT, "commands": array_of(_TEXT), "size": _INTEGER_OR_NONE}),
    }
    version, what = for_servers.SCHEMA, "one object for each limit, from `check --format json`"
    return _head("check-limits", version, what) | array_of(row) | _defined(definitions)


def _together() -> Schema:
    end = record({"model": _TEXT, "tensor": _INTEGER, "name": _TEXT})
    member = record({"tensor": _INTEGER, "delta": _INTEGER})
    kinds = {"enum": [str(kind) for kind in BufferKind]}
    numbers: Fields = dict.fromkeys(("offset", "size", "start", "end"), _INTEGER)
    buffer = record({"name": _TEXT, **numbers, "kind": kinds, "tensors": array_of(member)})
    model: Fields = {
        **dict.fromkeys(("name", "path", "runtime", "alias"), _TEXT),
        **dict.fromkeys(("alone", "first_step", "steps"), _INTEGER),
        "buffers": array_of(buffer),
    }
    arena = record(
        {"arena": _INTEGER, "head": _INTEGER, "tail": _INTEGER,
         "tails": {"type": "object", "additionalProperties": _INTEGER}}
    )  # fmt: skip
    either = {"anyOf": [arena, {"type": "null"}]}
    arenas = record(
        {"abi": _TEXT, "kernels": _TEXT, "separate": array_of(_INTEGER), **dict.fromkeys(_SHARED_ARENAS, either)}
    )
    arenas["properties"]["reason"] = _TEXT
    size = {"type": ["integer", "null"], "description": "Bytes of the whole arena."}
    arenas["properties"]["libraries"] = array_of(record({"kernels": _TEXT, "pinned": size, "written": size}))
    fields: Fields = {
        "made_by": _TEXT,
        "height": _INTEGER,
        "lower_bound": _INTEGER,
        "optimal": _FLAG,
        "separate": _INTEGER,
        "all_in_turn": _INTEGER,
        "in_turn": array_of(array_of(_TEXT) | {"minItems": 2, "maxItems": 2}),
        "order": array_of(_TEXT),
        "pipelines": array_of(record({"from": end, "to": end})),
        "kept": array_of(end),
        "models": array_of(record(model)),
    }
    more: Fields = {"arenas": arenas, "capacity": _INTEGER, "fits": _FLAG}
    what = "several models in one memory, from `together --json`"
    return _versioned("together", shared_report.SCHEMA, what, fields, Definitions(), more)


def _targets() -> Schema:
    definitions = Definitions()
    device = definitions.of(Device)
    definitions.of(Block)
    usable = {"allOf": [definitions.of(Block)], "required": ["usable"], "properties": {"usable": _INTEGER}}
    definitions.extend(Device, {"blocks": array_of(usable), "arena": _INTEGER_OR_NONE})
    fields: Fields = {"targets": array_of(device)}
    return _versioned("targets", target_report.SCHEMA, "devices, from `targets --json`", fields, definitions)


def _verdicts() -> Schema:
    change = {"anyOf": [record({"name": _TEXT, "arena": _INTEGER}), {"type": "null"}]}
    row = {
        **dict.fromkeys(("target", "title", "kernels", "abi"), _TEXT),
        "fits": {"type": ["boolean", "null"]},
        **dict.fromkeys(("arena", "memory", "headroom", "flash", "plain_c"), _INTEGER_OR_NONE),
        "file_bytes": _INTEGER,
        "refusals": array_of(_TEXT),
        "change": change,
    }
    fields: Fields = {"model": _TEXT, "runtime": _TEXT, "verdicts": array_of(record(row))}
    what = "whether a model fits each of several targets, from `analyze --target all --json`"
    return _versioned("verdicts", verdicts_report.SCHEMA, what, fields, Definitions())


def _report() -> Schema:
    records = Definitions()
    records.of(SweepFindings)
    fields, words = records.definitions.pop(SweepFindings.__name__)["properties"], "what the rows of a sweep say"
    return _versioned("report", sweep_report.SCHEMA, f"{words}, from `report --json`", fields, records)


def _stream() -> Schema:
    number, integers = {"type": "number"}, ("memory", "kept", "window", "streamed")
    needed = {"type": ["number", "null"], "description": "Bytes per second; null where no rate is enough."}
    point = record({**dict.fromkeys(integers, _INTEGER), "seconds": number, "needed": needed})
    chosen = record(
        {"memory": _INTEGER, "seconds": number, "waiting": number, "copied": _INTEGER, "activations_copied": _FLAG}
    )
    fields: Fields = {
        "modelplan_stream": {"const": stream_report.SCHEMA, "description": "The version of the document."},
        **dict.fromkeys(("made_by", "model"), _TEXT),
        **dict.fromkeys(("weights", "activations", "least"), _INTEGER),
        "computing": number,
        "chosen": {"anyOf": [chosen, {"type": "null"}]},
        "curves": array_of(record({"rate": _INTEGER, "points": array_of(point)})),
    }
    return _head("stream", stream_report.SCHEMA, "memory against time, from `stream --json`") | record(fields)


def _baseline() -> Schema:
    definitions = Definitions()
    definitions.of(Figures)
    row = record({"model": _TEXT, **definitions.definitions[Figures.__name__]["properties"]})
    row["properties"] |= {
        **dict.fromkeys(("runtime", "abi", "kernels"), _TEXT),
        **dict.fromkeys(("dims", "shapes"), array_of(_TEXT)),
    }
    fields: Fields = {
        "modelplan_baseline": {"const": earlier_figures.SCHEMA, "description": "The version of the document."},
        "made_by": _TEXT,
        "models": array_of(row),
    }
    head = _head("baseline", earlier_figures.SCHEMA, "what models needed, from `check --write baseline`")
    return head | record(fields) | _defined(definitions)


def _target(definitions: Definitions) -> Schema:
    table = {"type": "object", "additionalProperties": _INTEGER}
    return record(
        {"name": _TEXT, "budget": _INTEGER_OR_NONE, "block": {"anyOf": [definitions.of(Block), {"type": "null"}]},
         "benchmark": _FLAG, "reserved": table, "used": table, "arena_symbol": _TEXT,
         "kernels": _TEXT, "abi": _TEXT}
    )  # fmt: skip


def _head(name: str, version: int, what: str) -> Schema:
    return head(name, version, f"{what[0].upper()}{what[1:]}. Sizes are bytes.")


def _defined(definitions: Definitions) -> Schema:
    """What the schemas of types refer to, without what a plan alone has."""
    kinds = {name: definition for name, definition in sorted(definitions.definitions.items()) if name != "Value"}
    return {"$defs": kinds} if kinds else {}


def _versioned(
    name: str, version: int, what: str, fields: Fields, definitions: Definitions, optional: Fields | None = None
) -> Schema:
    """The schema of an object with `fields` and its version, and with `optional` ones where they apply."""
    document = record({"schema": {"const": version, "description": "The version of the document."}, **fields})
    document["properties"] |= optional or {}
    return _head(name, version, what) | document | _defined(definitions)


_SHARED_ARENAS: Sequence[str] = ("shared", "pinned", "written")

#: The document of each name.
DOCUMENTS: dict[str, Callable[[], Schema]] = {
    "plan": plan_schema,
    "explain": _explain,
    "diff": _diff,
    "compare": _compare,
    "check": _check,
    "check-limits": _check_limits,
    "baseline": _baseline,
    "together": _together,
    "report": _report,
    "targets": _targets,
    "verdicts": _verdicts,
    "memories": region_schema,
    "moves": moves_schema,
    "stream": _stream,
}
