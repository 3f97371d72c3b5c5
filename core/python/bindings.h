#pragma once
// The bind_<folder> function of each folder of the core, and those of pictures, Go and central
// inference. module.cc calls them in dependency order.

#include <nanobind/nanobind.h>

namespace tengen {

void bind_base(nanobind::module_& m);
void bind_pictures(nanobind::module_& m);
void bind_actors(nanobind::module_& m);
void bind_games(nanobind::module_& m);
void bind_go(nanobind::module_& m);
void bind_search(nanobind::module_& m);
void bind_inference(nanobind::module_& m);
void bind_lines(nanobind::module_& m);
void bind_row_server(nanobind::module_& m);
void bind_records(nanobind::module_& m);
void bind_store(nanobind::module_& m);
void bind_programs(nanobind::module_& m);
void bind_selfplay(nanobind::module_& m);

}  // namespace tengen
