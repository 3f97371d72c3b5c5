// The body of every kernel variant. Included once by each kernels_<set>.cc, which defines
// TENGEN_KERNEL_SET (its namespace) and is compiled for that instruction set.

#include <cstdint>
#include <cstring>
#include <limits>

#include "simd/kernels.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors cross no call: everything is inlined

namespace tengen::simd::TENGEN_KERNEL_SET {
namespace {

typedef float Floats __attribute__((vector_size(kLanes * 4)));
typedef int32_t Ints __attribute__((vector_size(kLanes * 4)));

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

inline Floats load(const float* p) {
  Floats v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, Floats v) { std::memcpy(p, &v, sizeof v); }
inline Floats splat(float x) { return Floats{} + x; }
inline Ints lane_indices() { return Ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; }
inline Floats maximum(Floats a, Floats b) { return a > b ? a : b; }

// Halves the vector four times: one order of reduction, whatever the instruction set.
inline float reduce_sum(Floats v) {
  float lanes[kLanes];
  store(lanes, v);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

inline float reduce_max(Floats v) {
  float lanes[kLanes];
  store(lanes, v);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i)
      lanes[i] = lanes[i + width] > lanes[i] ? lanes[i + width] : lanes[i];
  }
  return lanes[0];
}

// Source: Moshier, Cephes library, expf: range reduction by log(2), polynomial of degree 5.
inline Floats exponential(Floats x) {
  const Floats low = splat(-87.0f);
  const Floats high = splat(88.0f);
  x = x < low ? low : x;
  x = x > high ? high : x;
  // Adding 1.5 * 2^23 rounds to the nearest integer.
  const Floats k = (x * 1.44269504088896341f + 12582912.0f) - 12582912.0f;
  const Floats r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
  Floats p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  const Ints exponent = (__builtin_convertvector(k, Ints) + 127) << 23;
  Floats power;
  std::memcpy(&power, &exponent, sizeof power);
  return p * power;
}

// Lanes at or past n become `other`.
inline Floats keep_first(Floats v, int begin, int n, float other) {
  return lane_indices() + begin < n ? v : splat(other);
}

void softmax(const float* x, int n, float* out) {
  Floats top = splat(kMinusInfinity);
  for (int i = 0; i < n; i += kLanes)
    top = maximum(top, keep_first(load(x + i), i, n, kMinusInfinity));
  const float max = reduce_max(top);
  Floats total = splat(0.0f);
  for (int i = 0; i < n; i += kLanes) {
    const Floats e = keep_first(exponential(load(x + i) - max), i, n, 0.0f);
    store(out + i, e);
    total += e;
  }
  const float scale = 1.0f / reduce_sum(total);
  for (int i = 0; i < n; i += kLanes) store(out + i, load(out + i) * scale);
}

void exp(const float* x, int n, float* out) {
  for (int i = 0; i < n; i += kLanes) store(out + i, exponential(load(x + i)));
}

// The first index of the largest lane, given each lane's best value and index.
inline int first_best(Floats best, Ints index, float* score) {
  float values[kLanes];
  int32_t indices[kLanes];
  store(values, best);
  std::memcpy(indices, &index, sizeof indices);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) {
      const bool take = values[i + width] > values[i] ||
                        (values[i + width] == values[i] && indices[i + width] < indices[i]);
      values[i] = take ? values[i + width] : values[i];
      indices[i] = take ? indices[i + width] : indices[i];
    }
  }
  *score = values[0];
  return indices[0];
}

// The first index of the largest score; score_of(i) gives those of i to i + 15.
template <class F>
inline int first_largest(int n, float* score, F&& score_of) {
  Floats best = splat(kMinusInfinity);
  Ints index = lane_indices();
  for (int i = 0; i < n; i += kLanes) {
    const Floats v = keep_first(score_of(i), i, n, kMinusInfinity);
    index = v > best ? lane_indices() + i : index;
    best = maximum(v, best);
  }
  return first_best(best, index, score);
}

int argmax(const float* x, int n) {
  float score;
  return first_largest(n, &score, [&](int i) { return load(x + i); });
}

int best_edge(const float* prior, const float* visits, const float* sum, int n, float scale,
              float* score) {
  return first_largest(n, score, [&](int i) {
    const Floats w = load(visits + i);
    return load(sum + i) / w + load(prior + i) * scale / (w + 1.0f);
  });
}

int best_edge_in_flight(const float* prior, const float* visits, const float* sum,
                        const float* in_flight, int n, float scale, float* score) {
  return first_largest(n, score, [&](int i) {
    const Floats seen = load(visits + i);
    const Floats mean = seen > 0.0f ? load(sum + i) / seen : splat(-1.0f);
    return mean + load(prior + i) * scale / (seen + load(in_flight + i) + 1.0f);
  });
}

}  // namespace

extern const Kernels kTable;
const Kernels kTable = {TENGEN_KERNEL_NAME,  &softmax, &exp, &argmax, &best_edge,
                        &best_edge_in_flight};

}  // namespace tengen::simd::TENGEN_KERNEL_SET
