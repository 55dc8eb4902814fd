"""How far the searches of `fit` look: every number in them that was chosen and not derived, in counts and shares.

What a plan may have at all, as a proof takes it, stands with the plans.
With equal numbers each machine finds the same. What comes out where one of them is halved or doubled, and what that
takes, is in reports/search_effort.md.
"""

from math import inf

from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How long plans are improved.

    `buffers` are those of all packing problems at most: time goes by them. A search that gains nothing ends behind
    `without_gain` plans, and as many again as it took to the last gain. Neighbours that seem to break a cap, or to need
    `hopeless` times what a plan needs, are not tried.
    """

    buffers: int
    without_gain: int
    hopeless: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TfliteEffort:
    """The search for stripes of .tflite models."""

    #: Stretches in stripes that are priced.
    priced: int = 1800
    #: Numbers of stripes of these, beside one for each row of results of at most `single_rows`.
    stripes: tuple[int, ...] = (2, 3, 4, 6, 8, 12, 16, 24)
    single_rows: int = 32
    #: The most operators of a stretch, and of all of its stripes.
    longest: int = 24
    stripe_steps: int = 300
    #: Rows are recomputed in stretches of at most so many windows and stripes; in others they are kept.
    recomputed_windows: int = 3
    recomputed_stripes: int = 12
    #: Models of no more operators get loops only while plans are improved, which ends lower from unrolled stripes; the
    #: improvement of larger ones does not get that far.
    few_ops: int = 48
    #: Rows of the stripe of a loop, of one whose rows are cut into tiles, into how many, and all of them at most.
    looped_rows: tuple[int, ...] = (1, 2, 3, 4, 6, 8)
    tiled_rows: tuple[int, ...] = (1, 2, 4, 8)
    tiles: tuple[int, ...] = (2, 4, 8)
    most_tiles: int = 256
    #: Tiles are priced where so many rows of a map inside are more than the maps at a stretch's ends.
    tiled_from: int = 20
    #: Rows of a stripe that carries rows: of a loop, or at the pace of the first operator.
    carried_rows: tuple[int, ...] = (1, 2, 4)
    #: Channels of which blocks are multiples; less where there are too few.
    channels: int = 16
    #: Peaks for which the cheapest plans are looked up, beside those of the model's operators, and prices of time where
    #: these take too long, in bytes for as long as the model takes.
    targets: int = 192
    time_prices: tuple[float, ...] = (0.0, 1e4, 1e5, 1e6, 1e8)
    #: In models of more operators such peaks go on below the lowest one that was met: stretches above the share `high`
    #: of it count as free, and peaks go down to the share `further` of it.
    many_ops: int = 100
    high: float = 0.9
    further: float = 0.85

    #: Plans that are built of those of all peaks, of single stretches, and of those with blocks of channels.
    built: int = 30
    #: Neighbours of the lowest plan whose neighbours are looked at too, of which twice as many are tried; stretches
    #: tried as loops; the best plans of which one must have blocks of channels for these to be improved.
    together: int = 8
    #: Plans that seem to need so many times the best one's bytes are not built.
    far: float = 1.15
    #: Where a plan to start from needs less than so many times what every plan needs, others are looked for all the
    #: same.
    close: float = 1.03
    #: Plans within this share of what every plan needs end the search.
    done: float = 0.005
    #: Plans are improved unless the lowest needs more than so many times what the file needs without stripes.
    hopeful: float = inf
    #: How long. The head alone hangs on how stripes lie in each other, which only packing shows.
    arena: Patience = Patience(40_000, 40, 1.1)
    head: Patience = Patience(200_000, 300, 2.0)
    #: A search that gains nothing has at least so many buffers behind it, as which plans count at least so many.
    idle_buffers: int = 8_000
    least_buffers: int = 100
    #: Kinds of plans that improvement starts from in turn.
    starts: int = 3
    #: Numbers of stripes of a single operator that a plan is tried with, and stretches that are drawn for it.
    single_stripes: tuple[int, ...] = (3, 5, 8, 12)
    drawn: int = 40
    #: Rows of each stripe of an operator that is turned for the least head, and its most stripes.
    turned_rows: tuple[int, ...] = (1, 2)
    most_turned: int = 64
    #: Plans of more executed steps are left out.
    steps: int = 1_000_000

    #: Orders that the packer tries at a first look at a plan, for one that comes within the share `near` of the best,
    #: and for one that is written; fewer for problems of more than `large` buffers.
    glance: int = 260
    look: int = 1500
    near: float = 0.98
    answer: int = 6_000
    large: int = 500
    #: Plans that are packed at length of the best, of those that a better packing would bring lowest, and of those that
    #: split other operators where each of these raises one of several libraries.
    answers: int = 3
    hopes: int = 2
    elsewhere: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxEffort:
    """The search for stripes of .onnx models, and what is measured of it."""

    #: Numbers of stripes that are tried for a stretch, and the most nodes of all of its stripes.
    stripes: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 28, 32, 48, 64)
    stripe_steps: int = 6_000
    #: Places between operators where stretches may begin and end, so many operators before one that needs too much and
    #: twice as many behind it.
    places: int = 24
    near: int = 12
    #: Prices of many stripes that tell whether a stretch is worth a look; long ones are looked at in fewer stripes, of
    #: no more nodes in all.
    probes: int = 2
    probed_steps: int = 600
    #: Multiply-accumulates in the time that one more node takes, and those that a byte of weights is worth which a
    #: session keeps for each stripe; plans at no price for these are looked for too.
    step_macs: int = 40_000
    byte_macs: int = 50
    #: Each peak that is aimed at is this share of the one before; so many are.
    share: float = 0.82
    targets: int = 16
    #: Plans beside the lowest one that are judged at most.
    neighbours: int = 60
    #: Plans that are measured at most, and of those whose outputs differ as many again.
    measured: int = 4
    unequal: int = 4
    #: Skips that are recomputed at most, and shares of their bytes up to which what they are made of is kept.
    skips: int = 3
    kept_shares: tuple[float, ...] = (0.5, 0.1)
    #: Maps that a global pool reads are recomputed from this share of the bytes alive at the peak on.
    pooled: float = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class CEffort:
    """The search for rows, parts and tiles of plain C."""

    #: Operators that run together at most, and orders that packings try: while stages are chosen, in the end, and of
    #: whole maps, where fewer are tried beyond so many pairs of values.
    longest: int = 40
    tries: int = 500
    answer: int = 5_000
    whole_tries: int = 2_000
    whole_pairs: int = 200_000_000
    #: Into how many parts a row is cut: first where a budget is met so, as a rule, and of the stages that need a share
    #: `large` of the memory.
    few_parts: int = 4
    parts: int = 8
    finer_parts: tuple[int, ...] = (16, 32)
    large: float = 0.9
    #: The share of memory that more parts, or another order, could save at least, for them to be tried.
    gain: float = 0.002
    #: The share of instructions that is not weighed against RAM, and what more parts than usual are worth of that.
    little_time: float = 0.1
    finer_worth: float = 0.25
    #: The share of work and of time that operators may add which run again though nobody asked for it, how often they
    #: do, maps that are looked at for each, operators that a map waits at least, and what a run saves.
    little_work: float = 0.1
    repeats: int = 3
    repeated_maps: int = 6
    waiting: int = 5
    repeat_gain: float = 0.05
    #: Into how many parts rows of stages with tiles are cut, memories that are tried, plans of which the best is
    #: written, and shares of a budget.
    tile_parts: int = 24
    halvings: int = 10
    tiled: int = 2
    shares: tuple[float, ...] = (1.0, 0.96, 0.92)
    #: Multiply-accumulates that a result costs beside its own, and how many one of a depthwise convolution is.
    result: int = 16
    depthwise: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEffort:
    """How far each search looks."""

    tflite: TfliteEffort = TfliteEffort()
    onnx: OnnxEffort = OnnxEffort()
    c: CEffort = CEffort()


#: Where nobody asks for more or less.
USUAL = SearchEffort()
