// Ports, and the shared port, which combines the rows of many ports into batches.

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "inference/evaluators.h"
#include "inference/packed_rows.h"
#include "inference/port.h"
#include "inference/shared_port.h"
#include "python/bindings.h"
#include "python/gil.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tengen {
namespace {

template <int Axes>
using View = nb::ndarray<nb::numpy, float, nb::ndim<Axes>>;
template <class T, int Axes>
using Array = nb::ndarray<T, nb::ndim<Axes>, nb::c_contig, nb::device::cpu>;

// Views of a port's buffers, which keep the port alive.
View<4> planes_view(nb::handle self) {
  BatchBuffers& b = nb::cast<Port&>(self).buffers();
  const auto [planes, height, width] = b.planes_shape;
  return View<4>(b.planes.data(), {b.capacity, planes, height, width}, self);
}
View<2> policy_view(nb::handle self) {
  BatchBuffers& b = nb::cast<Port&>(self).buffers();
  return View<2>(b.policy.data(), {b.capacity, b.num_actions}, self);
}
View<1> value_view(nb::handle self) {
  BatchBuffers& b = nb::cast<Port&>(self).buffers();
  return View<1>(b.value.data(), {b.capacity}, self);
}
nb::object score_view(nb::handle self) {
  BatchBuffers& b = nb::cast<Port&>(self).buffers();
  if (b.score.empty()) return nb::none();
  return nb::cast(View<2>(b.score.data(), {b.capacity, 2}, self));
}

// The rows, policy, value and score of one lane, and the index of its device.
using PyLane = std::tuple<Array<uint8_t, 2>, Array<float, 2>, Array<float, 1>,
                          std::optional<Array<float, 2>>, size_t>;

// A SharedPort that keeps the memory of its lanes alive.
class PySharedPort {
 public:
  PySharedPort(const RowLayout& layout, std::vector<PyLane> lanes, size_t num_workers)
      : lanes_(std::move(lanes)),
        shared_(layout, num_actions(), capacity(), buffers(layout), num_workers) {}

  SharedPort& shared() { return shared_; }

 private:
  size_t capacity() const { return lanes_.empty() ? 0 : std::get<0>(lanes_[0]).shape(0); }
  size_t num_actions() const { return lanes_.empty() ? 0 : std::get<1>(lanes_[0]).shape(1); }
  std::vector<LaneBuffers> buffers(const RowLayout& layout) const {
    std::vector<LaneBuffers> all;
    for (const auto& [rows, policy, value, score, device] : lanes_) {
      if (rows.shape(0) != capacity() || rows.shape(1) != layout.num_bytes() ||
          policy.shape(0) != capacity() || policy.shape(1) != num_actions() ||
          value.shape(0) != capacity() ||
          (score && (score->shape(0) != capacity() || score->shape(1) != 2))) {
        throw Error("lanes (" + std::to_string(rows.shape(0)) + " rows of " +
                    std::to_string(rows.shape(1)) + " bytes) must be alike, of " +
                    std::to_string(layout.num_bytes()) + " bytes a row; allocate them so");
      }
      all.push_back(
          {rows.data(), policy.data(), value.data(), score ? score->data() : nullptr, device});
    }
    return all;
  }

