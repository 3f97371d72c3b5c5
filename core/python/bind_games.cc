#include "python/bindings.h"

namespace tengen {

void bind_games(nanobind::module_& m) { (void)m; }

}  // namespace tengen
