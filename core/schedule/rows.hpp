// Rows of integers of different lengths, flattened into two columns.
#pragma once

#include <cstddef>
#include <utility>

#include "sorting.hpp"

namespace modelplan::schedule {

class Rows {
 public:
  Rows() = default;

  // Row r holds the distinct second members of the entries (r, x), in rising order.
  Rows(int rows, Array<std::pair<int, int>> entries) : first_(rows + 1, 0) {
    entries = distinct(std::move(entries));
    items_.reserve(entries.size());
    for (const auto& [row, item] : entries) {
      ++first_[row + 1];
      items_.push_back(item);
    }
    for (std::size_t r = 1; r < first_.size(); ++r) first_[r] += first_[r - 1];
  }

  View<const int> operator[](int row) const {
    const auto r = as_size(row);
    return View<const int>(items_).subspan(first_[r], first_[r + 1] - first_[r]);
  }

  bool has(int row, int item) const {
    const auto items = (*this)[row];
    return std::binary_search(items.begin(), items.end(), item);
  }

  std::size_t entries() const { return items_.size(); }

 private:
  Array<std::size_t> first_{0};
  Array<int> items_;
};

}  // namespace modelplan::schedule
