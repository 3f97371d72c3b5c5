#include "lines/lines_training.h"

#include <algorithm>
#include <vector>

#include "simd/kernels.h"

namespace tengen {
namespace {

// Calls f(n, rows) for each position n, whose patterns are `rows` [4, K].
template <class F>
void for_each_position(const CellsShape& shape, const uint32_t* rows, F&& f) {
  const size_t num_rows = 4 * static_cast<size_t>(shape.num_cells);
  for (size_t n = 0; n < static_cast<size_t>(shape.num_positions); ++n, rows += num_rows) {
    f(n, rows);
  }
}

// Returns a buffer for the features of a position's cells.
std::vector<float> cells_of(const CellsShape& shape) {
  return std::vector<float>(static_cast<size_t>(shape.num_cells) *
                            static_cast<size_t>(shape.width));
}

}  // namespace

void pool_lines(const CellsShape& shape, const float* table, const uint32_t* rows, float* cells,
                float* mean, float* top) {
  const auto width = static_cast<size_t>(shape.width);
  const simd::Kernels& kernels = simd::kernels();
  const float share = 1.0f / static_cast<float>(shape.num_cells);
  for_each_position(shape, rows, [&](size_t n, const uint32_t* its_rows) {
    kernels.sum_rows(table, shape.width, its_rows, shape.num_cells, cells);
    float* its_mean = mean + n * width;
    kernels.pool(cells, shape.num_cells, shape.width, its_mean, top + n * width);
    for (size_t i = 0; i < width; ++i) its_mean[i] *= share;
  });
}

void dot_lines(const CellsShape& shape, const float* table, const uint32_t* rows,
               const float* weights, float* out) {
  const simd::Kernels& kernels = simd::kernels();
  std::vector<float> cells = cells_of(shape);
  for_each_position(shape, rows, [&](size_t n, const uint32_t* its_rows) {
    kernels.sum_rows(table, shape.width, its_rows, shape.num_cells, cells.data());
    kernels.dots(cells.data(), shape.num_cells, shape.width,
                 weights + n * static_cast<size_t>(shape.width),
                 out + n * static_cast<size_t>(shape.num_cells));
  });
}

void dot_lines_gradient(const CellsShape& shape, const float* table, const uint32_t* rows,
                        const float* gradient, float* weights_gradient) {
  const auto width = static_cast<size_t>(shape.width);
  const simd::Kernels& kernels = simd::kernels();
  std::vector<float> cells = cells_of(shape);
  const std::vector<float> zero(width);
  for_each_position(shape, rows, [&](size_t n, const uint32_t* its_rows) {
    kernels.sum_rows(table, shape.width, its_rows, shape.num_cells, cells.data());
    kernels.dense(gradient + n * static_cast<size_t>(shape.num_cells), shape.num_cells,
                  cells.data(), zero.data(), shape.width, false, weights_gradient + n * width);
  });
}

void lines_gradient(const CellsShape& shape, const float* table, const uint32_t* rows,
                    const float* weights, const float* dots_gradient, const float* mean_gradient,
                    const float* top, const float* top_gradient, float* table_gradient) {
  const auto width = static_cast<size_t>(shape.width);
  const simd::Kernels& kernels = simd::kernels();
  const float share = 1.0f / static_cast<float>(shape.num_cells);
  std::vector<float> each(width);
  std::vector<float> first(width);
  for_each_position(shape, rows, [&](size_t n, const uint32_t* its_rows) {
    for (size_t i = 0; i < width; ++i) each[i] = mean_gradient[n * width + i] * share;
    std::copy_n(top_gradient + n * width, width, first.data());
    kernels.spread_rows(table, dots_gradient + n * static_cast<size_t>(shape.num_cells),
                        weights + n * width, each.data(), top + n * width, first.data(), its_rows,
                        shape.num_cells, shape.width, table_gradient);
  });
}

}  // namespace tengen
