#include "lines/lines_training.h"

#include <algorithm>
#include <vector>

#include "simd/kernels.h"

namespace tengen {
namespace {

// The sizes of one position's arrays.
struct Sizes {
  explicit Sizes(const CellsShape& shape)
      : num_positions(static_cast<size_t>(shape.num_positions)),
        num_cells(static_cast<size_t>(shape.num_cells)),
        width(static_cast<size_t>(shape.width)),
        features(num_cells * width) {}

  size_t num_positions;
  size_t num_cells;
  size_t width;
  size_t features;
};

}  // namespace

void sum_lines(const CellsShape& shape, const float* table, const uint32_t* rows, float* cells,
               float* mean, float* top) {
  const Sizes sizes(shape);
  const simd::Kernels& kernels = simd::kernels();
  const float share = 1.0f / static_cast<float>(shape.num_cells);
  for (size_t n = 0; n < sizes.num_positions; ++n) {
    kernels.sum_rows(table, shape.width, rows, shape.num_cells, cells);
    kernels.pool(cells, shape.num_cells, shape.width, mean, top);
    for (size_t i = 0; i < sizes.width; ++i) mean[i] *= share;
    rows += 4 * sizes.num_cells;
    cells += sizes.features;
    mean += sizes.width;
    top += sizes.width;
  }
}

void sum_lines_gradient(const CellsShape& shape, const uint32_t* rows, const float* cells,
                        const float* top, const float* cells_gradient, const float* mean_gradient,
                        const float* top_gradient, float* table_gradient) {
  const Sizes sizes(shape);
  const simd::Kernels& kernels = simd::kernels();
  const float share = 1.0f / static_cast<float>(shape.num_cells);
  std::vector<float> each(sizes.width);
  std::vector<float> first(sizes.width);
  for (size_t n = 0; n < sizes.num_positions; ++n) {
    for (size_t i = 0; i < sizes.width; ++i) each[i] = mean_gradient[i] * share;
    std::copy_n(top_gradient, sizes.width, first.data());
    kernels.spread_rows(cells, cells_gradient, each.data(), top, first.data(), rows,
                        shape.num_cells, shape.width, table_gradient);
    rows += 4 * sizes.num_cells;
    cells += sizes.features;
    cells_gradient += sizes.features;
    top += sizes.width;
    mean_gradient += sizes.width;
    top_gradient += sizes.width;
  }
}

void dot_cells(const CellsShape& shape, const float* cells, const float* weights, float* out) {
  const Sizes sizes(shape);
  for (size_t n = 0; n < sizes.num_positions; ++n) {
    simd::kernels().dots(cells + n * sizes.features, shape.num_cells, shape.width,
                         weights + n * sizes.width, out + n * sizes.num_cells);
  }
}

void dot_cells_gradient(const CellsShape& shape, const float* cells, const float* weights,
                        const float* gradient, float* cells_gradient, float* weights_gradient) {
  const Sizes sizes(shape);
  const simd::Kernels& kernels = simd::kernels();
  const std::vector<float> zero(sizes.width);
  for (size_t n = 0; n < sizes.num_positions; ++n) {
    kernels.dense(gradient, shape.num_cells, cells, zero.data(), shape.width, false,
                  weights_gradient);
    for (size_t k = 0; k < sizes.num_cells; ++k, cells_gradient += sizes.width) {
      for (size_t i = 0; i < sizes.width; ++i) cells_gradient[i] = gradient[k] * weights[i];
    }
    gradient += sizes.num_cells;
    cells += sizes.features;
    weights += sizes.width;
    weights_gradient += sizes.width;
  }
}

}  // namespace tengen
