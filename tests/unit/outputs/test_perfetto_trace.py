"""Traces for Perfetto, parsed by the messages of its own Python package."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import graphs
import numpy as np
import pytest

from modelplan import Graph, Kind, Op, Options, Plan, Tensor, plan, render
from modelplan.model import bounds

trace_messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="perfetto is missing")
STEP = 1000


class Read:
    """The packets of a trace: tracks by number, and the events of each track in the order of time."""

    def __init__(self, plan: Plan) -> None:
        content = render(plan, ".pftrace")
        trace = trace_messages.Trace()
        trace.ParseFromString(content)
        assert trace.SerializeToString(deterministic=True) == trace.FromString(content).SerializeToString()
        trace.DiscardUnknownFields()
        assert trace.ByteSize() == len(content), "a field that Perfetto does not know"
        assert {packet.trusted_packet_sequence_id for packet in trace.packet} == {1}
        self.tracks = {
            p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")
        }
        self.events: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        for packet in trace.packet:
            if packet.HasField("track_event"):
                self.events[packet.track_event.track_uuid].append((packet.timestamp, packet.track_event))
        for found in self.events.values():
            found.sort(key=lambda one: one[0])
        assert self.events.keys() <= self.tracks.keys()
        assert all(t.parent_uuid in self.tracks for t in self.tracks.values() if t.uuid != 1)

    def slices(self, track: int) -> list[tuple[str, int, int, dict[str, Any]]]:
        """Name, begin, end and arguments of the slices of a track, none inside another."""
        events, found = self.events[track], []
        for (begun, first), (ended, last) in zip(events[::2], events[1::2], strict=True):
            assert (first.type, last.type) == (first.TYPE_SLICE_BEGIN, first.TYPE_SLICE_END)
            told = {a.name: getattr(a, a.WhichOneof("value")) for a in first.debug_annotations}
            found.append((first.name, begun, ended, told))
        return found

    def below(self, name: str) -> list[int]:
        """The tracks under the one called `name`, in their order."""
        parents = [uuid for uuid, track in self.tracks.items() if track.name == name]
        assert len(parents) == 1
        children = [track for track in self.tracks.values() if track.parent_uuid == parents[0]]
        return [track.uuid for track in sorted(children, key=lambda track: track.sibling_order_rank)]

    def counter(self, track: int) -> dict[int, int]:
        """The values of a counter by time."""
        assert self.tracks[track].counter.unit == self.tracks[track].counter.UNIT_SIZE_BYTES
        assert {event.type for _, event in self.events[track]} == {trace_messages.TrackEvent.TYPE_COUNTER}
        return {time: event.counter_value for time, event in self.events[track]}


def test_operators_are_slices_of_one_step_in_the_plans_order() -> None:
    answer = plan(graphs.fork())
    read = Read(answer)
    operators = next(uuid for uuid, track in read.tracks.items() if track.name == "operators")
    live = bounds.live_bytes(answer.problem, len(answer.schedule.order)).tolist()
    expected = [
        (answer.graph.ops[op].kind, step * STEP, (step + 1) * STEP, op, live[step])
        for step, op in enumerate(answer.schedule.order)
    ]
    found = [(*one[:3], one[3]["op"], one[3]["live bytes"]) for one in read.slices(operators)]
    assert found == expected


def test_the_counter_holds_the_live_bytes_and_ends_at_none() -> None:
    answer = plan(graphs.fork())
    read = Read(answer)
    (arena,) = read.below("live bytes")
    values = read.counter(arena)
    live = bounds.live_bytes(answer.problem, len(answer.schedule.order))
    for step, expected in enumerate(live.tolist()):
        assert values[max(time for time in values if time <= step * STEP)] == expected
    assert values[len(live) * STEP] == 0
    assert max(values.values()) == live.max()


def test_each_bank_has_a_counter_and_together_they_hold_what_is_alive() -> None:
    answer = plan(graphs.chain())
    split = 16
    read = Read(replace(answer, banks=(("DTCM", 0), ("SRAM1", split))))
    tracks = read.below("live bytes")
    assert [read.tracks[uuid].name for uuid in tracks] == ["DTCM", "SRAM1"]
    first, second = (read.counter(uuid) for uuid in tracks)
    whole = Read(answer).counter(Read(answer).below("live bytes")[0])
    assert {time: first[time] + second[time] for time in first} == whole
    assert max(first.values()) <= split
    assert max(second.values()) > 0


def test_each_tensor_has_a_track_by_address_and_lives_as_long_as_it_is_used() -> None:
    answer = plan(graphs.chain(), Options(alias="views"))  # a and its view b share a buffer
    read = Read(answer)
    found = {read.tracks[uuid].name: read.slices(uuid) for uuid in read.below("tensors by address")}
    assert found.keys() == {"x", "a", "b", "y"}
    spans = {name: [(begin, end) for _, begin, end, _ in slices] for name, slices in found.items()}
    assert spans == {"x": [(0, STEP)], "a": [(0, 2 * STEP)], "b": [(STEP, 3 * STEP)], "y": [(2 * STEP, 3 * STEP)]}
    told = {name: slices[0][3] for name, slices in found.items()}
    assert told["a"]["offset"] == told["b"]["offset"]
    assert told["a"]["buffer"] == told["b"]["buffer"] != told["x"]["buffer"]
    assert told["b"]["writer"] == "op 1 RESHAPE"
    assert (told["x"]["writer"], told["x"]["bytes"], told["x"]["shape"]) == ("the caller", 10, "10")
    offsets = [read.slices(uuid)[0][3]["offset"] for uuid in read.below("tensors by address")]
    assert offsets == sorted(offsets)


def test_scratch_has_tracks_of_its_own_and_state_lives_all_the_time() -> None:
    body = graphs.graph("x -> y : RELU", {"x": 16, "y": 16}, inputs="x", outputs="y")
    tensors = (*(Tensor(name, (16,), "int8") for name in "xyz"), Tensor("cache", (8,), "int8", Kind.STATE))
    ops = (Op("", "LOOP", (0, 3), (1,), subgraphs=(body,)), Op("", "RELU", (1,), (2,)))
    read = Read(plan(Graph("g", "tflite", tensors, ops, (0,), (2,)), Options("generic")))
    (scratch,) = read.below("scratch by address")
    assert [(begin, end) for _, begin, end, _ in read.slices(scratch)] == [(0, STEP)]
    cache = next(uuid for uuid in read.below("tensors by address") if read.tracks[uuid].name == "cache")
    assert [(begin, end) for _, begin, end, _ in read.slices(cache)] == [(0, 2 * STEP)]


def test_hostile_and_equal_names_keep_tracks_apart() -> None:
    names = ("\x1b[31m\u202e", "same", "same", "y" * 10_000)
    chain = graphs.chain()
    tensors = [replace(t, name=n) for t, n in zip([chain.tensors[i] for i in (0, 2, 3, 4)], names, strict=True)]
    graph = replace(chain, tensors=(tensors[0], chain.tensors[1], *tensors[1:]))
    read = Read(plan(graph, Options(alias="none")))
    below = read.below("tensors by address")
    assert len(below) == 4
    shown = [read.tracks[uuid].name for uuid in below]
    assert shown.count("same") == 2
    assert all(name.isprintable() and len(name) <= 120 for name in shown)
    assert {read.tracks[uuid].sibling_merge_behavior for uuid in below} == {2}


@pytest.mark.parametrize("name", ["resnet8.tflite", "transformer_encoder.onnx"])
def test_real_models(models: Any, name: str) -> None:
    from modelplan import load

    graph = load(models / name)
    assert isinstance(graph, Graph)
    answer = plan(graph)
    read = Read(answer)
    (arena,) = read.below("live bytes")
    live = bounds.live_bytes(answer.problem, len(answer.schedule.order))
    assert max(read.counter(arena).values()) == int(np.max(live))
    held = {member.tensor for members in answer.problem.members for member in members}
    assert {read.slices(uuid)[0][3].get("tensor") for uuid in read.below("tensors by address")} == held
