"""Where LiteRT keeps each tensor of a model, asked in a process of its own: `addresses(MODEL)`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np


def addresses(model: Path) -> dict[int, int]:
    """The address of each tensor that has memory, by its index, with kernels without delegates.

    Raises:
        RuntimeError: LiteRT does not run the model.
    """
    done = subprocess.run([sys.executable, __file__, model], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.splitlines() or [f"status {done.returncode}"])[-1])
    return {int(tensor): address for tensor, address in json.loads(done.stdout.splitlines()[-1]).items()}


def _addresses(path: str) -> dict[int, int]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_path=path, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    found = {}
    for detail in interpreter.get_tensor_details():
        if detail["shape"].size or detail["dtype"] is not np.void:
            try:
                found[detail["index"]] = interpreter.tensor(detail["index"])().__array_interface__["data"][0]
            except (ValueError, RuntimeError):
                continue  # no memory of its own
    return found


if __name__ == "__main__":
    print(json.dumps(_addresses(sys.argv[1])))
