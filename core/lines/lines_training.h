#pragma once
// The layers of core/lines/lines_net.h whose inputs are cells, with their gradients, for training.
//
// The features of a cell are those of its four patterns, added and rectified. `table` has the
// features [U, width] of patterns, and `rows` [N, 4, K] the patterns of the K cells of N positions.
// The cells' features would take more memory than fits the caches, so each function computes them
// again. Gradients are with respect to a scalar loss.

#include <cstdint>

namespace tengen {

// The sizes of a minibatch.
struct CellsShape {
  int num_positions;
  int num_cells;
  int width;  // features, a multiple of 16
};

// The mean and the maximum [N, width] of each position's cells. `cells` [num_cells, width] is
// overwritten, with the last position's cells.
void pool_lines(const CellsShape& shape, const float* table, const uint32_t* rows, float* cells,
                float* mean, float* top);

// The dot products [N, K] of each cell's features and its position's `weights` [N, width].
void dot_lines(const CellsShape& shape, const float* table, const uint32_t* rows,
               const float* weights, float* out);

// Writes the gradient of `weights`, given that of dot_lines().
void dot_lines_gradient(const CellsShape& shape, const float* table, const uint32_t* rows,
                        const float* gradient, float* weights_gradient);

// Adds to `table_gradient` [U, width] the gradients of pool_lines() and dot_lines(), given those of
// their outputs. The gradient of a maximum goes to the first of equal cells.
void lines_gradient(const CellsShape& shape, const float* table, const uint32_t* rows,
                    const float* weights, const float* dots_gradient, const float* mean_gradient,
                    const float* top, const float* top_gradient, float* table_gradient);

}  // namespace tengen
