// The network of line patterns.

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "lines/lines_net.h"
#include "python/bindings.h"
#include "python/gil.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tengen {
namespace {

template <class T, int Axes>
using Array = nb::ndarray<T, nb::ndim<Axes>, nb::c_contig, nb::device::cpu>;
// Weights [num_outputs, num_inputs] and biases [num_outputs].
using PyDense = std::pair<Array<const float, 2>, Array<const float, 1>>;

DenseWeights dense(const PyDense& layer) {
  const auto& [weights, bias] = layer;
  return {static_cast<int>(weights.shape(1)),
          static_cast<int>(weights.shape(0)),
          {weights.data(), weights.size()},
          {bias.data(), bias.size()}};
}

void make_net(LinesNet* self, int reach, const std::vector<PyDense>& layers) {
  check(layers.size() == 7, "layers", std::to_string(layers.size()), "must be 7");
  const LinesWeights weights{reach,
                             {dense(layers[0]), dense(layers[1]), dense(layers[2])},
                             dense(layers[3]),
                             dense(layers[4]),
                             {dense(layers[5]), dense(layers[6])}};
  const nb::gil_scoped_release release;  // the table takes a while
  new (self) LinesNet(weights);
}

void evaluate(const LinesNet& net, Array<const float, 4> planes, Array<float, 2> policy,
              Array<float, 1> value, size_t num_rows) {
  const size_t height = planes.shape(2);
  const size_t width = planes.shape(3);
  check(planes.shape(1) < 1000 && height <= LinesNet::kMaxSide && width <= LinesNet::kMaxSide,
        "board", std::to_string(height) + "x" + std::to_string(width), "must be at most 19x19");
  check(num_rows <= planes.shape(0) && num_rows <= policy.shape(0) && num_rows <= value.shape(0) &&
            policy.shape(1) == height * width,
        "rows", std::to_string(num_rows), "must fit the arrays");
  const LinesBoard board{static_cast<int>(planes.shape(1)), static_cast<int>(height),
                         static_cast<int>(width)};
  const nb::gil_scoped_release release;
  net.evaluate(board, planes.data(), static_cast<int>(num_rows), policy.data(), value.data());
}

}  // namespace

void bind_lines(nb::module_& m) {
  nb::class_<LinesNet>(m, "LinesNet", "A network of line patterns; see lines/lines_net.h.")
      .def("__init__", &make_net, "reach"_a, "layers"_a,
           "Layers are (weights [out, in], biases [out]): three of a line, the context, the "
           "policy, two of the value.")
      .def("evaluate", &evaluate, "planes"_a.noconvert(), "policy"_a.noconvert(),
           "value"_a.noconvert(), "num_rows"_a,
           "Writes num_rows rows of policy [N, A] (logits) and value [N] for planes "
           "[N, C, H, W]. Blocks without the GIL; thread-safe.");
}

}  // namespace tengen
