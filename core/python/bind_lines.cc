// The network of line patterns.

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "base/error.h"
#include "lines/line_patterns.h"
#include "lines/lines_net.h"
#include "lines/lines_training.h"
#include "python/arrays.h"
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

LinesBoard board_of(const Array<const float, 4>& planes) {
  const size_t height = planes.shape(2);
  const size_t width = planes.shape(3);
  const auto is_side = [](size_t x) { return x >= 1 && x <= LinePatterns::kMaxSide; };
  check(planes.shape(1) >= 3 && planes.shape(1) < 1000, "planes", planes.shape(1),
        "must be 3 to 999");
  check(is_side(height) && is_side(width), "board",
        std::to_string(height) + "x" + std::to_string(width), "must be at most 19x19");
  return {static_cast<int>(planes.shape(1)), static_cast<int>(height), static_cast<int>(width)};
}

void evaluate(const LinesNet& net, Array<const float, 4> planes, Array<float, 2> policy,
              Array<float, 1> value, size_t num_rows) {
  const LinesBoard board = board_of(planes);
  check(num_rows <= planes.shape(0) && num_rows <= policy.shape(0) && num_rows <= value.shape(0) &&
            policy.shape(1) == planes.shape(2) * planes.shape(3),
        "rows", std::to_string(num_rows), "must fit the arrays");
  const nb::gil_scoped_release release;
  net.evaluate(board, planes.data(), static_cast<int>(num_rows), policy.data(), value.data());
}

auto pattern_inputs(const LinePatterns& patterns) {
  const auto num_inputs = static_cast<size_t>(patterns.num_inputs());
  const std::vector<float> inputs = patterns.inputs();
  auto out = make_array<float, 2>({inputs.size() / num_inputs, num_inputs});
  std::copy(inputs.begin(), inputs.end(), out.data());
  return out;
}

auto find_patterns(const LinePatterns& patterns, Array<const float, 4> planes) {
  const LinesBoard board = board_of(planes);
  const size_t num_positions = planes.shape(0);
  const size_t num_cells = planes.shape(2) * planes.shape(3);
  auto rows = make_array<uint32_t, 3>({num_positions, LinePatterns::kDirections, num_cells});
  std::vector<int64_t> found;
  {
    const nb::gil_scoped_release release;
    const size_t num_lines = num_cells * LinePatterns::kDirections;
    std::vector<uint32_t> one(num_lines + LinePatterns::kPadding);
    for (size_t n = 0; n < num_positions; ++n) {
      patterns.find(board, planes.data() + n * planes.shape(1) * num_cells, one.data());
      std::copy_n(one.data(), num_lines, rows.data() + n * num_lines);
    }
    std::vector<uint32_t> place(patterns.size());
    for (size_t i = 0; i < rows.size(); ++i) place[rows.data()[i]] = 1;
    for (uint32_t i = 0; i < patterns.size(); ++i) {
      if (!place[i]) continue;
      place[i] = static_cast<uint32_t>(found.size());
      found.push_back(i);
    }
    for (size_t i = 0; i < rows.size(); ++i) rows.data()[i] = place[rows.data()[i]];
  }
  return nb::make_tuple(to_numpy(std::move(found)), rows);
}

using Rows = Array<const uint32_t, 3>;
using Matrix = Array<const float, 2>;

// Returns the sizes of a minibatch, and checks the arguments that all its functions have.
CellsShape shape_of(const Matrix& table, const Rows& rows) {
  check(rows.shape(2) > 0, "cells", rows.shape(2), "must be at least 1");
  check(table.shape(1) % 16 == 0, "features", table.shape(1), "must be a multiple of 16");
  const uint32_t* const end = rows.data() + rows.size();
  check(rows.shape(1) == LinePatterns::kDirections &&
            std::all_of(rows.data(), end, [&](uint32_t row) { return row < table.shape(0); }),
        "rows", std::to_string(table.shape(0)), "must be those of the patterns");
  return {static_cast<int>(rows.shape(0)), static_cast<int>(rows.shape(2)),
          static_cast<int>(table.shape(1))};
}

