// The implementation of all kernel variants. Each kernels_<set>.cc defines TENGEN_KERNEL_SET (a
// namespace) and TENGEN_VECTOR_BYTES (the widest vector), includes this file, and is compiled for
// one instruction set.

#include <cstdint>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "simd/kernels.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // no vector is passed in a call, because all are inlined

namespace tengen::simd::TENGEN_KERNEL_SET {
namespace {

#include "simd/lanes_impl.h"

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

inline Floats maximum(Floats a, Floats b) { return choose(a > b, a, b); }

// Source: Moshier, Cephes library, expf: range reduction by log(2), polynomial of degree 5.
[[gnu::always_inline]] inline Floats exponential(Floats x) {
  const Floats low = splat(-87.0f);
  const Floats high = splat(88.0f);
  x = choose(low > x, low, x);
  x = choose(x > high, high, x);
  // Adding 1.5 * 2^23 and subtracting it rounds to the nearest integer.
  const Floats k = (x * 1.44269504088896341f + 12582912.0f) - 12582912.0f;
  const Floats r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
  Floats p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  return p * power_of_two(k);
}

// Replaces the lanes whose index is at least n with `other`. The first lane has index `begin`.
inline Floats keep_first(Floats v, int begin, int n, float other) {
  return choose(splat<int32_t>(n) > indices_from(begin), v, splat(other));
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
    total = total + e;
  }
  const float scale = 1.0f / reduce_sum(total);
  for (int i = 0; i < n; i += kLanes) store(out + i, load(out + i) * scale);
}

void exp(const float* x, int n, float* out) {
  for (int i = 0; i < n; i += kLanes) store(out + i, exponential(load(x + i)));
}

// Returns the lowest `index` among the lanes with the largest `best`, which is never NaN.
inline int first_best(Floats best, Ints index, float* score) {
  *score = reduce_max(best);
  return reduce_min(
      choose(best == splat(*score), index, splat(std::numeric_limits<int32_t>::max())));
}

// Returns the lowest index of the largest score. score_of(i) returns scores i to i + 15.
template <class F>
inline int first_largest(int n, float* score, F&& score_of) {
  Floats best = splat(kMinusInfinity);
  Ints index = indices_from(0);
  for (int i = 0; i < n; i += kLanes) {
    const Floats v = keep_first(score_of(i), i, n, kMinusInfinity);
    index = choose(v > best, indices_from(i), index);
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
                        const float* in_flight, int n, float scale, float lost, float* score) {
  return first_largest(n, score, [&](int i) {
    const Floats seen = load(visits + i);
    const Floats mean = choose(seen > splat(0.0f), load(sum + i) / seen, splat(lost));
    return mean + load(prior + i) * scale / (seen + load(in_flight + i) + 1.0f);
  });
}

// These kernels are plain loops, because compilers vectorize them well.
void centre_float(const uint8_t* x, const uint8_t* mean, size_t n, size_t num_rows, float* out) {
  for (size_t r = 0; r < num_rows; ++r, x += n, out += n)
    for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(x[i] - mean[i]);
}

void centre_bfloat16(const uint8_t* x, const uint8_t* mean, size_t n, size_t num_rows,
                     uint16_t* out) {
  for (size_t r = 0; r < num_rows; ++r, x += n, out += n) {
    for (size_t i = 0; i < n; ++i) {
      // The difference has at most 8 significant bits, so the lower half of the float is 0.
      const float value = static_cast<float>(x[i] - mean[i]);
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      out[i] = static_cast<uint16_t>(bits >> 16);
    }
  }
}

void nonzero_bits(const float* x, size_t n, uint8_t* bits) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes, bits += kLanes / 8) {
    const uint32_t found = nonzero(load(x + i));
    bits[0] = static_cast<uint8_t>(found);
    bits[1] = static_cast<uint8_t>(found >> 8);
  }
  for (; i < n; i += 8, ++bits) {
    unsigned byte = 0;
    for (size_t k = i; k < n && k < i + 8; ++k) byte |= (x[k] != 0.0f) << (k - i);
    *bits = static_cast<uint8_t>(byte);
  }
}

void add_bytes(const uint8_t* x, size_t n, size_t num_rows, uint32_t* total) {
  for (size_t r = 0; r < num_rows; ++r, x += n)
    for (size_t i = 0; i < n; ++i) total[i] += x[i];
}

void line_patterns(const int32_t* cells, ptrdiff_t step, int n, int reach, int32_t num_pairs,
                   uint32_t* out) {
  const Ints three = splat(3);
  for (int i = 0; i < n; i += kLanes, cells += kLanes, out += kLanes) {
    Ints left = splat(0);
    Ints right = splat(0);
    for (int k = reach; k > 0; --k) {
      left = left * three + read(cells - k * step);
      right = right * three + read(cells + k * step);
    }
    const Ints is_left = left > right;
    const Ints high = choose(is_left, left, right);
    const Ints low = choose(is_left, right, left);
    const Ints twice = high * high + high;
    const Ints half = each<Ints>([](auto v) { return v >> 1; }, twice);
    const Ints state = read(cells) + splat(-1);
    write(out, state * splat(num_pairs) + half + low);
  }
}

