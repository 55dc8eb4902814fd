"""Names of tensors cut to what tells them apart."""

from collections import Counter
from collections.abc import Iterator, Sequence

_LONGEST_RUN = 4


def name_forms(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Ways to write each name, from whole to short: the shortest is the least run of path components that no
    other name has, so that a label still tells its tensor from the others.

    Cost: O(characters) for paths of bounded depth.

    >>> [forms[-1] for forms in name_forms(["net/conv_1/Relu;net/norm", "net/conv_2/Relu"])]
    ['conv_1', 'conv_2']
    """
    paths = [name.split(";")[0].strip("/").split("/") for name in names]
    owners = Counter(run for path in paths for run in set(_runs(path)))
    return [_forms(name, path, owners) for name, path in zip(names, paths, strict=True)]


def _runs(path: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Neighbouring components, single ones first, those further back first."""
    for length in range(1, _LONGEST_RUN + 1):
        for start in range(len(path) - length, -1, -1):
            yield tuple(path[start : start + length])


def _forms(name: str, path: Sequence[str], owners: Counter[tuple[str, ...]]) -> tuple[str, ...]:
    key = next((run for run in _runs(path) if owners[run] == 1), tuple(path))
    start = next(i for i in range(len(path)) if tuple(path[i : i + len(key)]) == key)
    tails = ["/".join(path[i:]) for i in range(start + 1)]
    return tuple(dict.fromkeys((name, *tails, "/".join(key))))
