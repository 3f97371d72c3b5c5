// The implementation of all kernel variants. Each kernels_<set>.cc defines TENGEN_KERNEL_SET (a
// namespace) and TENGEN_VECTOR_BYTES (the widest vector), includes this file, and is compiled for
// one instruction set.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "programs/kernels.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // no vector is passed in a call, because all are inlined

namespace tengen::programs::TENGEN_KERNEL_SET {
namespace {

// Source: Moshier, Cephes library, expf and tanhf. Without branches, so that loops vectorize.
inline float exponential(float x) {
  const float bounded = x > 88.72f ? 88.72f : x < -87.33f ? -87.33f : x;
  const float k = (bounded * 1.44269504088896341f + 12582912.0f) - 12582912.0f;
  const float r = (bounded - k * 0.693359375f) - k * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  // k reaches 128, so multiply with two powers of two.
  const int32_t half = static_cast<int32_t>(k) >> 1;
  const int32_t rest = static_cast<int32_t>(k) - half;
  const float first = __builtin_bit_cast(float, (half + 127) << 23);
  const float value = p * first * __builtin_bit_cast(float, (rest + 127) << 23);
  const float above = x > 88.72f ? INFINITY : value;
  const float below = x < -87.33f ? 0.0f : above;
  return x != x ? x : below;
}
inline double exponential(double x) { return std::exp(x); }

inline float hyperbolic_tangent(float x) {
  const float size = x < 0.0f ? -x : x;
  const float far = 1.0f - 2.0f / (exponential(2.0f * size) + 1.0f);
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float near = p * z * x + x;
  const float signed_far = x < 0.0f ? -far : far;
  return size < 0.625f ? near : signed_far;
}
inline double hyperbolic_tangent(double x) { return std::tanh(x); }

template <class T>
inline T softplus(T x, T beta, T threshold) {
  const T scaled = x * beta;
  return scaled > threshold ? x : std::log1p(std::exp(scaled)) / beta;
}
template <class T>
inline T softplus_slope(T x, T beta, T threshold) {
  const T scaled = x * beta;
  const T z = std::exp(scaled);
  return scaled > threshold ? T(1) : z / (z + T(1));
}
template <class T>
inline T huber(T x, T delta) {
  const T size = std::abs(x);
  return size < delta ? T(0.5) * x * x : delta * (size - T(0.5) * delta);
}
template <class T>
inline T power(T x, T exponent) {
  return exponent == T(2) ? x * x : exponent == T(1) ? x : std::pow(x, exponent);
}
template <class T>
inline T lerp(T a, T b, T weight) {
  return weight < T(0.5) ? a + weight * (b - a) : b - (b - a) * (T(1) - weight);
}

// The maps: torch's name, number of inputs, and result of the inputs a, b, c and the constants s0,
// s1, which are the other arguments. Comparisons and selections propagate NaN like torch.
#define TENGEN_MAPS(MAP)                                                         \
  MAP("copy", 1, a)                                                              \
  MAP("add", 2, a + s0 * b)                                                      \
  MAP("sub", 2, a - s0 * b)                                                      \
  MAP("rsub", 2, b - s0 * a)                                                     \
  MAP("mul", 2, a* b)                                                            \
  MAP("div", 2, a / b)                                                           \
  MAP("neg", 1, -a)                                                              \
  MAP("abs", 1, std::abs(a))                                                     \
  MAP("sgn", 1, T(a > T(0)) - T(a < T(0)))                                       \
  MAP("pow", 1, power(a, s0))                                                    \
  MAP("reciprocal", 1, T(1) / a)                                                 \
  MAP("sqrt", 1, std::sqrt(a))                                                   \
  MAP("exp", 1, exponential(a))                                                  \
  MAP("expm1", 1, std::expm1(a))                                                 \
  MAP("log", 1, std::log(a))                                                     \
  MAP("tanh", 1, hyperbolic_tangent(a))                                          \
  MAP("relu", 1, a < T(0) ? T(0) : a)                                            \
  MAP("clamp", 1, a<s0 ? s0 : a> s1 ? s1 : a)                                    \
  MAP("minimum", 2, a != a || a < b ? a : b)                                     \
  MAP("maximum", 2, a != a || a > b ? a : b)                                     \
  MAP("eq", 2, T(a == b))                                                        \
  MAP("ne", 2, T(a != b))                                                        \
  MAP("lt", 2, T(a < b))                                                         \
  MAP("le", 2, T(a <= b))                                                        \
  MAP("gt", 2, T(a > b))                                                         \
  MAP("ge", 2, T(a >= b))                                                        \
  MAP("logical_and", 2, T((a != T(0)) & (b != T(0))))                            \
  MAP("logical_or", 2, T((a != T(0)) | (b != T(0))))                             \
  MAP("logical_not", 1, T(a == T(0)))                                            \
  MAP("where", 3, a != T(0) ? b : c)                                             \
  MAP("masked_fill", 3, b != T(0) ? c : a)                                       \
  MAP("lerp", 2, lerp(a, b, s0))                                                 \
  MAP("softplus", 1, softplus(a, s0, s1))                                        \
  MAP("softplus_backward", 2, a* softplus_slope(b, s0, s1))                      \
  MAP("huber_loss", 2, huber(a - b, s1))                                         \
  MAP("huber_loss_backward", 3, a*(b - c < -s1 ? -s1 : b - c > s1 ? s1 : b - c)) \
  MAP("threshold_backward", 2, b <= s0 ? T(0) : a)                               \
  MAP("tanh_backward", 2, a*(T(1) - b * b))

template <class T>
Map<T> map(const char* name) {
#define TENGEN_MAP(NAME, NUM_INPUTS, RESULT)                                                \
  if (std::strcmp(name, NAME) == 0)                                                         \
    return [](const T* p, const T* q, const T* r, const double* constants, T* out, int n) { \
      [[maybe_unused]] const T s0 = static_cast<T>(constants[0]);                           \
      [[maybe_unused]] const T s1 = static_cast<T>(constants[1]);                           \
      _Pragma("GCC ivdep") for (int i = 0; i < n; ++i) {                                    \
        const T a = p[i];                                                                   \
        [[maybe_unused]] const T b = NUM_INPUTS > 1 ? q[i] : a;                             \
        [[maybe_unused]] const T c = NUM_INPUTS > 2 ? r[i] : a;                             \
        out[i] = RESULT;                                                                    \
      }                                                                                     \
    };
  TENGEN_MAPS(TENGEN_MAP)
#undef TENGEN_MAP
  return nullptr;
}

void add(const float* x, float* out, int n) {
#pragma GCC ivdep
  for (int i = 0; i < n; ++i) out[i] += x[i];
}

constexpr int kWidth = TENGEN_VECTOR_BYTES / static_cast<int>(sizeof(float));
typedef float Vector __attribute__((vector_size(TENGEN_VECTOR_BYTES)));

inline Vector load(const float* p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, Vector v) { std::memcpy(p, &v, sizeof v); }

template <class F>
inline float reduced(const float* x, int n, F&& term) {
  Vector total[4] = {};
  int i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth)
    for (int part = 0; part < 4; ++part) total[part] += term(load(x + i + part * kWidth));
  for (; i + kWidth <= n; i += kWidth) total[0] += term(load(x + i));
  const Vector all = (total[0] + total[1]) + (total[2] + total[3]);
  float sum = 0.0f;
  for (int lane = 0; lane < kWidth; ++lane) sum += all[lane];
  for (; i < n; ++i) sum += term(x[i]);
  return sum;
}
float sum(const float* x, int n) {
  return reduced(x, n, [](auto v) { return v; });
}
float sum_squares(const float* x, int n) {
  return reduced(x, n, [](auto v) { return v * v; });
}

// Matrix products. A panel of b has kPanel columns, padded with zeros, and all rows, contiguous in
// memory. A block of out has up to kBlock rows and a panel's columns, and stays in registers.
constexpr int kPanel = 2 * kWidth;
#if TENGEN_VECTOR_BYTES == 64
constexpr int kBlock = 12;  // 24 of 32 registers
#else
constexpr int kBlock = 6;  // 12 of 16 registers
#endif

constexpr int64_t rounded_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

int64_t scratch_floats(const Product& p) {
  return rounded_up(p.num_columns, kPanel) * (p.depth + 1) +
         rounded_up(p.num_rows, kBlock) * p.depth;
}

typedef float Four __attribute__((vector_size(16)));

// Writes out[k * stride + j] = x[j * row + k] for j < 4, k < 4.
inline void transpose_four(const float* x, int64_t row, float* out, int64_t stride) {
  typedef int32_t Lanes __attribute__((vector_size(16)));
  Four r[4];
  for (int j = 0; j < 4; ++j) std::memcpy(&r[j], x + j * row, sizeof(Four));
  const Four a = __builtin_shuffle(r[0], r[1], Lanes{0, 4, 1, 5});
  const Four b = __builtin_shuffle(r[2], r[3], Lanes{0, 4, 1, 5});
  const Four c = __builtin_shuffle(r[0], r[1], Lanes{2, 6, 3, 7});
  const Four d = __builtin_shuffle(r[2], r[3], Lanes{2, 6, 3, 7});
  const Four columns[4] = {
      __builtin_shuffle(a, b, Lanes{0, 1, 4, 5}), __builtin_shuffle(a, b, Lanes{2, 3, 6, 7}),
      __builtin_shuffle(c, d, Lanes{0, 1, 4, 5}), __builtin_shuffle(c, d, Lanes{2, 3, 6, 7})};
  for (int k = 0; k < 4; ++k) std::memcpy(out + k * stride, &columns[k], sizeof(Four));
}

// Copies `count` <= width vectors of length `depth` to panel[k * width + j] = x[j * across + k *
// along], padded with zeros to `width` vectors.
void pack(const float* x, int64_t across, int64_t along, int64_t count, int64_t depth, int width,
          float* panel) {
  if (count < width) std::fill(panel, panel + depth * width, 0.0f);
  if (across == 1) {
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t j = 0; j < count; ++j) panel[k * width + j] = x[k * along + j];
    return;
  }
  int64_t j = 0;
  if (along == 1) {
    for (; j + 4 <= count; j += 4) {
      int64_t k = 0;
      for (; k + 4 <= depth; k += 4)
        transpose_four(x + j * across + k, across, panel + k * width + j, width);
      for (; k < depth; ++k)
        for (int64_t i = j; i < j + 4; ++i) panel[k * width + i] = x[i * across + k];
    }
  }
  for (; j < count; ++j)
    for (int64_t k = 0; k < depth; ++k) panel[k * width + j] = x[j * across + k * along];
}

