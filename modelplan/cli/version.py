"""What `--version` says: the version, and which build of the core answers."""

from __future__ import annotations

import platform
import sys
import sysconfig
from collections.abc import Iterator

from modelplan.primitives.version import __version__


def version_lines() -> Iterator[str]:
    """The version; compiler, ABI and platform of the core; Python; the git revision where it is known."""
    from modelplan.primitives import _core

    yield f"modelplan {__version__}"
    abi = "abi3" if _core.STABLE_ABI else f"cp{sys.version_info[0]}{sys.version_info[1]}"
    yield f"core: {_core.COMPILER}, {abi}, {sysconfig.get_platform()}"
    yield f"python: {platform.python_implementation()} {platform.python_version()}"
    if _core.REVISION:
        yield f"revision: {_core.REVISION}"
