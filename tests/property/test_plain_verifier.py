"""Random programs with random faults in their plans: the verifier finds the same first fault as its plain twin."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from math import prod

import pytest
from plain_verifier import PlainReplay, check_pairs
from shares import share

from modelplan import BrokenPlanError
from modelplan.checking.verifier import replay as verifier_replay
from modelplan.checking.verifier.addresses import AddressLayout, Scratch
from modelplan.checking.verifier.moves import moves_of
from modelplan.checking.verifier.program import Program, Step, Value
from modelplan.checking.verifier.replay import replay
from modelplan.checking.verifier.static import check_static

CASES = share(3000)
SHAPES = [(4,), (4,), (4,), (2, 2), (8,), (3,), (0,)]
KINDS = {"ADD": 2, "RELU": 1, "CONV_2D": 2, "RESHAPE": 1, "CONCATENATION": 2, "SPLIT_V": 1, "PAD": 1, "ethos-u": 2}
#: What the sentences say where a plan is broken; all of it has to come up.
FAULTS = (
    "needs tensor", "no address", "before anything writes", "overwritten at op", "overwritten at the caller",
    "overwritten at the start", "'s scratch", "to the same bytes", "as scratch", "in place", "the next run reads",
    "against the order",
)  # fmt: skip


def attribute(name: str) -> object:
    return {"axis": 0, "operand 1": (0, 0)}.get(name)


def random_program(rng: random.Random) -> Program:
    """Up to 9 steps over small tensors: some constant, some state, some absent, some written or read twice."""
    roles = ["activation", "activation", "constant", *(["state"] * rng.choice([0, 0, 1, 2]))]
    values = [Value(4, (4,), role, "int8") for role in roles]
    steps: list[Step] = []
    for index in range(rng.randint(1, 9)):
        kind = rng.choice(list(KINDS))
        count = 1 if rng.random() < 0.8 else 2
        moving = rng.random() < 0.1
        inputs = [rng.randrange(len(values)) for _ in range(count if moving else KINDS[kind])]
        outputs = []
        for _ in range(2 if kind == "SPLIT_V" and not moving else count):
            size = sum(values[x].nbytes for x in inputs)
            shape = values[inputs[0]].shape if rng.random() < 0.5 else rng.choice(SHAPES)
            shape = {"CONCATENATION": (size,), "SPLIT_V": (size // 2,)}.get(kind, shape)
            outputs.append(rng.choice([-1, rng.randrange(len(values))]))
            if rng.random() < 0.85:
                outputs[-1] = len(values)
                values.append(Value(prod(shape), shape, "activation", "int8"))
        if rng.random() < 0.1:
            inputs[-1] = -1
        steps.append(Step(index, kind, tuple(inputs), tuple(outputs), attribute, moving))
    if rng.random() < 0.05:
        rng.shuffle(steps)
    caller = [rng.randrange(len(values)) for _ in range(rng.choice([0, 1, 1, 2]))]
    names = tuple(f"t{t}" for t in range(len(values)))
    return Program("tflite", names, tuple(values), tuple(steps), (0, 1), tuple(caller), sequential=rng.random() < 0.5)


def random_layout(rng: random.Random, program: Program) -> AddressLayout:
    """All tensors apart, then outputs over operands, then a few random faults."""
    top, address = 0, {}
    for t, value in enumerate(program.values):
        if value.role != "constant":
            address[t], top = top, top + value.nbytes
    scratch = [Scratch(i, top, top + 3) for i in range(len(program.steps)) if rng.random() < 0.2]
    for step in program.steps if rng.random() < 0.7 else ():
        for m in moves_of(program, step):
            x, y = step.inputs[m.input], step.outputs[m.output]
            if x in address and rng.random() < 0.8:
                address[y] = address[x] + m.start - m.to
        if step.reads and step.writes and step.reads[0] in address and rng.random() < 0.2:
            address[step.writes[0]] = address[step.reads[0]]
    for _ in range(rng.choice([0, 0, 1, 2])):
        t = rng.randrange(len(program.values))
        address[t] = rng.randrange(top + 4)
        if rng.random() < 0.2:
            at = rng.randrange(top + 1)
            scratch.append(Scratch(rng.randrange(len(program.steps)), at, at + rng.randint(0, 4)))
    if rng.random() < 0.1:
        address.pop(rng.choice(list(address)))
    shift = -min(0, *address.values())
    return AddressLayout({t: at + shift for t, at in address.items() if t >= 0}, scratch=tuple(scratch))


def outcome(level: Callable[[], int]) -> str:
    """What a level says, without where bytes end and what a step needs besides."""
    try:
        return str(level())
    except BrokenPlanError as problem:
        ending = r"(reads .* bytes \d+-)\d+(, (?:which nothing|overwritten)(?!.*in place there))"
        text = re.sub(ending, r"\1\2", str(problem))
        return re.sub(r"^.*(needs tensor .* is alive) until .*$", r"\1", text)


@pytest.mark.slow
@pytest.mark.parametrize("most_pieces", [64, 0])
def test_the_verifier_finds_the_fault_that_its_plain_twin_finds(
    most_pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifier_replay, "_MOST_PIECES", most_pieces)
    found: Counter[str] = Counter()
    for seed in range(CASES):
        rng = random.Random(seed)
        program = random_program(rng)
        layout = random_layout(rng, program)
        replayed = outcome(lambda: replay(program, layout))  # noqa: B023
        assert replayed == outcome(PlainReplay(program, layout).run), seed
        paired = outcome(lambda: check_static(program, layout))  # noqa: B023
        if "against the order" not in paired:
            assert paired == outcome(lambda: check_pairs(program, layout)), seed  # noqa: B023
        found.update(fault for fault in FAULTS for text in (replayed, paired) if fault in text)
        found["sound"] += replayed.isdigit() and paired.isdigit()
    assert found["sound"] > CASES // 20
    assert all(found[fault] for fault in FAULTS), found


def test_joins_of_joins_are_replayed_as_values_of_their_own() -> None:
    """With a piece for each copy of the first value, the last join would have 2**40 of them."""
    values = [Value(4 << level, (4 << level,), "activation", "int8") for level in range(41)]
    steps = [Step(level, "CONCATENATION", (level, level), (level + 1,), attribute, False) for level in range(40)]
    names = tuple(f"t{t}" for t in range(41))
    program = Program("tflite", names, tuple(values), tuple(steps), (0,), (40, 0), sequential=True)
    apart = {t: 4 << t for t in range(41)}
    assert replay(program, AddressLayout(apart)) == 80
    with pytest.raises(BrokenPlanError, match=r"reads .*t0.* overwritten"):
        replay(program, AddressLayout({**apart, 0: apart[40] + 3}))
