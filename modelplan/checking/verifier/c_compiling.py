"""What a compiler makes of a network in plain C: bytes of code and tables, and the deepest stack."""

import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from modelplan.primitives.lazy_records import dataclass

#: Compilers with their flags, the likeliest target first. GCC says what calls what, and the stack of each function.
_COMPILERS = (
    ("arm-none-eabi-gcc", ("-mcpu=cortex-m4", "-mthumb"), "for a Cortex-M4"),
    ("gcc", ("-fno-pic",), "for this machine"),
)
#: Tables that are equal without their numbers must not become one.
_FLAGS = ("-std=c99", "-Os", "-fno-ipa-icf-variables", "-fcallgraph-info=su", "-c")
_SECONDS = 120
#: The numbers of a large table behind its first ones: the compiler takes long to read them, and zeros are as long.
_MANY_NUMBERS = re.compile(r"(\] = \{[^{};]{400}[^{};,]*,)[^{};]{400,}(?=\};)")


@dataclass(frozen=True, slots=True)
class CompiledNetwork:
    """Bytes of code, of constant tables, and of the deepest chain of calls, what the C library calls left out."""

    code: int
    tables: int
    stack: int
    compiler: str


def compiled_network(source: str, header: str, header_name: str) -> CompiledNetwork | None:
    """Compiles a network; None where no compiler is there, or it lacks what the network includes."""
    for compiler, flags, target in _COMPILERS:
        if not shutil.which(compiler):
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "network.c").write_text(_MANY_NUMBERS.sub(r"\1", source))
            (folder / header_name).write_text(header)
            if _ran(folder, compiler, *_FLAGS, *flags, "network.c") is None:
                return None
            listed = _ran(folder, compiler.removesuffix("gcc") + "size", "-A", "network.o")
            if listed is None:
                return None
            sizes = {word: int(size) for word, size in re.findall(r"^(\.\S+)\s+(\d+)", listed, re.MULTILINE)}
            stack = deepest_stack((folder / "network.ci").read_text())
        code, tables = (sum(n for key, n in sizes.items() if key.startswith(kind)) for kind in (".text", ".rodata"))
        return CompiledNetwork(code, tables, stack, f"{compiler} -Os {target}")
    return None


def _ran(folder: Path, *command: str) -> str | None:
    """What a program prints; None where it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603
    return done.stdout if done.returncode == 0 else None


def deepest_stack(graph: str) -> int:
    r"""The bytes of the deepest chain of calls in a graph as GCC writes it.

    >>> deepest_stack('''node: { title: "a" label: "a\\nf.c:1:1\\n16 bytes (static)" }
    ... node: { title: "b" label: "b\\nf.c:2:1\\n40 bytes (static)" }
    ... edge: { sourcename: "a" targetname: "b" label: "f.c:1:9" }''')
    56
    """
    own = {name: int(n) for name, n in re.findall(r'node: \{ title: "([^"]+)" label: "[^"]*\\n(\d+) bytes', graph)}
    calls: dict[str, set[str]] = {}
    for caller, called in re.findall(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', graph):
        calls.setdefault(caller, set()).add(called)

    @cache
    def below(name: str) -> int:
        return own.get(name, 0) + max((below(called) for called in calls.get(name, ())), default=0)

    return max((below(name) for name in own), default=0)
