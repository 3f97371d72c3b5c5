#include "simd/kernels.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"

using namespace tengen;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Values for one size: spread, tied, with minus infinity, huge. Behind them stands what a kernel
// may read and must ignore, and no more than that.
std::vector<float> values(Rng& rng, int n, int kind) {
  std::vector<float> x(static_cast<size_t>(n + simd::kOverread));
  for (float& value : x) {
    switch (kind) {
      case 0:
        value = static_cast<float>(8.0 * rng.uniform() - 4.0);
        break;
      case 1:
        value = static_cast<float>(rng.below(3));
        break;
      case 2:
        value = rng.below(4) == 0 ? -kInfinity : static_cast<float>(rng.normal());
        break;
      default:
        value = static_cast<float>(1e30 * rng.normal());
    }
  }
  x[rng.below(static_cast<uint32_t>(n))] = 3.5f;  // never all minus infinity
  for (int i = n; i < n + simd::kOverread; ++i) {
    const float ignored[] = {kInfinity, std::numeric_limits<float>::quiet_NaN(), 1e38f, -kInfinity};
    x[static_cast<size_t>(i)] = ignored[i % 4];
  }
  return x;
}

int first_largest(const std::vector<float>& x, int n) {
  int best = 0;
  for (int i = 1; i < n; ++i) {
    if (x[static_cast<size_t>(i)] > x[static_cast<size_t>(best)]) best = i;
  }
  return best;
}

void check_softmax(const simd::Kernels& set, const simd::Kernels& baseline,
                   const std::vector<float>& x, int n) {
  std::vector<float> out = x;
  set.softmax(out.data(), n, out.data());
  std::vector<float> same(x.size());
  baseline.softmax(x.data(), n, same.data());
  const double top = x[static_cast<size_t>(first_largest(x, n))];
  double total = 0.0;
  for (int i = 0; i < n; ++i) total += std::exp(x[static_cast<size_t>(i)] - top);
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    TENGEN_CHECK(out[i] == same[i]);
    TENGEN_CHECK(std::abs(out[i] - std::exp(x[i] - top) / total) < 1e-6);
  }
}

void check_exp(const simd::Kernels& set, const simd::Kernels& baseline, Rng& rng) {
  std::vector<float> x(1000 + simd::kOverread);
  for (float& value : x) value = static_cast<float>(175.0 * rng.uniform() - 87.0);
  std::vector<float> out(x.size());
  std::vector<float> same(x.size());
  set.exp(x.data(), 1000, out.data());
  baseline.exp(x.data(), 1000, same.data());
  for (size_t i = 0; i < 1000; ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    TENGEN_CHECK(out[i] == same[i]);
    TENGEN_CHECK(std::abs(out[i] - exact) < 2e-7 * exact);
  }
}

void check_best_edge(const simd::Kernels& set, Rng& rng, int n, int kind) {
  const std::vector<float> prior = values(rng, n, 1);
  std::vector<float> visits = values(rng, n, 1);
  std::vector<float> sum = values(rng, n, kind == 3 ? 0 : kind);
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) visits[i] += 1.0f;
  const float scale = static_cast<float>(rng.uniform());
  std::vector<float> scores;
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    scores.push_back(sum[i] / visits[i] + prior[i] * scale / (visits[i] + 1.0f));
  }
  float score;
  const int best = set.best_edge(prior.data(), visits.data(), sum.data(), n, scale, &score);
  TENGEN_CHECK(best == first_largest(scores, n));
  TENGEN_CHECK(score == scores[static_cast<size_t>(best)]);
}

void check_set(const simd::Kernels& set, const simd::Kernels& baseline) {
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  check_exp(set, baseline, rng);
  for (int n = 1; n <= 400; ++n) {
    for (int kind = 0; kind < 4; ++kind) {
      const std::vector<float> x = values(rng, n, kind);
      TENGEN_CHECK(set.argmax(x.data(), n) == first_largest(x, n));
      check_softmax(set, baseline, x, n);
      check_best_edge(set, rng, n, kind);
    }
  }
  // Nothing is better than nothing: the first.
  const std::vector<float> none(20 + simd::kOverread, -kInfinity);
  TENGEN_CHECK(set.argmax(none.data(), 20) == 0);
}

}  // namespace

int main() {
  const simd::Kernels* baseline = simd::kernels_by_name("baseline");
  TENGEN_CHECK(baseline != nullptr);
  TENGEN_CHECK(simd::kernels_by_name("avx1024") == nullptr);
  for (const char* name : {"baseline", "avx2", "avx512"}) {
    if (const simd::Kernels* set = simd::kernels_by_name(name)) check_set(*set, *baseline);
  }
  check_set(simd::kernels(), *baseline);
}
