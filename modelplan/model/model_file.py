"""A model file, and what it runs on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from modelplan.model.graph import Graph
from modelplan.model.runtime_facts import Runtime
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown

#: No microcontroller has addresses of 64 bits.
USUAL_ABI = "32"


@dataclass(frozen=True, slots=True)
class Target:
    """A runtime, the name of the ABI that it is built for, and the options that tell `reorder` of the runtime.

    `given` are the words by which somebody named the device, the kernels and the ABI: option, value, option, value.
    """

    runtime: Runtime
    abi: str
    options: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def build(self) -> tuple[str, ...]:
        """The options that name device, kernels and ABI as they were given; without any those that are not usual."""
        if self.given:
            return self.given
        kernels = kernels_words(self.runtime.kernels) if self.runtime.kernels != self.runtime.usual_kernels else ()
        whole = self.runtime.requires is not None
        return (*kernels, *(("--abi", self.abi) if whole and self.abi != USUAL_ABI else ()))

    @property
    def words(self) -> tuple[str, ...]:
        """All options after which a command asks about the same runtime, device, kernels and ABI."""
        return (*without_options(self.options, "--kernels", "--custom"), *self.build)

    def with_kernels(self, runtime: Runtime) -> Target:
        """The same with the kernels of `runtime`, as if they had been named."""
        given = (*without_options(self.given, "--kernels", "--custom"), *kernels_words(runtime.kernels))
        return replace(self, runtime=runtime, given=given)


def kernels_words(kernels: str) -> tuple[str, ...]:
    """The options that name a kernel library, and those that state the user's own kernels behind its name.

    >>> kernels_words("esp-nn+MyFilter=64"), kernels_words("+MyFilter=64")
    (('--kernels', 'esp-nn', '--custom', 'MyFilter=64'), ('--custom', 'MyFilter=64'))
    """
    library, *own = kernels.split("+")
    named = ("--kernels", library) if library else ()
    return (*named, *(word for stated in own for word in ("--custom", stated)))


def without_options(words: Sequence[str], *names: str) -> tuple[str, ...]:
    """Words of options that each have a value, without those of these names."""
    pairs = zip(words[::2], words[1::2], strict=True)
    return tuple(word for pair in pairs if pair[0] not in names for word in pair)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ModelFile(Shown):
    """A model file: its path, its content, the graph in it. Each is equal to itself alone."""

    path: str
    content: bytes
    graph: Graph
