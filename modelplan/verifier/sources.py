"""Plans out of files: a .tflite that carries one, a modelplan JSON, a CSV with offsets, a header with a BufferPlan."""

from __future__ import annotations
