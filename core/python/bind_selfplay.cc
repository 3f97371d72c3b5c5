#include "python/bindings.h"

namespace tengen {

void bind_selfplay(nanobind::module_& m) { (void)m; }

}  // namespace tengen
