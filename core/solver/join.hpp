// Joins buffers edge to edge where a height leaves no byte to spare, as in a jigsaw puzzle.
//
// If two sections side by side are full, the buffers that end between them leave exactly the bytes that those which
// begin there take. Three patterns then make one buffer of several:
//
//       +---+---+            +-------+           +---+-------+
//       | p |   |            |   a   |           |   |   q   |
//       +---+ q |            +-------+           | p +---+---+
//           |   |            |   b   |           |   | c |   |
//      p = q alone           +-------+           +---+---+ s |
//      at their seam      equal lifetimes        |   r   |   |
//                                                +-------+---+
//
// Where none of them is left, a seam is taken apart: what fits in one way only gets a seam of its own. A placement of
// what remains is one of the whole. The converse is not claimed, so nothing is proved by not finding one: the second
// pattern and the parting of seams take for granted that what may belong together does.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "array.hpp"
#include "packing_instance.hpp"
#include "stopping.hpp"

namespace modelplan::solver {

class Joins {
 public:
  // Whether to try: the instance is plain (no facts, pins, alignments or pads) and a quarter of its seams are full.
  static bool apply_to(const PackingInstance& instance, Bytes height);

  // Joins what can be joined under `height` bytes. Throws Interrupted when the meter stops at the outset.
  // Cost: linear in the number of items and sections, save for seams that must be taken apart.
  Joins(const PackingInstance& instance, Bytes height, Meter& meter);

  Id count() const { return alive_; }  // buffers that remain
  // What remains as a problem of its own, in units.
  PackingInstance remainder(const Rules& rules, Poller& poller) const;
  // Offsets of all items, from those of the remainder's, in units.
  Array<Bytes> expand(const PackingInstance& remainder, View<const Bytes> offsets) const;

 private:
  struct Piece {
    Id begin, end;  // seams
    Bytes size;
    Id begin_place, end_place;  // its place in begins_[begin] and ends_[end]; -1 once joined
  };
  struct Part {
    Id piece, whole;
    Bytes offset;  // of the piece within the whole
  };
  struct PlacedPiece {  // a piece and where it goes
    Id piece;
    Bytes offset;
  };
  using Group = std::array<Id, 3>;  // pieces on the two sides of a seam; -1: none

  static std::uint64_t lifetime(const Piece& piece);
  Id add(Id begin, Id end, Bytes size);
  void put_in(Id piece);
  void join(View<const PlacedPiece> parts, Id begin, Id end, Bytes size);
  void take_out(Id piece);
  void touch(Id seam);
  void join_alike(Id piece);
  void join_touched(Meter& meter);
  bool split(Id seam);
  void collect(Id piece, const Array<Id>& across, Array<Group>& groups) const;
  bool separate(const Group& group, Id seam);
  bool join_across(Id seam);
  bool join_pinwheel(Id seam);
  bool try_pinwheel(Id left, Id core, Id right);

  Array<Piece> pieces_;  // the items, then what was made of them
  Array<Part> parts_;    // in the order in which they were joined
  Array<char> full_;     // per seam: no byte to spare on either side; one more than sections, then those split off
  Array<Id> section_;    // per seam: the section that begins there
  Array<Array<Id>> begins_, ends_;               // per seam: the pieces that begin and end there
  std::unordered_map<std::uint64_t, Id> alike_;  // by seams: a piece between full ones
  Array<Id> touched_;
  Array<char> is_touched_;
  Id items_, alive_ = 0;
};

}  // namespace modelplan::solver
