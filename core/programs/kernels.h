#pragma once
// Vector kernels for the operations of small networks, compiled once per instruction set. Results
// may differ between instruction sets by rounding, because those with fused multiply-add use it.

#include <cstdint>
#include <string_view>

namespace tengen::programs {

// out[i] = f(a[i], b[i], c[i]) for i < n, with up to three constants. Operands that `f` does not
// have are null. `out` may be any of the inputs.
template <class T>
using Map = void (*)(const T* a, const T* b, const T* c, const double* constants, T* out, int n);

// One matrix product: out[i, j] = bias[j] + sum over k of a[i, k] * b[k, j], without a bias if
// `bias` is null. Strides are numbers of elements. The rows of `out` are contiguous.
struct Product {
  int64_t num_rows, num_columns, depth;
  const float* a;
  int64_t a_row, a_depth;
  const float* b;
  int64_t b_depth, b_column;
  const float* bias;
  int64_t bias_column;
  float* out;
  int64_t out_row;
};

// A step of Adam with decoupled weight decay on n parameters, as in torch's fused AdamW.
struct AdamW {
  float decay;  // factor of a parameter: 1 - learning rate * weight decay
  float rate;   // learning rate / (1 - beta1 ** step)
  float beta1, beta2;
  float scale;  // sqrt(1 - beta2 ** step)
  float epsilon;
};

struct Kernels {
  // Return the function by name, or null if there is none.
  Map<float> (*map)(const char* name);
  Map<double> (*map_double)(const char* name);
  // out[i] += x[i].
  void (*add)(const float* x, float* out, int n);
  // Returns the sum of x[i], or of their squares. The order depends only on n.
  float (*sum)(const float* x, int n);
  float (*sum_squares)(const float* x, int n);
  // `scratch` must have at least `scratch_floats` elements.
  void (*multiply)(const Product& product, float* scratch);
  int64_t (*scratch_floats)(const Product& product);
  void (*adamw)(const AdamW& step, const float* gradient, float* parameter, float* mean,
                float* square, int64_t n);
};

// Returns the variant of an instruction set: by default the fastest for this processor.
// Thread-safe.
const Kernels& kernels();
const Kernels& kernels(std::string_view instruction_set);

}  // namespace tengen::programs