template <size_t kRows, int kVectors>
void multiply_block(const float* a, int64_t a_row, int64_t a_depth, const float* panel,
                    int64_t depth, const float* bias, float* out, int64_t out_row,
                    int64_t num_columns) {
  Vector total[kRows][kVectors];
#pragma GCC unroll 12
  for (size_t i = 0; i < kRows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) total[i][v] = load(bias + v * kWidth);
  for (int64_t k = 0; k < depth; ++k) {
    Vector b[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) b[v] = load(panel + k * kPanel + v * kWidth);
#pragma GCC unroll 12
    for (size_t i = 0; i < kRows; ++i) {
      const float x = a[static_cast<int64_t>(i) * a_row + k * a_depth];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) total[i][v] += x * b[v];
    }
  }
#pragma GCC unroll 12
  for (size_t i = 0; i < kRows; ++i) {
    float* const row = out + static_cast<int64_t>(i) * out_row;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const int64_t left = num_columns - v * kWidth;
      if (left >= kWidth)
        store(row + v * kWidth, total[i][v]);
      else if (left > 0)
        std::memcpy(row + v * kWidth, &total[i][v], static_cast<size_t>(left) * sizeof(float));
    }
  }
}

using Block = void (*)(const float*, int64_t, int64_t, const float*, int64_t, const float*, float*,
                       int64_t, int64_t);

