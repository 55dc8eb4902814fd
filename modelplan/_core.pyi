from modelplan.types import IntArray

def place_in_order(
    size: IntArray,
    start: IntArray,
    end: IntArray,
    alignment: IntArray,
    pin: IntArray,
    overlaps: IntArray,
    conflicts: IntArray,
    order: IntArray,
    tightest: bool,
) -> IntArray: ...
def load_bound(
    size: IntArray,
    start: IntArray,
    end: IntArray,
    alignment: IntArray,
    pin: IntArray,
    overlaps: IntArray,
    conflicts: IntArray,
) -> tuple[int, int]: ...
def find_clash(
    size: IntArray, start: IntArray, end: IntArray, offset: IntArray, overlaps: IntArray
) -> tuple[int, int]: ...