// Checks that `array` has a row of `size` numbers for each position.
void check_shape(const CellsShape& shape, const Matrix& array, int size) {
  check(array.shape(0) == static_cast<size_t>(shape.num_positions) &&
            array.shape(1) == static_cast<size_t>(size),
        "arrays", "of positions", "have other sizes");
}

auto py_pool_lines(Matrix table, Rows rows) {
  const CellsShape shape = shape_of(table, rows);
  auto mean = make_array<float, 2>({rows.shape(0), table.shape(1)});
  auto top = make_array<float, 2>({rows.shape(0), table.shape(1)});
  {
    const nb::gil_scoped_release release;
    std::vector<float> cells(rows.shape(2) * table.shape(1));
    pool_lines(shape, table.data(), rows.data(), cells.data(), mean.data(), top.data());
  }
  return nb::make_tuple(mean, top);
}

auto py_dot_lines(Matrix table, Rows rows, Matrix weights) {
  const CellsShape shape = shape_of(table, rows);
  check_shape(shape, weights, shape.width);
  auto out = make_array<float, 2>({rows.shape(0), rows.shape(2)});
  {
    const nb::gil_scoped_release release;
    dot_lines(shape, table.data(), rows.data(), weights.data(), out.data());
  }
  return out;
}

auto py_dot_lines_gradient(Matrix table, Rows rows, Matrix gradient) {
  const CellsShape shape = shape_of(table, rows);
  check_shape(shape, gradient, shape.num_cells);
  auto out = make_array<float, 2>({rows.shape(0), table.shape(1)});
  {
    const nb::gil_scoped_release release;
    dot_lines_gradient(shape, table.data(), rows.data(), gradient.data(), out.data());
  }
  return out;
}

auto py_lines_gradient(Matrix table, Rows rows, Matrix weights, Matrix dots_gradient,
                       Matrix mean_gradient, Matrix top, Matrix top_gradient) {
  const CellsShape shape = shape_of(table, rows);
  check_shape(shape, dots_gradient, shape.num_cells);
  for (const Matrix* each : {&weights, &mean_gradient, &top, &top_gradient}) {
    check_shape(shape, *each, shape.width);
  }
  auto out = make_array<float, 2>({table.shape(0), table.shape(1)});
  std::fill_n(out.data(), out.size(), 0.0f);
  {
    const nb::gil_scoped_release release;
    lines_gradient(shape, table.data(), rows.data(), weights.data(), dots_gradient.data(),
                   mean_gradient.data(), top.data(), top_gradient.data(), out.data());
  }
  return out;
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
  nb::class_<LinePatterns>(m, "LinePatterns",
                           "The patterns of the lines through a cell; see lines/line_patterns.h.")
      .def(nb::init<int>(), "reach"_a)
      .def("inputs", &pattern_inputs, "Returns the inputs of all patterns, [patterns, inputs].")
      .def("find", &find_patterns, "planes"_a.noconvert(),
           "Returns the patterns int64 [U] of positions [N, C, H, W], and for the four lines "
           "through each cell the index uint32 [N, 4, H * W] of its pattern.");
  m.def("pool_lines", &py_pool_lines, "table"_a.noconvert(), "rows"_a.noconvert(),
        "Returns the mean and the maximum [N, F] of the cells of each position, from the features "
        "[U, F] of patterns and the patterns [N, 4, K] of cells; see lines/lines_training.h.");
  m.def("dot_lines", &py_dot_lines, "table"_a.noconvert(), "rows"_a.noconvert(),
        "weights"_a.noconvert(), "Returns the dot products [N, K] of cells and weights [N, F].");
  m.def("dot_lines_gradient", &py_dot_lines_gradient, "table"_a.noconvert(), "rows"_a.noconvert(),
        "gradient"_a.noconvert(), "Returns the gradient [N, F] of the weights of dot_lines.");
  m.def("lines_gradient", &py_lines_gradient, "table"_a.noconvert(), "rows"_a.noconvert(),
        "weights"_a.noconvert(), "dots_gradient"_a.noconvert(), "mean_gradient"_a.noconvert(),
        "top"_a.noconvert(), "top_gradient"_a.noconvert(),
        "Returns the gradient [U, F] of the table of pool_lines and dot_lines.");
}

}  // namespace tengen
