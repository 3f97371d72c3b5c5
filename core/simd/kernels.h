#pragma once
// Vector kernels of the search. Each is compiled once an instruction set and chosen when the
// module loads; every variant works on blocks of 16 lanes reduced in one fixed order and without
// fused multiply-add, so all variants return the same bits.
//
// Inputs may be read up to kOverread floats past their end (the lanes are then ignored); their
// buffers must have that much slack.

#include <cstdint>

namespace tengen::simd {

inline constexpr int kLanes = 16;
inline constexpr int kOverread = kLanes - 1;

struct Kernels {
  const char* name;  // "baseline", "avx2", "avx512"

  // out[i] = exp(x[i] - max x) / sum. n >= 1; out may be x; out is written up to a whole block.
  void (*softmax)(const float* x, int n, float* out);

  // out[i] = exp(x[i]), relative error below 2e-7 for x in [-87, 88], clamped outside.
  // out is written up to a whole block.
  void (*exp)(const float* x, int n, float* out);

  // Index of the largest of x[0..n), the lowest where several are equal. n >= 1.
  int (*argmax)(const float* x, int n);

  // Index of the largest sum[i] / visits[i] + scale * prior[i] / (1 + visits[i]) and, in
  // *score, its value; the lowest index where several are equal. n >= 1, visits[i] > 0.
  int (*best_edge)(const float* prior, const float* visits, const float* sum, int n, float scale,
                   float* score);

  // The same where in_flight[i] >= 0 further visits are under way: they count as visits beside
  // the prior, and an edge without any other is worth `lost`. n >= 1, visits[i] >= 0.
  int (*best_edge_in_flight)(const float* prior, const float* visits, const float* sum,
                             const float* in_flight, int n, float scale, float lost, float* score);
};

// The variant for this processor. Thread-safe; never blocks after the first call.
const Kernels& kernels();

// A variant by name, or null where this processor lacks it. For tests.
const Kernels* kernels_by_name(const char* name);

}  // namespace tengen::simd
