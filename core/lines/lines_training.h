#pragma once
// The layers of core/lines/lines_net.h whose inputs are cells, with their gradients, for training.
// All arrays have N positions of K cells. Gradients are with respect to a scalar loss.

#include <cstdint>

namespace tengen {

// The sizes of a minibatch.
struct CellsShape {
  int num_positions;
  int num_cells;
  int width;  // features, a multiple of 16
};

// From the features [U, width] of patterns, computes the features of all cells [N, K, width]: those
// of a cell's four patterns, rows[N, 4, K] of `table`, are summed, then rectified. `mean` and `top`
// [N, width] are the mean and the maximum of each position's cells.
void sum_lines(const CellsShape& shape, const float* table, const uint32_t* rows, float* cells,
               float* mean, float* top);

// Adds to `table_gradient` [U, width] the gradient of sum_lines(), given the gradients of its
// outputs. The gradient of a maximum goes to the first of equal cells.
void sum_lines_gradient(const CellsShape& shape, const uint32_t* rows, const float* cells,
                        const float* top, const float* cells_gradient, const float* mean_gradient,
                        const float* top_gradient, float* table_gradient);

// Computes the dot products [N, K] of each cell's features and its position's `weights`
// [N, width].
void dot_cells(const CellsShape& shape, const float* cells, const float* weights, float* out);

// Writes the gradients of `cells` [N, K, width] and `weights`, given that of dot_cells().
void dot_cells_gradient(const CellsShape& shape, const float* cells, const float* weights,
                        const float* gradient, float* cells_gradient, float* weights_gradient);

}  // namespace tengen
