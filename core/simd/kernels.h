#pragma once
// Vector kernels for the search and for network inputs. Each kernel is compiled for several
// instruction sets, one of which is chosen at run time. All variants process blocks of 16 lanes,
// reduce lanes in the same order and use no fused multiply-add, so their results are bitwise equal.
//
// Kernels may read up to kOverread floats past the end of an input and ignore them, so inputs need
// padding of this size.

#include <cstddef>
#include <cstdint>

namespace tengen::simd {

inline constexpr int kLanes = 16;
inline constexpr int kOverread = kLanes - 1;

struct Kernels {
  const char* name;  // "baseline", "avx2", "avx512"

  // out[i] = exp(x[i] - max x) / sum. n >= 1. `out` may be `x`. Writes complete blocks.
  void (*softmax)(const float* x, int n, float* out);

  // out[i] = exp(x[i]), relative error below 2e-7 in [-87, 88], clamped. Writes complete blocks.
  void (*exp)(const float* x, int n, float* out);

  // Returns the index of the largest x[i], i < n, and the lowest index in case of a tie. n >= 1.
  int (*argmax)(const float* x, int n);

  // Returns the index i with the largest sum[i] / visits[i] + scale * prior[i] / (1 + visits[i]),
  // the lowest in case of a tie. Writes this value to *score. n >= 1, visits[i] > 0.
  int (*best_edge)(const float* prior, const float* visits, const float* sum, int n, float scale,
                   float* score);

  // Same as best_edge, but adds in_flight[i] >= 0 visits to visits[i] in the exploration term. An
  // edge with visits[i] = 0 has the value `lost`. n >= 1, visits[i] >= 0.
  int (*best_edge_in_flight)(const float* prior, const float* visits, const float* sum,
                             const float* in_flight, int n, float scale, float lost, float* score);

  // out[r * n + i] = x[r * n + i] - mean[i] for `num_rows` frames of n bytes, exact in both output
  // types. Reads and writes no padding.
  void (*centre_float)(const uint8_t* x, const uint8_t* mean, size_t n, size_t num_rows,
                       float* out);
  void (*centre_bfloat16)(const uint8_t* x, const uint8_t* mean, size_t n, size_t num_rows,
                          uint16_t* out);

  // Sets bit i % 8 of bits[i / 8] to x[i] != 0, which is true for a NaN. Unused bits of the last
  // byte are 0. Reads and writes no padding.
  void (*nonzero_bits)(const float* x, size_t n, uint8_t* bits);

  // total[i] += the sum over r of x[r * n + i].
  void (*add_bytes)(const uint8_t* x, size_t n, size_t num_rows, uint32_t* total);

  // The next six are for core/lines. `width` and `num_outputs` are multiples of kLanes.

  // Writes the patterns (core/lines/line_patterns.h) of the lines through n cells. `cells` has 0
  // for a cell off the board, 1 plus its state otherwise. The next cells of the line through
  // cells[i] are cells[i - step] and cells[i + step]. Reads and writes complete blocks.
  void (*line_patterns)(const int32_t* cells, ptrdiff_t step, int n, int reach, int32_t num_pairs,
                        uint32_t* out);

  // cells[k * width + c] = max(0, the sum of table[row * width + c] over the four rows of cell k,
  // rows[k], rows[num_cells + k] and so on. A NaN remains.
  void (*sum_rows)(const float* table, int width, const uint32_t* rows, int num_cells,
                   float* cells);

  // The gradient of sum_rows. That of a cell is factor[k] * weights[c] + each[c]; for the first
  // cell that is equal to top[c], first[c] is added, which is then set to 0. Where the cell is
  // above 0, its gradient is added to each of its four rows of `table_gradient`, as often as a row
  // occurs.
  void (*spread_rows)(const float* table, const float* factor, const float* weights,
                      const float* each, const float* top, float* first, const uint32_t* rows,
                      int num_cells, int width, float* table_gradient);

  // Sum and maximum over the cells. num_cells >= 1.
  void (*pool)(const float* cells, int num_cells, int width, float* sum, float* top);

  // out[o] = bias[o] + the sum over i of x[i] * weights[i * num_outputs + o], in this order;
  // with a ReLU at least 0.
  void (*dense)(const float* x, int num_inputs, const float* weights, const float* bias,
                int num_outputs, bool has_relu, float* out);

  // out[k] = the dot product of cells[k * width] and the next cells with `weights`.
  void (*dots)(const float* cells, int num_cells, int width, const float* weights, float* out);
};

// Returns the fastest variant for this processor. Thread-safe. Does not block after the first call.
const Kernels& kernels();

// Returns a variant by name, or null if this processor does not support it. For tests.
const Kernels* kernels_by_name(const char* name);

}  // namespace tengen::simd
