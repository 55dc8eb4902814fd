"""Writes files whose memory other tools planned, with a Python that has these tools:

python planned_files.py executorch FOLDER    small.pte, branch.pte, loop.pte, cache.pte (state and
                                                 views), views.pte (of an open shape), delegate.pte
python planned_files.py xla FOLDER           the four files that XLA dumps of a program with loops and a branch
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def networks() -> dict[str, Any]:
    """The classes of the networks, by name."""
    import torch
    from functorch.experimental import control_flow
    from torch import nn

    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            a = torch.relu(self.first(x))
            return torch.nn.functional.max_pool2d(torch.relu(self.second(a)) + a, 2)

    class Delegated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(2, 4, 3, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(torch.cumsum(torch.relu(self.first(x)), -1), -1)

    class Branch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x * 2 + 1, lambda x: (x - 1) * 3, (x,))

    class Loop(nn.Module):
        def forward(self, rows: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return control_flow.map(lambda row, y: torch.relu(row + y) * y, rows, y) + y * 3

    class Views(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu((x * 2).view(x.shape[0] * 4, 2)) + 1

    class Cache(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(16, 32)
            self.register_buffer("cache", torch.zeros(1, 8, 16))

        def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
            query, key = self.project(x).chunk(2, -1)
            self.cache[:, at] = key
            return torch.softmax(query @ self.cache.transpose(1, 2), -1) @ self.cache + x

    return {kind.__name__: kind for kind in (Small, Delegated, Branch, Loop, Views, Cache)}


def write_executorch(folder: Path) -> None:
    """Exports six small networks."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge, to_edge_transform_and_lower

    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    nets = networks()
    cases: dict[str, tuple[Any, ...]] = {
        "Small": (torch.randn(1, 2, 8, 8),),
        "Branch": (torch.randn(4, 8),),
        "Loop": (torch.randn(3, 8), torch.randn(8)),
        "Cache": (torch.randn(1, 1, 16), torch.tensor([3])),
    }
    programs = {name.lower(): to_edge(torch.export.export(nets[name]().eval(), i)) for name, i in cases.items()}
    rows = {0: torch.export.Dim("rows", max=16)}
    programs["views"] = to_edge(torch.export.export(nets["Views"](), (torch.randn(4, 8),), dynamic_shapes=(rows,)))
    programs["delegate"] = to_edge_transform_and_lower(
        torch.export.export(nets["Delegated"]().eval(), cases["Small"]), partitioner=[XnnpackPartitioner()]
    )
    for name, program in programs.items():
        (folder / f"{name}.pte").write_bytes(program.to_executorch().buffer)


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
