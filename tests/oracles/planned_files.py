"""Writes files whose memory other tools planned, with a Python that has these tools:

python planned_files.py executorch FOLDER    small.pte, branch.pte, loop.pte, cache.pte (state and views)
python planned_files.py xla FOLDER           the four files that XLA dumps of a program with loops and a branch
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def write_executorch(folder: Path) -> None:
    """Exports four small networks."""
    import torch
    from executorch.exir import to_edge
    from functorch.experimental import control_flow
    from torch import nn

    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            a = torch.relu(self.first(x))
            return torch.nn.functional.max_pool2d(torch.relu(self.second(a)) + a, 2)

    class Branch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x * 2 + 1, lambda x: (x - 1) * 3, (x,))

    class Loop(nn.Module):
        def forward(self, rows: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return control_flow.map(lambda row, y: torch.relu(row + y) * y, rows, y) + y * 3

    class Cache(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(16, 32)
            self.register_buffer("cache", torch.zeros(1, 8, 16))

        def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
            query, key = self.project(x).chunk(2, -1)
            self.cache[:, at] = key
            return torch.softmax(query @ self.cache.transpose(1, 2), -1) @ self.cache + x

    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    cases: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "small": (Small(), (torch.randn(1, 2, 8, 8),)),
        "branch": (Branch(), (torch.randn(4, 8),)),
        "loop": (Loop(), (torch.randn(3, 8), torch.randn(8))),
        "cache": (Cache(), (torch.randn(1, 1, 16), torch.tensor([3]))),
    }
    for name, (network, inputs) in cases.items():
        program = to_edge(torch.export.export(network.eval(), inputs)).to_executorch()
        (folder / f"{name}.pte").write_bytes(program.buffer)


def write_xla(folder: Path) -> None:
    """Compiles a program with two loops, one in the other, and a branch."""
    with tempfile.TemporaryDirectory() as dumped:
        os.environ["XLA_FLAGS"] = f"--xla_dump_to={dumped} --xla_dump_hlo_as_text"
        import jax
        import jax.numpy as jnp
        from jax import lax

        def program(x: Any) -> Any:
            def outer(i: Any, s: Any) -> Any:
                inner = lax.fori_loop(0, i, lambda _, t: t * 1.01 + s.mean(), s)
                return inner + lax.cond(i > 2, jnp.sin, lambda z: z, s)

            return lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, outer(*c)), (jnp.int32(0), x))

        jax.jit(program).lower(jnp.ones((64, 64))).compile()
        for ending in ("", "-buffer-assignment", "-buffer-assignment-values", "-live-range"):
            (found,) = Path(dumped).glob(f"*jit_program.cpu_after_optimizations{ending}.txt")
            text = found.read_text().replace(f"{Path(__file__).resolve().parent}/", "")
            (folder / f"loops{ending}.txt").write_text(text)


if __name__ == "__main__":
    {"executorch": write_executorch, "xla": write_xla}[sys.argv[1]](Path(sys.argv[2]))
