"""WrittenSpans beside the fingerprints of every byte: what is said to stand in memory stands there byte by byte."""

import random

import numpy as np
from shares import share

from modelplan.checking.verifier.rewrites.contents import UNWRITTEN, Catalogue, Content, each_row
from modelplan.checking.verifier.rewrites.fingerprints import JUNK, Fingerprints
from modelplan.checking.verifier.rewrites.written_spans import WrittenSpan, WrittenSpans

SIZE, CHANNELS = 120, 2


def two_maps() -> Catalogue:
    """Two maps of four rows and columns in the first file; the second one makes rows and columns from 4 on."""
    catalogue = Catalogue()
    for name in "ab":
        number = catalogue.base(name, [], 4, "an operator", name)
        for axis in range(4):
            catalogue.coordinates(number, axis, each_row(4))
    catalogue.close()
    for number in range(2):
        for axis in (1, 2):
            catalogue.coordinates(number, axis, each_row(6))
    return catalogue


def some_rows(rng: random.Random) -> Content:
    def run(extent: int) -> tuple[int, ...]:
        first = rng.randrange(6 - extent)
        return tuple(UNWRITTEN if rng.random() < 0.1 else first + i for i in range(extent))

    inner = (*range(4),) if rng.random() < 0.7 else run(rng.randint(1, 3))
    return Content(rng.randrange(2), ((0,), run(rng.randint(1, 4)), inner, tuple(range(CHANNELS))))


class Memory:
    """WrittenSpans, and a fingerprint for each byte."""

    def __init__(self) -> None:
        self.prints = Fingerprints(two_maps())
        self.spans, self.bytes = WrittenSpans(SIZE, self.prints.catalogue), np.zeros(SIZE, dtype=np.uint64)

    def put(self, at: int, content: Content | None, count: int) -> None:
        end = min(at + count, SIZE)
        self.bytes[at:end] = JUNK if content is None else self.prints.of_bytes(content, 1).reshape(-1)
        self.spans.put(WrittenSpan(at, end, 1, content, 0))

    def holds(self, at: int, content: Content, first: int, end: int) -> bool:
        """Whether all bytes that are wanted stand there."""
        expected, wanted = self.prints.of_bytes(content, 1).reshape(-1), self.prints.wanted(content)
        wrong = self.bytes[at : at + expected.size] != expected
        wrong &= True if wanted is None else wanted.reshape(-1)
        return not wrong[first - at : end - at].any()


def test_what_is_said_to_stand_does() -> None:
    stood, held = 0, 0
    for seed in range(share(1200)):
        rng, memory = random.Random(seed), Memory()
        known = [(0, some_rows(rng))]
        for _ in range(rng.randint(1, 6)):
            content = some_rows(rng) if rng.random() < 0.5 else rng.choice(known)[1]
            count = int(np.prod(content.shape))
            at = min(max(rng.choice(known)[0] + rng.choice((0, 0, 8, 16, 4, 1)), 0), SIZE - count)
            known.append((at, content))
            memory.put(at, content if rng.random() < 0.9 else None, count)
        for at, content in known:
            count = int(np.prod(content.shape))
            first, end = (
                sorted((rng.randrange(count + 1), rng.randrange(count + 1))) if rng.random() < 0.5 else (0, count)
            )
            if first < end:
                stands = memory.spans.is_there(at, 1, content, at + first, at + end)
                held += memory.holds(at, content, at + first, at + end)
                stood += stands
                assert not stands or memory.holds(at, content, at + first, at + end), (seed, at, content)
    assert 0.8 * held < stood <= held


def test_a_tensor_that_another_one_lies_over_stands_as_far_as_it_is_not_covered() -> None:
    memory = Memory()
    whole = Content(0, ((0,), (0, 1, 2, 3), (0, 1, 2, 3), (0, 1)))
    memory.put(0, whole, 32)
    memory.put(10, None, 3)
    stands = [memory.spans.is_there(0, 1, whole, 8 * row, 8 * row + 8) for row in range(4)]
    assert stands == [True, False, True, True]
    assert not memory.spans.is_there(0, 2, whole, 16, 24)  # elements of two bytes lie otherwise


def test_written_spans_are_painted_once_and_where_they_stand() -> None:
    spans = WrittenSpans(20, Catalogue())
    below, above = WrittenSpan(0, 20, 1, None, 1), WrittenSpan(5, 8, 1, None, 2)
    spans.put(below)
    spans.put(above)
    assert list(spans.unpainted(0, 3)) == [(below, [(0, 5), (8, 20)])]
    assert list(spans.unpainted(0, 20)) == [(above, [(5, 8)])]
    spans.forget(0, 20)
    assert list(spans.unpainted(0, 20)) == []
