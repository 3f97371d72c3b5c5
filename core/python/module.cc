// tengen._core: the native part of tengen. Private; use it through the Python packages.

#include "python/bindings.h"

NB_MODULE(_core, m) {
  // A thread that hangs in an environment may still hold objects when the process ends.
  nanobind::set_leak_warnings(false);
  m.doc() = "The native core of tengen. Private.";
  tengen::bind_base(m);
  tengen::bind_pictures(m);
  tengen::bind_actors(m);
  tengen::bind_games(m);
  tengen::bind_go(m);
  tengen::bind_search(m);
  tengen::bind_inference(m);
  tengen::bind_lines(m);
  tengen::bind_row_server(m);
  tengen::bind_records(m);
  tengen::bind_store(m);
  tengen::bind_programs(m);
  tengen::bind_selfplay(m);
}
