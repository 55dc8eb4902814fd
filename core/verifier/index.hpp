#pragma once

#include <cstddef>
#include <cstdint>

namespace modelplan::verifier {

// Ids are signed, since -1 says that there is none; what is indexed is not.
inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace modelplan::verifier
