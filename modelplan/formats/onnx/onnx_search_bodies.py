"""The bodies of operators that search for sequences: a decoder that runs once for each token, and encoders before it.

A decoder is planned as it runs first, when it reads the whole prompt, and as it runs last, when what it keeps of
earlier tokens is longest. Behind an encoder, which reads the prompt, it reads one token each time.

Source: onnxruntime, contrib_ops/cpu/transformers/subgraph_*.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from modelplan.formats.onnx.onnx_functions import bodies_of, graphs_of
from modelplan.formats.onnx.onnx_sequences import SearchSizes, is_search, reads_sound
from modelplan.formats.onnx.onnx_shapes import INT32, TypedNode, plus, times
from modelplan.formats.onnx.onnx_types import Extent, Type, read_type, tensor_type, with_shape, written

if TYPE_CHECKING:
    from onnx import GraphProto

#: Inputs of decoders before what they keep of earlier tokens; those of one without an encoder are three.
_BEFORE_PAST, _BEFORE_ALONE = 3, "position_ids"
_BEFORE = frozenset({"input_ids", _BEFORE_ALONE, "attention_mask", "encoder_attention_mask", "encoder_hidden_states"})


def encoder_feeds(body: GraphProto, typed: TypedNode, search: SearchSizes) -> list[Type]:
    """The types of an encoder's inputs: the operand, a mask for tokens, and what a decoder begins with.

    Raises:
        ValueError: it takes others.
    """
    first, start = typed.types[0], _tokens(search.batch, search.prompt)
    if first is None:
        raise ValueError("found no first operand")
    if reads_sound(typed):
        return _as_many(body, [first, start])
    feeds = [first, tensor_type(INT32, first.shape), start]
    return _as_many(body, feeds[:2] if len(body.input) == 2 else feeds)


def first_feeds(body: GraphProto, search: SearchSizes) -> list[Type]:
    """The types of the inputs of a decoder without an encoder in its first run.

    Raises:
        ValueError: it takes others.
    """
    return _alone(body, search, search.prompt, 0)


def last_feeds(body: GraphProto, search: SearchSizes) -> list[Type]:
    """The types of the inputs of a decoder without an encoder in its last run.

    Raises:
        ValueError: it takes others.
    """
    return _alone(body, search, 1, plus(search.length, -2))


def _alone(body: GraphProto, search: SearchSizes, tokens: Extent, past: Extent) -> list[Type]:
    """The types of the inputs of a decoder without an encoder in a run that reads so many tokens."""
    behind = _BEFORE_PAST + len(body.output) - 1
    ids, mask = _tokens(search.rows, tokens), _tokens(search.rows, plus(tokens, past))
    kept = [
        _with_extents(body, place, {1: search.rows, 3: search.length if _shares(body, behind) else past})
        for place in range(_BEFORE_PAST, behind)
    ]
    return _as_many(body, [ids, ids, mask, *kept, *_of_shared(body, search, behind)])


def decoder_behind_encoder(
    body: GraphProto, typed: TypedNode, search: SearchSizes, encoded: Sequence[Type]
) -> list[Type]:
    """The types of the inputs of a decoder in its last run, behind an encoder that gives `encoded`.

    Raises:
        ValueError: it takes others, or the encoder gives too little.
    """
    layers, names = (len(body.output) - 1) // 2, [value.name for value in body.input]
    if len(encoded) < max(2 * layers, 2):
        raise ValueError(f"the encoder gives {len(encoded)} values, expected {max(2 * layers, 2)} or more")
    if (_declared(body, 0).shape or ())[1:] != (1,):
        raise ValueError(f"the decoder reads all tokens each time; export its input {names[0]!r} as [batch, 1]")
    feeds = [_tokens(search.rows, 1)]
    if "encoder_attention_mask" in names[:2]:
        frames = (typed.shape(0) or (None, None))[1]
        feeds.append(_tokens(search.rows, frames))
    if "encoder_hidden_states" in names[:3]:
        feeds.append(_beamed(encoded[1], search.beams))
    first, behind = len(feeds), len(feeds) + 4 * layers
    past = search.length if _shares(body, behind) else plus(search.length, -2)
    own = [_with_extents(body, place, {0: search.rows, 2: past}) for place in range(first, first + 2 * layers)]
    crossed = [_beamed(known, search.beams) for known in encoded[len(encoded) - 2 * layers :]]
    return _as_many(body, [*feeds, *own, *crossed, *_of_shared(body, search, behind)])


def parts_with_symbols(parts: Sequence[GraphProto]) -> list[GraphProto]:
    """The graphs of a model in which a symbol means what it means in the main one: no bodies of searches.

    There a `batch_size` counts beams too, and extents change from run to run.
    """
    searches = [node for part in parts for node in part.node if is_search(node)]
    inner = {id(graph) for node in searches for body in bodies_of(node) for graph in graphs_of(body)}
    return [part for part in parts if id(part) not in inner]


def check_kept(body: GraphProto, fed: Sequence[Type], given: Sequence[Type]) -> None:
    """Refuses a decoder that does not give back what it kept with the tokens that it read.

    Raises:
        ValueError: it gives something else, so that what its last run keeps is not known.
    """
    first = sum(value.name in _BEFORE for value in body.input)
    behind = first + (len(given) - 1) * (1 if _BEFORE_ALONE in {value.name for value in body.input} else 2)
    tokens = 0 if _shares(body, behind) else (fed[0].shape or (0, None))[1]
    for value, before, after in zip(body.output[1:], fed[first:], given[1:], strict=False):
        axis = len(before.shape or ()) - 2
        grown = plus((before.shape or (None,))[axis], tokens)
        if after.shape is None or len(after.shape) != axis + 2 or after.shape[axis] != grown:
            raise ValueError(
                f"the body's output {value.name!r} is {written(after)}, expected {grown} along axis {axis}"
            )


def with_vocabulary(scores: Type, logits: Type) -> Type:
    """The type of the scores of tokens, with as many words as a decoder's first output has."""
    if not scores.shape or scores.shape[-1] is not None or not logits.shape:
        return scores
    return with_shape(scores, (*scores.shape[:-1], logits.shape[-1]))


