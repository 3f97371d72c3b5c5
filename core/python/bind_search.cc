#include "python/bindings.h"

namespace tengen {

void bind_search(nanobind::module_& m) { (void)m; }

}  // namespace tengen