// The features of a cell, the sum of four rows of a table.
struct CellRows {
  CellRows(const float* table, const uint32_t* rows, int num_cells, size_t width)
      : a(table + rows[0] * width),
        b(table + rows[num_cells] * width),
        c(table + rows[2 * num_cells] * width),
        d(table + rows[3 * num_cells] * width) {}

  Floats sum(size_t i) const {
    const Floats sum = (load(a + i) + load(b + i)) + (load(c + i) + load(d + i));
    return choose(splat(0.0f) > sum, splat(0.0f), sum);  // keeps NaN
  }

  const float *a, *b, *c, *d;
};

void sum_rows(const float* table, int width, const uint32_t* rows, int num_cells, float* cells) {
  const auto size = static_cast<size_t>(width);
  for (int k = 0; k < num_cells; ++k, ++rows, cells += size) {
    const CellRows cell(table, rows, num_cells, size);
    for (size_t i = 0; i < size; i += kLanes) store(cells + i, cell.sum(i));
  }
}

void spread_rows(const float* table, const float* factor, const float* weights, const float* each,
                 const float* top, float* first, const uint32_t* rows, int num_cells, int width,
                 float* table_gradient) {
  const auto size = static_cast<size_t>(width);
  const Floats zero = splat(0.0f);
  for (int k = 0; k < num_cells; ++k, ++rows) {
    const CellRows cell(table, rows, num_cells, size);
    for (size_t i = 0; i < size; i += kLanes) {
      const Floats value = cell.sum(i);
      const Floats of_top = load(first + i);
      const Ints is_top = value == load(top + i);
      store(first + i, choose(is_top, zero, of_top));
      const Floats sum =
          load(weights + i) * factor[k] + load(each + i) + choose(is_top, of_top, zero);
      const Floats kept = choose(value > zero, sum, zero);
      // Some of the four rows may be the same.
      for (int line = 0; line < 4; ++line) {
        float* row = table_gradient + rows[line * num_cells] * size + i;
        store(row, load(row) + kept);
      }
    }
  }
}

void pool(const float* cells, int num_cells, int width, float* sum, float* top) {
  for (int i = 0; i < width; i += kLanes) {
    const float* cell = cells + i;
    Floats total = load(cell);
    Floats most = total;
    for (int k = 1; k < num_cells; ++k) {
      cell += width;
      const Floats v = load(cell);
      total = total + v;
      most = maximum(v, most);
    }
    store(sum + i, total);
    store(top + i, most);
  }
}

// Computes kBlocks blocks of outputs at once, because one sum has to wait for each addition.
template <int kBlocks>
[[gnu::always_inline]] inline void dense_blocks(const float* x, int num_inputs,
                                                const float* weights, const float* bias,
                                                int num_outputs, bool has_relu, float* out) {
  Floats sum[kBlocks];
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) sum[b] = load(bias + b * kLanes);
  for (int i = 0; i < num_inputs; ++i, weights += num_outputs) {
    const Floats input = splat(x[i]);
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) sum[b] = sum[b] + load(weights + b * kLanes) * input;
  }
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    store(out + b * kLanes, has_relu ? maximum(sum[b], splat(0.0f)) : sum[b]);
  }
}

void dense(const float* x, int num_inputs, const float* weights, const float* bias, int num_outputs,
           bool has_relu, float* out) {
  int o = 0;
  for (; o + 4 * kLanes <= num_outputs; o += 4 * kLanes) {
    dense_blocks<4>(x, num_inputs, weights + o, bias + o, num_outputs, has_relu, out + o);
  }
  for (; o < num_outputs; o += kLanes) {
    dense_blocks<1>(x, num_inputs, weights + o, bias + o, num_outputs, has_relu, out + o);
  }
}

void dots(const float* cells, int num_cells, int width, const float* weights, float* out) {
  for (int k = 0; k < num_cells; ++k, cells += width) {
    Floats sum = splat(0.0f);
    for (int i = 0; i < width; i += kLanes) sum = sum + load(cells + i) * load(weights + i);
    out[k] = reduce_sum(sum);
  }
}

}  // namespace

extern const Kernels kTable;
const Kernels kTable = {TENGEN_KERNEL_NAME,
                        &softmax,
                        &exp,
                        &argmax,
                        &best_edge,
                        &best_edge_in_flight,
                        &centre_float,
                        &centre_bfloat16,
                        &nonzero_bits,
                        &add_bytes,
                        &line_patterns,
                        &sum_rows,
                        &spread_rows,
                        &pool,
                        &dense,
                        &dots};

}  // namespace tengen::simd::TENGEN_KERNEL_SET
