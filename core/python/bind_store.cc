#include "python/bindings.h"

namespace tengen {

void bind_store(nanobind::module_& m) { (void)m; }

}  // namespace tengen
