#include "simd/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"

using namespace tengen;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Returns `n` values of a kind: spread, tied, with minus infinity, or huge. They are followed by
// exactly as many values as a kernel may read and must ignore.
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
  x[rng.below(static_cast<uint32_t>(n))] = 3.5f;  // not all values are minus infinity
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

// An edge without visits has the value `lost`; visits in flight lower only the exploration term.
void check_edges_in_flight(const simd::Kernels& set, Rng& rng, int n) {
  const std::vector<float> prior = values(rng, n, 0);
  std::vector<float> sum = values(rng, n, 2);
  std::vector<float> visits = values(rng, n, 1);
  const std::vector<float> none(visits.size(), 0.0f);
  std::vector<float> in_flight = values(rng, n, 1);
  const float scale = static_cast<float>(rng.uniform());
  const float lost = -1.25f;
  for (const bool is_quiet : {false, true}) {
    std::vector<float> scores;
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      if (is_quiet) visits[i] += 1.0f;
      if (visits[i] == 0.0f) sum[i] = 0.0f;
      const float mean = visits[i] > 0.0f ? sum[i] / visits[i] : lost;
      const float others = is_quiet ? 0.0f : in_flight[i];
      scores.push_back(mean + prior[i] * scale / (visits[i] + others + 1.0f));
    }
    float score;
    const float* flying = is_quiet ? none.data() : in_flight.data();
    const int best = set.best_edge_in_flight(prior.data(), visits.data(), sum.data(), flying, n,
                                             scale, lost, &score);
    TENGEN_CHECK(best == first_largest(scores, n));
    TENGEN_CHECK(score == scores[static_cast<size_t>(best)]);
    if (!is_quiet) continue;
    float alone;
    TENGEN_CHECK(best == set.best_edge(prior.data(), visits.data(), sum.data(), n, scale, &alone));
    TENGEN_CHECK(score == alone);
  }
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
    check_edges_in_flight(set, rng, n);
  }
  // If all values are minus infinity, the first one is found.
  const std::vector<float> none(20 + simd::kOverread, -kInfinity);
  TENGEN_CHECK(set.argmax(none.data(), 20) == 0);
  const std::vector<float> ones(20 + simd::kOverread, 1.0f);
  float score;
  TENGEN_CHECK(set.best_edge(ones.data(), ones.data(), none.data(), 20, 1.0f, &score) == 0);
  TENGEN_CHECK(score == -kInfinity);
}

void check_bytes(const simd::Kernels& set, Rng& rng, size_t n) {
  const size_t num_rows = 3;
  std::vector<uint8_t> x(num_rows * n), mean(n);
  for (uint8_t& byte : x) byte = static_cast<uint8_t>(rng.below(256));
  for (uint8_t& byte : mean) byte = static_cast<uint8_t>(rng.below(256));
  x[0] = 0, mean[0] = 255;
  std::vector<float> floats(x.size() + 1, 7.0f);
  std::vector<uint16_t> halves(x.size() + 1, 7);
  std::vector<uint32_t> total(n + 1, 7);
  set.centre_float(x.data(), mean.data(), n, num_rows, floats.data());
  set.centre_bfloat16(x.data(), mean.data(), n, num_rows, halves.data());
  set.add_bytes(x.data(), n, num_rows, total.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const float expected = static_cast<float>(x[i]) - static_cast<float>(mean[i % n]);
    TENGEN_CHECK(floats[i] == expected);
    const uint32_t bits = uint32_t{halves[i]} << 16;
    float half;
    std::memcpy(&half, &bits, sizeof(half));
    TENGEN_CHECK(half == expected);
  }
  for (size_t i = 0; i < n; ++i) TENGEN_CHECK(total[i] == 7u + x[i] + x[n + i] + x[2 * n + i]);
  TENGEN_CHECK(floats.back() == 7.0f && halves.back() == 7 && total.back() == 7);
}

void check_bits(const simd::Kernels& set, Rng& rng, size_t n) {
  std::vector<float> x(n);
  const float kinds[] = {0.0f, -0.0f, 1.0f, -7.5f, 1e-42f, std::nanf(""), kInfinity};
  for (float& value : x) value = rng.below(2) == 0 ? 0.0f : kinds[rng.below(7)];
  const size_t num_bytes = (n + 7) / 8;
  std::vector<uint8_t> bits(num_bytes + 1, 0xa5);
  set.nonzero_bits(x.data(), n, bits.data());
  for (size_t i = 0; i < 8 * num_bytes; ++i) {
    const bool is_set = i < n && !(x[i] == 0.0f);
    TENGEN_CHECK((bits[i / 8] >> i % 8 & 1) == is_set);
  }
  TENGEN_CHECK(bits[num_bytes] == 0xa5);
}

std::vector<float> spread(Rng& rng, size_t n) {
  std::vector<float> x(n);
  for (float& value : x) value = static_cast<float>(2.0 * rng.uniform() - 1.0);
  return x;
}

// Patterns are equal to those that a scalar loop computes.
void check_patterns(const simd::Kernels& set, int n) {
  Rng rng(10, 1, static_cast<uint64_t>(n), 0, Purpose::kTest);
  for (int reach = 1; reach <= 5; ++reach) {
    for (const int step : {1, n + 1, n + 2}) {
      const int before = reach * step;
      std::vector<int32_t> cells(static_cast<size_t>(2 * before + n + simd::kOverread));
      for (int32_t& cell : cells) cell = static_cast<int32_t>(rng.below(4));
      std::vector<uint32_t> found(static_cast<size_t>(n + simd::kOverread) + 1, 7);
      const int32_t* const first = cells.data() + before;
      set.line_patterns(first, step, n, reach, 1000003, found.data());
      TENGEN_CHECK(found.back() == 7);
      for (int i = 0; i < n; ++i) {
        int side = 0, other = 0, factor = 1;
        for (int k = 1; k <= reach; ++k, factor *= 3) {
          side += factor * first[i - k * step];
          other += factor * first[i + k * step];
        }
        if (side > other) std::swap(side, other);
        const int pattern = (first[i] - 1) * 1000003 + other * (other + 1) / 2 + side;
        TENGEN_CHECK(static_cast<int32_t>(found[static_cast<size_t>(i)]) == pattern);
      }
    }
  }
}

