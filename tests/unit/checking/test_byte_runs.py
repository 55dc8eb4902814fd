"""Runs of bytes beside a list with an entry for each byte."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from modelplan.checking.verifier.byte_runs import ByteRuns

SIZE = 24
PLACES = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(lambda ends: (min(ends), max(ends)))
WRITES = st.tuples(st.just("write"), PLACES, st.sampled_from([None, 0, 3, 100]))
MOVES = st.tuples(st.just("move"), PLACES, st.integers(0, SIZE))


def neighbours_differ(content: ByteRuns) -> bool:
    shifts = [shift for _, _, shift in content.runs(0, content.size)]
    return all(a != b for a, b in pairwise(shifts))


@given(st.lists(st.one_of(WRITES, MOVES), max_size=12))
def test_the_runs_are_those_of_single_bytes(steps: list[tuple[str, tuple[int, int], int | None]]) -> None:
    runs, numbers = ByteRuns(SIZE), list[int | None]([None] * SIZE)
    for kind, (first, end), value in steps:
        if kind == "write":
            runs.write(first, end, value)
            numbers[first:end] = [None if value is None else at + value for at in range(first, end)]
        else:
            to = min(value or 0, SIZE - (end - first))
            runs.move(first, to, end - first)
            numbers[to : to + end - first] = numbers[first:end]
        assert [runs.number(at) for at in range(SIZE)] == numbers
        assert neighbours_differ(runs)


@given(PLACES, PLACES, st.sampled_from([0, 5]))
def test_the_first_wrong_byte_is_found(written: tuple[int, int], asked: tuple[int, int], shift: int) -> None:
    runs = ByteRuns(SIZE)
    runs.write(written[0], written[1], 5)
    wrong = [at for at in range(*asked) if runs.number(at) != at + shift]
    assert runs.wrong(asked[0], asked[1], shift) == (wrong[0] if wrong else None)


def test_a_buffer_without_bytes_holds_nothing() -> None:
    assert ByteRuns(0).wrong(0, 0, 1) is None
