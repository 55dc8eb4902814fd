"""The manifest of a wake word for ESPHome: whether its tensor arena is enough for the ESP-NN that a build may have.

Sources: esphome/components/micro_wake_word (streaming_model.cpp takes `tensor_arena_size` as the bytes of the
interpreter's arena), its issues 15603 and 17750.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from modelplan.answers.file_changes import EsphomeArena
from modelplan.formats.whole_files import read_model, read_text
from modelplan.model import LibraryNeed
from modelplan.primitives.errors import ModelError, RefusedModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import SettledRequest, answers_paths
from modelplan.runtimes.tflm.declaration import required_arena
from modelplan.runtimes.tflm.kernels import ALL, find_libraries

#: The ABI of the chips; those with RISC-V have structures of the same size.
_ABI = "xtensa"
_KEY = "tensor_arena_size"
_NUMBER = re.compile(rf'("{_KEY}"\s*:\s*)\d+')


@dataclass(frozen=True, slots=True)
class EsphomeRequest(SettledRequest):
    """Asks which tensor arena the wake word of a manifest needs.

    Args:
        path: the manifest, a .json file beside its model.
    """

    path: str


@answers_paths(EsphomeRequest)
def esphome_arena(request: EsphomeRequest) -> EsphomeArena:
    """The tensor arena that is enough for a wake word on every chip and with every version of ESP-NN that is known.

    Args:
        request: the manifest.

    Returns:
        The size that the manifest states, what each version takes, and the text of the manifest with the new size.

    Raises:
        ModelError: the manifest or its model cannot be read, or TFLM would not run the model.
        RequestError: the manifest states no tensor arena.
    """
    text = read_text(request.path)
    stated = _stated(text, request.path)
    model = Path(request.path).parent / str(_manifest(text, request.path).get("model", ""))
    if not model.is_file():
        raise ModelError(f"{request.path}: its model {model.name!r} is not beside it")
    content, libraries = read_model(model), [row for row in find_libraries(ALL) if _ABI in row.abis and not row.plain]
    needs = []
    for row in libraries:
        needed = required_arena(content, str(model), _ABI, row.name)
        if needed.refusals:
            raise RefusedModelError(f"{model}: TFLM would not run it", needed.refusals, needed.remedies)
        needs.append(LibraryNeed(row.name, row.note, needed.arena, needed.head, needed.arena - needed.head))
    most = max(need.arena for need in needs)
    return EsphomeArena(str(model), stated, most, tuple(needs), _NUMBER.sub(rf"\g<1>{most}", text, count=1))


def _manifest(text: str, path: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ModelError(f"{path}: no JSON: {problem}") from None
    if not isinstance(document, dict):
        raise ModelError(f"{path}: expected an object, the manifest of a wake word")
    return document


def _stated(text: str, path: str) -> int:
    """The tensor arena in the manifest."""
    micro = _manifest(text, path).get("micro")
    size = micro.get(_KEY) if isinstance(micro, dict) else None
    if not isinstance(size, int) or isinstance(size, bool) or len(_NUMBER.findall(text)) != 1:
        raise RequestError(f'{path}: expected one number "{_KEY}" under "micro", as manifests of version 2 have it')
    return size