// The layers are near sums in double precision, and have the bits of the baseline.
void check_layers(const simd::Kernels& set, const simd::Kernels& baseline, int num_cells,
                  int width) {
  Rng rng(10, 0, static_cast<uint64_t>(num_cells * 1000 + width), 0, Purpose::kTest);
  const auto cells_size = static_cast<size_t>(num_cells);
  const auto size = static_cast<size_t>(width);
  const std::vector<float> table = spread(rng, 50 * size);
  std::vector<uint32_t> rows(4 * cells_size);
  for (uint32_t& row : rows) row = rng.below(50);
  const std::vector<float> x = spread(rng, cells_size);
  const std::vector<float> weights = spread(rng, cells_size * size);
  const std::vector<float> bias = spread(rng, size);
  const std::vector<float> top_gradient = spread(rng, size);
  std::vector<float> first;
  for (const simd::Kernels* each : {&baseline, &set}) {
    std::vector<float> cells(cells_size * size), sum(size), top(size), linear(size), relu(size);
    std::vector<float> dots(cells_size);
    std::vector<float> spread_out = table, first_of_top = top_gradient;
    each->sum_rows(table.data(), width, rows.data(), num_cells, cells.data());
    each->pool(cells.data(), num_cells, width, sum.data(), top.data());
    each->dense(x.data(), num_cells, weights.data(), bias.data(), width, false, linear.data());
    each->dense(x.data(), num_cells, weights.data(), bias.data(), width, true, relu.data());
    each->dots(cells.data(), num_cells, width, bias.data(), dots.data());
    each->spread_rows(table.data(), x.data(), weights.data(), bias.data(), top.data(),
                      first_of_top.data(), rows.data(), num_cells, width, spread_out.data());
    std::vector<double> gradient(table.begin(), table.end());
    for (size_t c = 0; c < size; ++c) {
      double of_top = top_gradient[c];
      for (size_t k = 0; k < cells_size; ++k) {
        double slope = static_cast<double>(x[k]) * weights[c] + bias[c];
        if (cells[k * size + c] == top[c]) slope += std::exchange(of_top, 0.0);
        if (cells[k * size + c] <= 0.0f) slope = 0.0;
        for (size_t line = 0; line < 4; ++line)
          gradient[rows[line * cells_size + k] * size + c] += slope;
      }
      TENGEN_CHECK(first_of_top[c] == 0.0f);
    }
    for (size_t i = 0; i < gradient.size(); ++i) {
      TENGEN_CHECK(std::abs(gradient[i] - spread_out[i]) < 1e-3);
    }
    for (size_t c = 0; c < size; ++c) {
      double total = 0.0, most = 0.0, product = bias[c];
      for (size_t k = 0; k < cells_size; ++k) {
        double cell = 0.0;
        for (size_t line = 0; line < 4; ++line)
          cell += table[rows[line * cells_size + k] * size + c];
        cell = std::max(cell, 0.0);
        TENGEN_CHECK(std::abs(cells[k * size + c] - cell) < 1e-6);
        total += cell;
        most = std::max(most, cell);
        product += static_cast<double>(x[k]) * weights[k * size + c];
      }
      TENGEN_CHECK(std::abs(sum[c] - total) < 1e-3);
      TENGEN_CHECK(std::abs(top[c] - most) < 1e-6);
      TENGEN_CHECK(std::abs(linear[c] - product) < 1e-4);
      TENGEN_CHECK(relu[c] == std::max(linear[c], 0.0f));
    }
    for (size_t k = 0; k < cells_size; ++k) {
      double product = 0.0;
      for (size_t c = 0; c < size; ++c) {
        product += static_cast<double>(cells[k * size + c]) * bias[c];
      }
      TENGEN_CHECK(std::abs(dots[k] - product) < 1e-4);
    }
    std::vector<float> all = cells;
    for (const auto* part : {&sum, &top, &linear, &relu, &dots, &spread_out}) {
      all.insert(all.end(), part->begin(), part->end());
    }
    if (first.empty()) first = all;
    TENGEN_CHECK(std::memcmp(first.data(), all.data(), all.size() * sizeof(float)) == 0);
  }
}

}  // namespace

int main() {
  const simd::Kernels* baseline = simd::kernels_by_name("baseline");
  TENGEN_CHECK(baseline != nullptr);
  TENGEN_CHECK(simd::kernels_by_name("avx1024") == nullptr);
  for (const char* name : {"baseline", "avx2", "avx512"}) {
    const simd::Kernels* set = simd::kernels_by_name(name);
    if (!set) continue;
    check_set(*set, *baseline);
    for (const int num_cells : {1, 3, 81, 361}) {
      for (const int width : {16, 64, 80, 128}) check_layers(*set, *baseline, num_cells, width);
    }
    for (const int n : {1, 9, 16, 19}) check_patterns(*set, n);
    Rng rng(9, 0, 0, 0, Purpose::kTest);
    for (const size_t n : {1u, 7u, 16u, 100u, 3001u}) check_bytes(*set, rng, n);
    for (size_t n = 0; n <= 100; ++n) check_bits(*set, rng, n);
    check_bits(*set, rng, 5054);
  }
  check_set(simd::kernels(), *baseline);
  return 0;
}