// Returns multiply_block for a number of rows, 1 to kBlock.
template <int kVectors, size_t... kRows>
Block block_of(int num_rows, std::index_sequence<kRows...>) {
  static constexpr Block kBlocks[] = {&multiply_block<kRows + 1, kVectors>...};
  return kBlocks[num_rows - 1];
}

void multiply(const Product& p, float* scratch) {
  const int64_t num_columns = rounded_up(p.num_columns, kPanel);
  float* const bias = scratch;
  for (int64_t j = 0; j < num_columns; ++j)
    bias[j] = p.bias && j < p.num_columns ? p.bias[j * p.bias_column] : 0.0f;
  float* const panel = bias + num_columns;
  // The rows of a are copied too unless their elements are adjacent, so that a block reads few
  // lines of the cache.
  const bool is_copied = p.a_depth != 1;
  float* const rows = panel + kPanel * p.depth;
  for (int64_t i = 0; is_copied && i < p.num_rows; i += kBlock)
    pack(p.a + i * p.a_row, p.a_row, p.a_depth, std::min<int64_t>(kBlock, p.num_rows - i), p.depth,
         kBlock, rows + i * p.depth);
  for (int64_t j = 0; j < p.num_columns; j += kPanel) {
    const int64_t count = std::min<int64_t>(kPanel, p.num_columns - j);
    pack(p.b + j * p.b_column, p.b_column, p.b_depth, count, p.depth, kPanel, panel);
    for (int64_t i = 0; i < p.num_rows; i += kBlock) {
      const int block = static_cast<int>(std::min<int64_t>(kBlock, p.num_rows - i));
      const auto sizes = std::make_index_sequence<kBlock>();
      const Block multiply_rows =
          count > kWidth ? block_of<2>(block, sizes) : block_of<1>(block, sizes);
      const float* const a = is_copied ? rows + i * p.depth : p.a + i * p.a_row;
      multiply_rows(a, is_copied ? 1 : p.a_row, is_copied ? kBlock : 1, panel, p.depth, bias + j,
                    p.out + i * p.out_row + j, p.out_row, count);
    }
  }
}

void adamw(const AdamW& step, const float* gradient, float* parameter, float* mean, float* square,
           int64_t n) {
  const AdamW s = step;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float g = gradient[i];
    const float m = mean[i] + (1.0f - s.beta1) * (g - mean[i]);
    const float v = square[i] * s.beta2 + (1.0f - s.beta2) * g * g;
    mean[i] = m;
    square[i] = v;
    parameter[i] = parameter[i] * s.decay - s.rate * m / (std::sqrt(v) / s.scale + s.epsilon);
  }
}

}  // namespace

extern const Kernels kTable;
const Kernels kTable = {&map<float>, &map<double>,    &add,  &sum, &sum_squares,
                        &multiply,   &scratch_floats, &adamw};

}  // namespace tengen::programs::TENGEN_KERNEL_SET
