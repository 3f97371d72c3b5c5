#include <cmath>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "programs/kernels.h"
#include "programs/program.h"
#include "simd/kernels.h"

using namespace tengen;

namespace {

std::vector<float> numbers(Rng& rng, int64_t n) {
  std::vector<float> x(static_cast<size_t>(n));
  for (float& value : x) value = static_cast<float>(rng.normal());
  return x;
}

// Compares a product with sums in double, for matrices that are transposed or not.
void check_product(const programs::Kernels& set, Rng& rng, int64_t rows, int64_t columns,
                   int64_t depth, bool is_a_turned, bool is_b_turned) {
  const std::vector<float> a = numbers(rng, rows * depth);
  const std::vector<float> b = numbers(rng, depth * columns);
  const std::vector<float> bias = numbers(rng, columns);
  const int64_t row = columns + 3;  // the elements between rows of `out` must not change
  std::vector<float> out(static_cast<size_t>(rows * row), 7.0f);
  const programs::Product product = {rows,
                                     columns,
                                     depth,
                                     a.data(),
                                     is_a_turned ? 1 : depth,
                                     is_a_turned ? rows : 1,
                                     b.data(),
                                     is_b_turned ? 1 : columns,
                                     is_b_turned ? depth : 1,
                                     bias.data(),
                                     1,
                                     out.data(),
                                     row};
  std::vector<float> scratch(static_cast<size_t>(set.scratch_floats(product)));
  set.multiply(product, scratch.data());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < row; ++j) {
      const float found = out[static_cast<size_t>(i * row + j)];
      if (j >= columns) {
        TENGEN_CHECK(found == 7.0f);
        continue;
      }
      double expected = bias[static_cast<size_t>(j)];
      for (int64_t k = 0; k < depth; ++k)
        expected +=
            static_cast<double>(a[static_cast<size_t>(i * product.a_row + k * product.a_depth)]) *
            b[static_cast<size_t>(k * product.b_depth + j * product.b_column)];
      TENGEN_CHECK(std::abs(found - expected) < 1e-5 * static_cast<double>(depth + 1));
    }
  }
}

void check_map(const programs::Kernels& set, const char* name, double low, double high,
               double (*exact)(double)) {
  constexpr int kCount = 1001;
  std::vector<float> x(kCount);
  for (int i = 0; i < kCount; ++i)
    x[static_cast<size_t>(i)] = static_cast<float>(low + (high - low) * i / (kCount - 1));
  std::vector<float> out(kCount);
  const double constants[4] = {};
  set.map(name)(x.data(), nullptr, nullptr, constants, out.data(), kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const double expected = exact(x[i]);
    TENGEN_CHECK(std::abs(out[i] - expected) <= 3e-7 * std::abs(expected));
  }
  const float special[3] = {INFINITY, -INFINITY, NAN};
  set.map(name)(special, nullptr, nullptr, constants, out.data(), 3);
  TENGEN_CHECK(out[0] == exact(INFINITY) && out[1] == exact(-INFINITY) && std::isnan(out[2]));
}

}  // namespace

int main() {
  Rng rng(9, 0, 0, 0, Purpose::kTest);
  for (const char* name : {"baseline", "avx2", "avx512"}) {
    if (!simd::kernels_by_name(name)) continue;
    const programs::Kernels& set = programs::kernels(name);
    for (const int64_t rows : {1, 5, 12, 25})
      for (const int64_t columns : {1, 4, 16, 33, 70})
        for (const int64_t depth : {1, 3, 64, 101})
          for (int turned = 0; turned < 4; ++turned)
            check_product(set, rng, rows, columns, depth, turned & 1, turned & 2);
    check_map(set, "exp", -87.0, 88.5, &std::exp);
    check_map(set, "tanh", -12.0, 12.0, &std::tanh);
    TENGEN_CHECK(!set.map("nothing"));
    const std::vector<float> x = numbers(rng, 777);
    double total = 0.0, squares = 0.0;
    for (const float value : x) {
      total += value;
      squares += static_cast<double>(value) * value;
    }
    TENGEN_CHECK(std::abs(set.sum(x.data(), 777) - total) < 1e-3);
    TENGEN_CHECK(std::abs(set.sum_squares(x.data(), 777) - squares) < 1e-2);
  }
  programs::Program program;
  const programs::Operand operand = {0, 0, programs::Type::kFloat, {0, 0, 0, 4}};
  TENGEN_CHECK(throws([&] { program.add("nothing", {2}, {operand, operand}, {}); }));
  TENGEN_CHECK(throws([&] { program.add("copy", {1, 1, 1, 1, 2}, {operand, operand}, {}); }));
  return 0;
}
