#include "lines/lines_training.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"

using namespace tengen;

namespace {

std::vector<float> random_numbers(Rng& rng, size_t n) {
  std::vector<float> x(n);
  for (float& value : x) value = static_cast<float>(2.0 * rng.uniform() - 1.0);
  return x;
}

// A loss of all outputs, and its gradients with respect to the table and the weights.
struct Layers {
  CellsShape shape;
  std::vector<uint32_t> rows;
  std::vector<float> of_mean, of_top, of_logits;  // the loss is the sum of outputs times these

  double loss(const std::vector<float>& table, const std::vector<float>& weights) const {
    const auto width = static_cast<size_t>(shape.width);
    const auto num_cells = static_cast<size_t>(shape.num_cells);
    double total = 0.0;
    for (size_t n = 0; n < static_cast<size_t>(shape.num_positions); ++n) {
      for (size_t c = 0; c < width; ++c) {
        double sum = 0.0, top = 0.0;
        for (size_t k = 0; k < num_cells; ++k) {
          const size_t cell = n * num_cells + k;
          double x = 0.0;
          for (size_t line = 0; line < 4; ++line) {
            x += table[rows[(4 * n + line) * num_cells + k] * width + c];
          }
          x = std::max(x, 0.0);
          sum += x;
          top = std::max(top, x);
          total += x * weights[n * width + c] * of_logits[cell];
        }
        total += sum / shape.num_cells * of_mean[n * width + c] + top * of_top[n * width + c];
      }
    }
    return total;
  }

  double run(const std::vector<float>& table, const std::vector<float>& weights,
             std::vector<float>& table_gradient, std::vector<float>& weights_gradient) const {
    const auto num_positions = static_cast<size_t>(shape.num_positions);
    const auto width = static_cast<size_t>(shape.width);
    const size_t num_cells = num_positions * static_cast<size_t>(shape.num_cells);
    std::vector<float> cells(static_cast<size_t>(shape.num_cells) * width);
    std::vector<float> mean(num_positions * width), top(num_positions * width), logits(num_cells);
    pool_lines(shape, table.data(), rows.data(), cells.data(), mean.data(), top.data());
    dot_lines(shape, table.data(), rows.data(), weights.data(), logits.data());
    double total = 0.0;
    for (size_t i = 0; i < mean.size(); ++i) total += mean[i] * of_mean[i] + top[i] * of_top[i];
    for (size_t k = 0; k < logits.size(); ++k) total += logits[k] * of_logits[k];
    table_gradient.assign(table.size(), 0.0f);
    weights_gradient.assign(weights.size(), 7.0f);
    dot_lines_gradient(shape, table.data(), rows.data(), of_logits.data(), weights_gradient.data());
    lines_gradient(shape, table.data(), rows.data(), weights.data(), of_logits.data(),
                   of_mean.data(), top.data(), of_top.data(), table_gradient.data());
    return total;
  }
};

void check_gradients(const CellsShape& shape, size_t num_patterns) {
  Rng rng(13, 0, static_cast<uint64_t>(shape.num_cells), 0, Purpose::kTest);
  const auto num_positions = static_cast<size_t>(shape.num_positions);
  const auto width = static_cast<size_t>(shape.width);
  const size_t num_cells = num_positions * static_cast<size_t>(shape.num_cells);
  Layers layers{shape, std::vector<uint32_t>(4 * num_cells), {}, {}, {}};
  for (uint32_t& row : layers.rows) row = rng.below(static_cast<uint32_t>(num_patterns));
  layers.of_mean = random_numbers(rng, num_positions * width);
  layers.of_top = random_numbers(rng, num_positions * width);
  layers.of_logits = random_numbers(rng, num_cells);
  std::vector<float> table = random_numbers(rng, num_patterns * width);
  std::vector<float> weights = random_numbers(rng, num_positions * width);
  std::vector<float> table_gradient, weights_gradient;
  const double loss = layers.run(table, weights, table_gradient, weights_gradient);
  TENGEN_CHECK(std::abs(loss - layers.loss(table, weights)) < 1e-2);

  // Steps in one number do not cross a kink of most of the loss's pieces.
  const auto check_numbers = [&](std::vector<float>& x, const std::vector<float>& gradient) {
    int num_wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const float before = x[i];
      x[i] = before + 1e-4f;
      const double above = layers.loss(table, weights);
      x[i] = before - 1e-4f;
      const double below = layers.loss(table, weights);
      x[i] = before;
      const double slope = (above - below) / (double(before + 1e-4f) - double(before - 1e-4f));
      num_wrong += std::abs(slope - gradient[i]) > 1e-2 * (1.0 + std::abs(slope));
    }
    TENGEN_CHECK(num_wrong <= static_cast<int>(x.size() / 50));
  };
  check_numbers(table, table_gradient);
  check_numbers(weights, weights_gradient);
}

}  // namespace

int main() {
  check_gradients({1, 1, 16}, 1);
  check_gradients({2, 9, 16}, 5);
  check_gradients({3, 20, 32}, 30);
  return 0;
}
