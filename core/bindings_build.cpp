// How this module was built: for --version, so that a report of a fault says which build it is about.
#include <string>

#include "bindings.hpp"

namespace modelplan {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "Clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__);
#elif defined(__GNUC__)
  return "GCC " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__);
#elif defined(_MSC_VER)
  return "MSVC " + std::to_string(_MSC_VER);
#else
  return "unknown compiler";
#endif
}

}  // namespace

void bind_build(nb::module_& module) {
  module.attr("COMPILER") = compiler();
#if defined(Py_LIMITED_API)
  module.attr("STABLE_ABI") = true;
#else
  module.attr("STABLE_ABI") = false;
#endif
  module.attr("REVISION") = MODELPLAN_REVISION;
}

}  // namespace modelplan
