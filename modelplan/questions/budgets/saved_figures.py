"""The baseline file: what the models of a project needed when it was written, as JSON with a schema version."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from modelplan.answers.check_outcomes import CheckSetting, Earlier, Figures, Outcome
from modelplan.primitives.version import __version__

#: The version of the document: raised when a field changes its meaning or goes, not when one is added.
SCHEMA = 1
_SETTING = ("runtime", "abi", "kernels", "dims", "shapes")


@dataclass(frozen=True, slots=True)
class SavedFigures:
    """What a baseline file holds, by model and setting; `reason` says why it holds nothing that can be used."""

    source: str
    rows: Mapping[tuple[str, CheckSetting], Figures]
    reason: str = ""

    def earlier(self, model: str, setting: CheckSetting) -> Earlier:
        """What the model needed."""
        figures = self.rows.get((model, setting))
        others = any(known == model for known, _ in self.rows)
        missing = f"no figure of {model}" + (" for this runtime, ABI and kernels" if others else "")
        return Earlier(self.source, figures, "" if figures else self.reason or f"{self.source} has {missing}")


def baseline_document(outcomes: Iterable[Outcome]) -> str:
    """The figures of all models that could be sized, in the order of their names, as a JSON document."""
    rows = {}
    for outcome in outcomes:
        if outcome.figures is not None and outcome.setting is not None:
            setting = {name: value for name, value in asdict(outcome.setting).items() if value}
            row = {"model": outcome.check.key, **setting, **asdict(outcome.figures)}
            rows[outcome.check.key, tuple(asdict(outcome.setting).values())] = row
    ordered = [rows[key] for key in sorted(rows)]
    document = {"modelplan_baseline": SCHEMA, "made_by": f"modelplan {__version__}", "models": ordered}
    return json.dumps(document, indent=1) + "\n"


def read_baseline(text: str, source: str) -> SavedFigures:
    """What the baseline in `text` holds; of another format nothing can be used, and the reason is kept."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return SavedFigures(source, {}, f"{source} is not a JSON document")
    schema = document.get("modelplan_baseline") if isinstance(document, dict) else None
    if schema is None:
        return SavedFigures(source, {}, f"{source} is no baseline that modelplan wrote")
    if schema != SCHEMA:
        return SavedFigures(source, {}, f"{source} has format {schema!r:.20}, this modelplan reads {SCHEMA}")
    models = document.get("models")
    rows = [row for row in models if isinstance(row, dict)] if isinstance(models, list) else []
    return SavedFigures(source, dict(pair for row in rows if (pair := _read_row(row)) is not None))


def _read_row(row: Mapping[str, Any]) -> tuple[tuple[str, CheckSetting], Figures] | None:
    """One model with its setting and figures; None where a field is missing or of another type."""
    values = [row.get(name, "") for name in ("model", *_SETTING[:3])]
    lists = [row.get(name, []) for name in _SETTING[3:]]
    sizes = [row.get(name) for name in ("arena", "head", "flash")]
    whole = all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in sizes)
    typed = all(isinstance(text, str) for text in values) and all(isinstance(texts, list) for texts in lists)
    if not whole or not typed:
        return None
    model, runtime, abi, kernels = map(str, values)
    dims, shapes = (tuple(map(str, texts)) for texts in lists)
    return (model, CheckSetting(runtime, abi, kernels, dims, shapes)), Figures(*(int(size or 0) for size in sizes))
