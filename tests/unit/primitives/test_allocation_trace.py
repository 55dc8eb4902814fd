"""The allocation trace counts what is allocated, whatever comes and goes in which order."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from modelplan.primitives.allocation_trace import ENVIRONMENT, LIBRARY

#: Blocks come and go at random; after each hundred the bytes of the trace are those of the blocks that are there.
_PROGRAM = """
import ctypes, gc, random, sys
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.realloc.restype = ctypes.c_void_p
libc.free.argtypes, libc.malloc.argtypes = [ctypes.c_void_p], [ctypes.c_size_t]
libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.trace_live.restype = ctypes.c_longlong
rng, held = random.Random(int(sys.argv[1])), {}
gc.disable()
libc.trace_count()
for turn in range(400):
    before = libc.trace_live(1)
    blocks = [(libc.malloc(size), size) for size in (rng.randrange(1, 5000) for _ in range(rng.randrange(400)))]
    gone = rng.sample(sorted(held), rng.randrange(len(held) + 1))
    moved = [at for at in gone if rng.random() < 0.2]
    own = libc.trace_live(1)
    for at in moved:
        blocks.append((libc.realloc(at, 77), 77))
    for at in set(gone) - set(moved):
        libc.free(at)
    after = libc.trace_live(1)
    change = 77 * len(moved) - sum(held[at] for at in gone)
    assert abs(after - own - change) < 4096, (turn, after - own, change)  # the interpreter's own
    for at in gone:
        del held[at]
    held.update(blocks)
total = sum(held.values())
before = libc.trace_live(1)
for at in held:
    libc.free(at)
assert abs(before - libc.trace_live(1) - total) < 4096
"""


@pytest.mark.skipif(not LIBRARY.exists(), reason="the trace is for Linux")
@pytest.mark.parametrize("seed", range(2))
def test_bytes_are_those_of_the_blocks_that_are_there(seed: int) -> None:
    command = [sys.executable, "-c", _PROGRAM, str(seed)]
    done = subprocess.run(command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