  std::vector<PyLane> lanes_;
  SharedPort shared_;
};

// The driver's interface to one lane.
struct LaneDriver {
  PySharedPort* port;
  size_t lane;
};

template <class Planes, class Rows>
void check_rows(const RowLayout& layout, const Planes& planes, const Rows& rows) {
  if (planes.shape(0) == rows.shape(0) && rows.shape(1) == layout.num_bytes() &&
      planes.size() == planes.shape(0) * layout.num_entries()) {
    return;
  }
  throw Error("rows (" + std::to_string(rows.shape(0)) + " of " + std::to_string(rows.shape(1)) +
              " bytes) must fit the planes");
}

void bind_rows(nb::module_& m) {
  nb::class_<RowLayout>(m, "RowLayout", "See tengen.inference.RowLayout.")
      .def(
          "__init__",
          [](RowLayout* self, std::array<size_t, 3> planes_shape, bool is_packed) {
            new (self) RowLayout{planes_shape, is_packed};
          },
          "planes_shape"_a, "is_packed"_a)
      .def_prop_ro("num_bytes", &RowLayout::num_bytes, "Bytes per row.");
  m.def(
      "write_rows",
      [](const RowLayout& layout, const Array<const float, 4>& planes,
         const Array<uint8_t, 2>& rows) {
        check_rows(layout, planes, rows);
        GilReleased release;
        for (size_t i = 0; i < planes.shape(0); ++i) {
          write_row(layout, planes.data() + i * layout.num_entries(),
                    rows.data() + i * layout.num_bytes());
        }
      },
      "layout"_a, "planes"_a, "rows"_a, "Packs planes [n, C, H, W] float32 into rows.");
  m.def(
      "read_rows",
      [](const RowLayout& layout, const Array<const uint8_t, 2>& rows,
         const Array<float, 4>& planes) {
        check_rows(layout, planes, rows);
        GilReleased release;
        for (size_t i = 0; i < planes.shape(0); ++i) {
          read_row(layout, rows.data() + i * layout.num_bytes(),
                   planes.data() + i * layout.num_entries());
        }
      },
      "layout"_a, "rows"_a, "planes"_a, "The inverse of write_rows.");
}

// Writes pseudo-random outputs, as if from an untrained network, to the first rows of a batch.
void evaluate_at_random(const Array<float, 2>& policy, const Array<float, 1>& value,
                        size_t num_rows, uint64_t seed) {
  if (policy.shape(0) < num_rows || value.shape(0) < num_rows) {
    throw Error("num_rows (" + std::to_string(num_rows) +
                ") must be at most the rows of policy and value; allocate more");
  }
  GilReleased release;
  for (size_t i = 0; i < num_rows; ++i) {
    hash_evaluate(zobrist_key(seed, i), static_cast<int>(policy.shape(1)),
                  policy.data() + i * policy.shape(1), value.data() + i);
  }
}

void bind_port(nb::module_& m) {
  nb::class_<Port>(m, "Port", "Rows that wait for evaluation; see tengen.inference.Port.")
      .def("next", &Port::next, WithoutGil())
      .def("done", &Port::done, WithoutGil())
      .def_prop_ro("planes", &planes_view, "[capacity, C, H, W] float32, a view.")
      .def_prop_ro("policy", &policy_view, "[capacity, A] float32 logits, a view.")
      .def_prop_ro("value", &value_view, "[capacity] float32, a view.")
      .def_prop_ro(
          "score", &score_view,
          nb::sig("def score(self) -> Annotated[numpy.typing.NDArray[numpy.float32], "
                  "dict(shape=(None, 2))] | None"),
          "[capacity, 2] float32, mean and standard deviation in points, a view; None if the "
          "port does not need scores.");
  m.def("evaluate_at_random", &evaluate_at_random, "policy"_a, "value"_a, "num_rows"_a, "seed"_a,
        "Fills num_rows rows of policy [N, A] (logits) and value [N] with hashes of seed.");
}

void bind_shared_port(nb::module_& m) {
  nb::class_<SharedStats>(m, "SharedStats", "Counters of a shared port since its start.")
      .def_ro("num_rows", &SharedStats::num_rows)
      .def_ro("num_batches", &SharedStats::num_batches)
      .def_ro("device_s", &SharedStats::device_s)
      .def_ro("wait_s", &SharedStats::wait_s);
  nb::class_<LaneDriver>(m, "LaneDriver", "A driver's view of a lane; see tengen.inference.")
      .def(
          "next", [](LaneDriver& self) { return self.port->shared().next(self.lane); },
          WithoutGil())
      .def("done", [](LaneDriver& self) { self.port->shared().done(self.lane); }, WithoutGil());
  nb::class_<PySharedPort>(m, "SharedPort", "Batches rows of ports; see inference/shared_port.h.")
      .def(
          "__init__",
          [](PySharedPort* self, const RowLayout& layout, std::vector<PyLane> lanes,
             size_t num_workers) {
            new (self) PySharedPort(layout, std::move(lanes), num_workers);
          },
          "layout"_a, "lanes"_a, "num_workers"_a,
          "Lanes are (rows, policy, value, score or None, device index), with equal capacity.")
      .def(
          "work",
          [](PySharedPort& self, const std::vector<Port*>& ports) { self.shared().work(ports); },
          "ports"_a, WithoutGil(), "Runs the ports of this thread to completion. Blocks.")
      .def(
          "lane", [](PySharedPort& self, size_t lane) { return LaneDriver{&self, lane}; }, "lane"_a,
          nb::keep_alive<0, 1>())
      .def(
          "stop", [](PySharedPort& self) { self.shared().stop(); }, WithoutGil(),
          "Makes work() and next() return. Thread-safe.")
      .def_prop_ro("stats", [](PySharedPort& self) { return self.shared().stats(); });
}

}  // namespace

void bind_inference(nb::module_& m) {
  bind_rows(m);
  bind_port(m);
  bind_shared_port(m);
}

}  // namespace tengen
