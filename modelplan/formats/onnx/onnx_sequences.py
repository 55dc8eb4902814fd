"""Operators of ONNX Runtime that search for sequences of tokens: their sizes, and the types of what they give.

Source: onnxruntime, contrib_ops/cpu/transformers; each shape is compared with a session's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelplan.formats.onnx.onnx_shapes import (
    FLOAT,
    INT32,
    Element,
    Shape,
    ShapeRule,
    TypedNode,
    always,
    at,
    plus,
    times,
)
from modelplan.formats.onnx.onnx_types import Extent
from modelplan.primitives.lazy_records import dataclass

if TYPE_CHECKING:
    from onnx import NodeProto

#: The operators of this kind and their domain.
DOMAIN = "com.microsoft"
BEAMED = frozenset({"BeamSearch", "WhisperBeamSearch"})
SEARCHES = BEAMED | {"GreedySearch", "Sampling"}
#: What a model type means, by its number.
_DECODER, _WHISPER = 0, 2
#: Bounds that kernels have, and what they take where the operand is absent.
_MOST_TOKENS, _MOST_BEAMS = 4096, 128
#: What a run decides where no constant does, with its place among the operands.
_LENGTH, _BEAMS, _KEPT, _START = 1, 3, 4, 10


@dataclass(frozen=True, slots=True)
class SearchSizes:
    """The sizes of a search: None is one that no constant tells.

    `prompt` are the tokens that are there before the first is found, `length` those of a whole sequence. Of `beams`
    that are followed for each row of the batch `kept` are given back.
    """

    batch: Extent
    prompt: Extent
    length: Extent
    beams: Extent
    kept: Extent

    @property
    def rows(self) -> Extent:
        """The sequences that a decoder follows at once."""
        return times(self.batch, self.beams)


def is_search(node: NodeProto) -> bool:
    """Whether a node searches for sequences."""
    return node.domain == DOMAIN and node.op_type in SEARCHES


def is_beamed(typed: TypedNode) -> bool:
    """Whether a search follows several sequences for each row of the batch."""
    return typed.node.op_type in BEAMED


def has_encoder(typed: TypedNode) -> bool:
    """Whether an encoder runs before the decoder does."""
    return _model_type(typed) != _DECODER


def reads_sound(typed: TypedNode) -> bool:
    """Whether the encoder reads features of sound in place of tokens."""
    return _model_type(typed) == _WHISPER


def _model_type(typed: TypedNode) -> int:
    usual = _WHISPER if typed.node.op_type == "WhisperBeamSearch" else _DECODER
    return typed.number("model_type", usual)


def search_of(typed: TypedNode) -> SearchSizes:
    """The sizes of a node that searches.

    Raises:
        ValueError: sizes that no session runs.
    """
    beamed, kind = is_beamed(typed), _model_type(typed)
    if kind != _DECODER and not beamed:
        raise ValueError(f"model_type {kind}: sessions have no such search with an encoder")
    if not typed.has(0):
        raise ValueError("found no first operand")
    rank = 3 if kind == _WHISPER else 2
    ids = typed.of_rank(0, rank)
    if len(typed.shape(0) or ids) != rank:
        raise ValueError(f"its first operand has {len(typed.shape(0) or ())} axes, expected {rank}")
    prompt = ids[1] if kind == _DECODER else at(typed, _START, 1) if kind == _WHISPER and typed.has(_START) else 1
    length = number_of(typed, _LENGTH, _MOST_TOKENS)
    beams, kept = (number_of(typed, place, 1) if beamed else 1 for place in (_BEAMS, _KEPT))
    _check(prompt, length, beams, kept)
    return SearchSizes(ids[0], prompt, length, beams, kept)


def number_of(typed: TypedNode, operand: int, usual: int) -> int | None:
    """The number of a constant operand, `usual` where it is absent, None where no constant tells it."""
    if not typed.has(operand):
        return usual
    numbers = typed.wholes(operand)
    return numbers[0] if numbers else None


def _check(prompt: Extent, length: int | None, beams: int | None, kept: int | None) -> None:
    if length is not None and isinstance(prompt, int) and length <= prompt:
        raise ValueError(f"max_length is {length}, expected more than the {prompt} tokens that are there before")
    for name, number, most in (("max_length", length, _MOST_TOKENS), ("num_beams", beams, _MOST_BEAMS)):
        if number is not None and not 1 <= number <= most:
            raise ValueError(f"{name} is {number}, expected 1 to {most}")
    if kept is not None and not 1 <= kept <= (beams or _MOST_BEAMS):
        raise ValueError(f"num_return_sequences is {kept}, expected 1 to num_beams, which is {beams}")


def undecided(typed: TypedNode) -> list[str]:
    """The operands whose numbers a search goes by and no constant tells, by their names in the file."""
    places = (_LENGTH, _BEAMS, _KEPT) if is_beamed(typed) else (_LENGTH,)
    return [typed.node.input[place] for place in places if number_of(typed, place, 1) is None]


# -- what a search gives -------------------------------------------------------------------------------------


def sequences(typed: TypedNode) -> Shape:
    """Of each sequence that is given back all tokens, filled up behind the last."""
    search = search_of(typed)
    return (search.batch, search.kept, search.length) if is_beamed(typed) else (search.batch, search.length)


def sequence_scores(typed: TypedNode) -> Shape:
    """A number for each sequence that is given back."""
    search = search_of(typed)
    return search.batch, search.kept


def token_scores(typed: TypedNode) -> Shape:
    """A number for each word of the vocabulary, at each token that is found, for each sequence that is followed."""
    search = search_of(typed)
    later = plus(search.length, -search.prompt if isinstance(search.prompt, int) else None)
    return later, search.batch, search.beams, _vocabulary(typed)


def _vocabulary(typed: TypedNode) -> Extent:
    """The words of a vocabulary that an attribute counts; else the decoder tells them."""
    stated = typed.number("vocab_size", -1)
    return stated if stated > 0 else None


def per_row(*more: Extent) -> ShapeRule:
    """Something for each row of the batch, of further extents."""
    return lambda typed: (search_of(typed).batch, *more)


def scored(typed: TypedNode) -> int:
    """The element type of scores: that of the penalty for length, floats where there is none."""
    return typed.element(5) or FLOAT


#: The outputs of a search by beams; those of Whisper's have two more.
BEAM_OUTPUTS: tuple[tuple[ShapeRule, Element], ...] = (
    (sequences, always(INT32)), (sequence_scores, scored), (token_scores, scored),
)  # fmt: skip