def _shares(body: GraphProto, behind: int) -> bool:
    """Whether past and present share their memory: inputs follow behind all that is kept."""
    return len(body.input) > behind


def _of_shared(body: GraphProto, search: SearchSizes, first: int) -> list[Type]:
    """The inputs that follow where past and present share their memory: lengths, and how beams go on."""
    single = tensor_type(INT32, (1,))
    return [single, single, tensor_type(INT32, (search.batch, search.beams, search.length))][: len(body.input) - first]


def _tokens(rows: Extent, tokens: Extent) -> Type:
    return tensor_type(INT32, (rows, tokens))


def _beamed(known: Type, beams: Extent) -> Type:
    """The type of something for each row of the batch, repeated for each beam."""
    return with_shape(known, (times(known.shape[0], beams), *known.shape[1:])) if known.shape else known


def _declared(body: GraphProto, place: int) -> Type:
    """The type that the file says of an input."""
    if place >= len(body.input):
        raise ValueError(f"the body takes {len(body.input)} inputs, expected more than {place}")
    return read_type(body.input[place].type)


def _with_extents(body: GraphProto, place: int, extents: Mapping[int, Extent]) -> Type:
    """The declared type of an input with some extents as a run has them."""
    known = _declared(body, place)
    if known.shape is None or len(known.shape) <= max(extents):
        name = body.input[place].name
        raise ValueError(f"the body's input {name!r} has rank {len(known.shape or ())}, expected {max(extents) + 2}")
    return with_shape(known, tuple(extents.get(axis, extent) for axis, extent in enumerate(known.shape)))


def _as_many(body: GraphProto, feeds: list[Type]) -> list[Type]:
    if len(body.input) != len(feeds):
        raise ValueError(f"the body takes {len(body.input)} inputs, expected {len(feeds)}")
    return feeds
