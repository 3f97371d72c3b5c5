#pragma once
// Vector kernels of the search, and for positions and screens on their way to a network. Each is
// compiled once per instruction set and chosen when the module loads. Every variant works on blocks
// of 16 lanes, reduced in one fixed order and without fused multiply-add, so all variants return
// the same bits.
//
// Inputs may be read up to kOverread floats past their end (these lanes are then ignored); their
// buffers must have that much slack.

#include <cstddef>
#include <cstdint>

namespace tengen::simd {

inline constexpr int kLanes = 16;
inline constexpr int kOverread = kLanes - 1;

struct Kernels {
  const char* name;  // "baseline", "avx2", "avx512"

  // out[i] = exp(x[i] - max x) / sum. n >= 1; out may be x; writes out up to a whole block.
  void (*softmax)(const float* x, int n, float* out);

  // out[i] = exp(x[i]), relative error below 2e-7 in [-87, 88], clamped. Writes whole blocks.
  void (*exp)(const float* x, int n, float* out);

  // The index of the largest of x[0..n), the lowest if several are equal. n >= 1.
  int (*argmax)(const float* x, int n);

  // The index of the largest sum[i] / visits[i] + scale * prior[i] / (1 + visits[i]) and, in
  // *score, its value; the lowest index if several are equal. n >= 1, visits[i] > 0.
  int (*best_edge)(const float* prior, const float* visits, const float* sum, int n, float scale,
                   float* score);

  // The same with in_flight[i] >= 0 further visits in flight: they count as visits in the
  // exploration term, and an edge without any other visit has the value `lost`. n >= 1, visits[i]
  // >= 0.
  int (*best_edge_in_flight)(const float* prior, const float* visits, const float* sum,
                             const float* in_flight, int n, float scale, float lost, float* score);

  // out[r * n + i] = x[r * n + i] - mean[i] for `num_rows` pictures of n bytes, which is exact in
  // both types. Reads and writes nothing else.
  void (*centre_float)(const uint8_t* x, const uint8_t* mean, size_t n, size_t num_rows,
                       float* out);
  void (*centre_bfloat16)(const uint8_t* x, const uint8_t* mean, size_t n, size_t num_rows,
                          uint16_t* out);

  // Bit i % 8 of bits[i / 8] = whether x[i] is not 0; a NaN counts as 0. Unused bits of the last
  // byte are 0. Reads and writes nothing else.
  void (*nonzero_bits)(const float* x, size_t n, uint8_t* bits);

  // total[i] += the sum over r of x[r * n + i].
  void (*add_bytes)(const uint8_t* x, size_t n, size_t num_rows, uint32_t* total);
};

// The variant for this processor. Thread-safe; never blocks after the first call.
const Kernels& kernels();

// A variant by name, or null if this processor does not support it. For tests.
const Kernels* kernels_by_name(const char* name);

}  // namespace tengen::simd
