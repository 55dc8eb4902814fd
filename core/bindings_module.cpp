// The module modelplan.primitives._core: the only files that know nanobind are core/bindings*.
#include "bindings.hpp"

namespace modelplan {

// Each binding file adds its part to the module.
void bind_problem(nb::module_& module);
void bind_schedule(nb::module_& module);
void bind_solver(nb::module_& module);
void bind_allocators(nb::module_& module);
void bind_planners(nb::module_& module);
void bind_rigid(nb::module_& module);
void bind_rows(nb::module_& module);
void bind_stripes(nb::module_& module);
void bind_verifier(nb::module_& module);
void bind_build(nb::module_& module);

}  // namespace modelplan

NB_MODULE(_core, module) {
  using namespace modelplan;
  module.doc() = "The compiled core of modelplan: columns of int64 in, offsets and bounds out.";
  nb::set_leak_warnings(false);  // problems may live in caches until the interpreter ends
  bind_problem(module);
  bind_schedule(module);
  bind_solver(module);
  bind_allocators(module);
  bind_planners(module);
  bind_rigid(module);
  bind_rows(module);
  bind_stripes(module);
  bind_verifier(module);
  bind_build(module);
}
