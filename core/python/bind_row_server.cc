// Central inference: the sessions of actors in other processes.

#include <nanobind/ndarray.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <vector>

#include "inference/row_server.h"
#include "python/bindings.h"
#include "python/gil.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tengen {
namespace {

using Bytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;

RowColumns columns_of(const std::vector<size_t>& inputs, const std::vector<size_t>& outputs,
                      const std::vector<size_t>& state) {
  std::vector<RowColumn> columns = {{RowPart::kFirst, 1}};
  for (const size_t row_bytes : inputs) columns.push_back({RowPart::kInput, row_bytes});
  for (const size_t row_bytes : outputs) columns.push_back({RowPart::kOutput, row_bytes});
  for (const size_t row_bytes : state) columns.push_back({RowPart::kState, row_bytes});
  return RowColumns(std::move(columns));
}

// Returns views of the rows to evaluate, which keep the server or the session alive.
nb::list arrays_of(nb::handle self) {
  const RowServer& server = nb::cast<const RowServer&>(self);
  const std::shared_ptr<RowSession>& alone = server.alone();
  nb::object owner = nb::borrow(self);
  if (alone) {
    owner = nb::capsule(new std::shared_ptr<RowSession>(alone), [](void* session) noexcept {
      delete static_cast<std::shared_ptr<RowSession>*>(session);
    });
  }
  nb::list arrays;
  for (size_t i = 0; i < server.columns().size(); ++i) {
    const size_t num_rows = alone ? alone->num_rows() : server.batch().num_rows();
    std::byte* const data = alone ? alone->column(i) : server.batch().column(i);
    arrays.append(Bytes(data, {num_rows * server.columns()[i].row_bytes}, owner));
  }
  return arrays;
}

}  // namespace

void bind_row_server(nb::module_& m) {
  nb::class_<RowStats>(m, "RowStats", "Counters of a row server since its start.")
      .def_ro("num_batches", &RowStats::num_batches)
      .def_ro("num_rows", &RowStats::num_rows)
      .def_ro("num_lost", &RowStats::num_lost)
      .def_ro("device_s", &RowStats::device_s)
      .def_ro("copy_s", &RowStats::copy_s)
      .def_ro("wait_s", &RowStats::wait_s);
  nb::class_<RowServer>(m, "RowServer", "Batches rows of actors; see inference/row_server.h.")
      .def(
          "__init__",
          [](RowServer* self, const std::vector<size_t>& inputs, const std::vector<size_t>& outputs,
             const std::vector<size_t>& state, size_t max_rows, size_t min_rows, double max_wait_s,
             size_t most_rows, size_t least_bytes) {
            new (self) RowServer(columns_of(inputs, outputs, state),
                                 {max_rows, min_rows, max_wait_s, most_rows, least_bytes});
          },
          "inputs"_a, "outputs"_a, "state"_a, nb::kw_only(), "max_rows"_a, "min_rows"_a,
          "max_wait_s"_a, "most_rows"_a, "least_bytes"_a,
          "inputs, outputs and state have the bytes per row of each array, in signature order.")
      .def("add", &RowServer::add, "descriptor"_a, "memory_descriptor"_a, "num_rows"_a,
           WithoutGil(),
           "Adds a session. Takes ownership of its socket and shared memory (or -1). Thread-safe.")
      .def("start", &RowServer::start, "Allows batches to start. Thread-safe.")
      .def("stop", &RowServer::stop, "Makes next() return 0 soon. Thread-safe.")
      .def_prop_ro("num_sessions", &RowServer::num_sessions)
      .def_prop_ro("stats", &RowServer::stats)
      .def("next", &RowServer::next, WithoutGil(),
           "Returns the number of rows of the next batch, 0 after stop(). Blocks.")
      .def_prop_ro("alone", &RowServer::alone_key,
                   "The number of the session whose rows are evaluated in place, or 0.")
      .def("arrays", &arrays_of,
           nb::sig("def arrays(self) -> list[numpy.typing.NDArray[numpy.uint8]]"),
           "Views of the rows to evaluate, as bytes: is_first, inputs, outputs, state.")
      .def("done", &RowServer::done, "version"_a, "model"_a, WithoutGil(),
           "Sends the outputs of the batch to its actors.")
      .def("refuse", &RowServer::refuse, "reason"_a, WithoutGil(),
           "Sends every actor an error with reason instead of outputs.")
      .def("close", &RowServer::close, WithoutGil(), "Ends all sessions and rejects new ones.");
}

}  // namespace tengen
