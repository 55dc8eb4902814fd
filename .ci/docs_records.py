"""What the documentation reads classes by: records of the package are dataclasses."""

from __future__ import annotations

from typing import Any

from griffe import ExprCall, ExprName, Extension


class Records(Extension):
    """Names Python's dataclass where the package's own stands."""

    def on_class_instance(self, *, cls: Any, **_: Any) -> None:
        """Called with each class."""
        for decorator in cls.decorators:
            call = decorator.value
            if isinstance(call, ExprCall) and call.canonical_path == "modelplan.primitives.lazy_records.dataclass":
                call.function = ExprName("dataclasses.dataclass")
