"""A stand-in for TFLM's resolver, by which what we write is compiled without TFLM."""

from __future__ import annotations

from collections.abc import Iterable


def resolver(operators: Iterable[str]) -> str:
    """The header of a resolver to which these operators can be added, such as "Conv2D"."""
    adds = "".join(f"  TfLiteStatus Add{name}() {{ return kTfLiteOk; }}\n" for name in operators)
    return f"""
#pragma once
enum TfLiteStatus {{ kTfLiteOk = 0, kTfLiteError = 1 }};
namespace tflite {{
template <unsigned count> struct MicroMutableOpResolver {{
{adds}}};
}}
"""
