"""What the processor that runs the tests has its sessions keep."""

from __future__ import annotations

from pathlib import Path

#: Bytes that products of integers keep for a thread where the processor multiplies tiles (AMX), whose buffers are
#: larger, beyond those of others; predictions leave them out.
_TILES = 130_000


def kept_for_tiles() -> int:
    """What this processor keeps for each thread beyond what others do."""
    facts = Path("/proc/cpuinfo")
    return _TILES if facts.exists() and "amx_int8" in facts.read_text() else 0
