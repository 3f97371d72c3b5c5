#include "lines/lines_net.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "base/testing.h"

using namespace tengen;

namespace {

using Numbers = std::vector<double>;

struct Layer {
  int num_inputs;
  int num_outputs;
  std::vector<float> weights;
  std::vector<float> bias;

  Layer(Rng& rng, int inputs, int outputs)
      : num_inputs(inputs),
        num_outputs(outputs),
        weights(static_cast<size_t>(inputs * outputs)),
        bias(static_cast<size_t>(outputs)) {
    for (float& w : weights) w = static_cast<float>(rng.uniform() - 0.5);
    for (float& b : bias) b = static_cast<float>(rng.uniform() - 0.5);
  }

  DenseWeights view() const { return {num_inputs, num_outputs, weights, bias}; }

  Numbers run(const Numbers& x, bool has_relu) const {
    TENGEN_CHECK(x.size() == static_cast<size_t>(num_inputs));
    Numbers out(bias.begin(), bias.end());
    for (size_t o = 0; o < out.size(); ++o) {
      for (size_t i = 0; i < x.size(); ++i) out[o] += weights[o * x.size() + i] * x[i];
      if (has_relu) out[o] = std::max(out[o], 0.0);
    }
    return out;
  }
};

// A line is read from the shorter side, and if both have the same size, from the one with less in
// the farthest cell that differs.
bool comes_before(const std::vector<int>& a, const std::vector<int>& b) {
  if (a.size() != b.size()) return a.size() < b.size();
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

struct Net {
  int reach;
  int width;
  Layer line[3];
  Layer context;
  Layer policy;
  Layer value[2];

  Net(Rng& rng, int of_reach, int hidden, int features, int num_planes)
      : reach(of_reach),
        width(features),
        line{{rng, 3 * (2 * reach + 1), hidden}, {rng, hidden, hidden}, {rng, hidden, features}},
        context(rng, 2 * features + num_planes - 3, 24),
        policy(rng, 24, features),
        value{{rng, 24, 10}, {rng, 10, 3}} {}

  LinesWeights view() const {
    return {reach,
            {line[0].view(), line[1].view(), line[2].view()},
            context.view(),
            policy.view(),
            {value[0].view(), value[1].view()}};
  }

  // Evaluates one position cell by cell in double precision, without patterns.
  double run(const LinesBoard& board, const float* planes, Numbers& logits) const {
    const int num_cells = board.height * board.width;
    const auto state = [&](int cell) {
      return planes[num_cells + cell] > 0.5f ? 1 : planes[2 * num_cells + cell] > 0.5f ? 2 : 0;
    };
    std::vector<Numbers> cells;
    for (int y = 0; y < board.height; ++y) {
      for (int x = 0; x < board.width; ++x) {
        Numbers sum(static_cast<size_t>(width));
        for (const auto& [dy, dx] : {std::pair{0, 1}, {1, 0}, {1, 1}, {1, -1}}) {
          // The states of the cells on each side on the board, the nearest first.
          std::vector<int> sides[2];
          for (int side = 0; side < 2; ++side) {
            for (int i = 1; i <= reach; ++i) {
              const int row = y + (2 * side - 1) * i * dy;
              const int column = x + (2 * side - 1) * i * dx;
              if (row < 0 || row >= board.height || column < 0 || column >= board.width) break;
              sides[side].push_back(state(row * board.width + column));
            }
          }
          if (comes_before(sides[1], sides[0])) std::swap(sides[0], sides[1]);
          Numbers inputs(static_cast<size_t>(3 * (2 * reach + 1)));
          const auto show = [&](int place, int what) {
            if (what > 0) inputs[static_cast<size_t>(3 * place + what - 1)] = 1.0;
          };
          show(reach, state(y * board.width + x));
          for (int i = 0; i < reach; ++i) {
            const auto at = static_cast<size_t>(i);
            show(reach - 1 - i, at < sides[0].size() ? sides[0][at] : 3);
            show(reach + 1 + i, at < sides[1].size() ? sides[1][at] : 3);
          }
          const Numbers out = line[2].run(line[1].run(line[0].run(inputs, true), true), false);
          for (size_t c = 0; c < out.size(); ++c) sum[c] += out[c];
        }
        for (double& feature : sum) feature = std::max(feature, 0.0);
        cells.push_back(sum);
      }
    }
    Numbers pooled;
    for (size_t c = 0; c < static_cast<size_t>(width); ++c) {
      double total = 0.0;
      for (const Numbers& cell : cells) total += cell[c];
      pooled.push_back(total / num_cells);
    }
    for (size_t c = 0; c < static_cast<size_t>(width); ++c) {
      double most = 0.0;
      for (const Numbers& cell : cells) most = std::max(most, cell[c]);
      pooled.push_back(most);
    }
    for (int plane = 3; plane < board.num_planes; ++plane) {
      double total = 0.0;
      for (int k = 0; k < num_cells; ++k) total += planes[plane * num_cells + k];
      pooled.push_back(total / num_cells);
    }
    const Numbers seen = context.run(pooled, true);
    const Numbers weights = policy.run(seen, false);
    logits.clear();
    for (const Numbers& cell : cells) {
      double logit = 0.0;
      for (size_t c = 0; c < cell.size(); ++c) logit += cell[c] * weights[c];
      logits.push_back(logit);
    }
    const Numbers outcome = value[1].run(value[0].run(seen, true), false);
    double total = 0.0;
    for (const double x : outcome) total += std::exp(x);
    return (std::exp(outcome[0]) - std::exp(outcome[2])) / total;
  }
};

std::vector<float> random_planes(Rng& rng, const LinesBoard& board, int num_rows) {
  const auto num_cells = static_cast<size_t>(board.height * board.width);
  std::vector<float> planes;
  for (int n = 0; n < num_rows; ++n) {
    std::vector<float> position(static_cast<size_t>(board.num_planes) * num_cells);
    for (size_t k = 0; k < num_cells; ++k) {
      position[k] = 1.0f;
      const uint32_t stone = rng.below(static_cast<uint32_t>(n + 3));  // some are nearly empty
      if (stone > 0 && stone < 3) position[stone * num_cells + k] = 1.0f;
      for (int plane = 3; plane < board.num_planes; ++plane) {
        position[static_cast<size_t>(plane) * num_cells + k] = static_cast<float>(rng.uniform());
      }
    }
    planes.insert(planes.end(), position.begin(), position.end());
  }
  return planes;
}

void check_board(const LinesBoard& board, int reach) {
  Rng rng(11, 0, static_cast<uint64_t>(board.height * 20 + board.width), 0, Purpose::kTest);
  const Net net(rng, reach, 16, 32, board.num_planes);
  const LinesNet fast(net.view());
  const int num_rows = 5;
  const auto num_cells = static_cast<size_t>(board.height * board.width);
  const std::vector<float> planes = random_planes(rng, board, num_rows);
  std::vector<float> policy(num_rows * num_cells + 1, 7.0f);
  std::vector<float> value(num_rows + 1, 7.0f);
  fast.evaluate(board, planes.data(), num_rows, policy.data(), value.data());
  TENGEN_CHECK(policy.back() == 7.0f && value.back() == 7.0f);
  for (size_t n = 0; n < num_rows; ++n) {
    const float* position = planes.data() + n * num_cells * static_cast<size_t>(board.num_planes);
    Numbers logits;
    TENGEN_CHECK(std::abs(net.run(board, position, logits) - value[n]) < 1e-4);
    for (size_t k = 0; k < num_cells; ++k) {
      TENGEN_CHECK(std::abs(logits[k] - policy[n * num_cells + k]) < 1e-3);
    }
    // A row has the same bits in every batch.
    std::vector<float> alone(num_cells);
    float own_value;
    fast.evaluate(board, position, 1, alone.data(), &own_value);
    TENGEN_CHECK(own_value == value[n]);
    TENGEN_CHECK(std::equal(alone.begin(), alone.end(), policy.data() + n * num_cells));
  }
}

template <class F>
void check_refused(F&& f, const std::string& word) {
  try {
    f();
  } catch (const Error& error) {
    TENGEN_CHECK(std::string(error.what()).find(word) != std::string::npos);
    return;
  }
  TENGEN_CHECK(false);
}

}  // namespace

int main() {
  for (const int reach : {1, 2, 4}) {
    for (const auto& [height, width] : {std::pair{1, 1}, {3, 3}, {6, 7}, {2, 19}, {9, 9}}) {
      check_board({5, height, width}, reach);
    }
  }
  check_board({3, 3, 3}, 5);
  check_board({5, 19, 19}, 4);

  Rng rng(12, 0, 0, 0, Purpose::kTest);
  Net net(rng, 1, 16, 16, 5);
  const LinesNet fast(net.view());
  std::vector<float> planes(5 * 400), policy(400);
  float value;
  check_refused([&] { fast.evaluate({4, 3, 3}, planes.data(), 1, policy.data(), &value); },
                "planes");
  check_refused([&] { fast.evaluate({5, 20, 3}, planes.data(), 1, policy.data(), &value); },
                "board");
  for (Layer* layer : {&net.line[0], &net.line[1], &net.line[2], &net.context, &net.policy,
                       &net.value[0], &net.value[1]}) {
    const Layer whole = *layer;
    layer->weights.pop_back();
    check_refused([&] { LinesNet{net.view()}; }, "weights");
    *layer = whole;
    layer->bias.pop_back();
    check_refused([&] { LinesNet{net.view()}; }, "bias");
    *layer = Layer(rng, whole.num_inputs + 1, whole.num_outputs);
    // Another number of inputs of the context may be other planes.
    if (layer != &net.context) check_refused([&] { LinesNet{net.view()}; }, "size");
    *layer = whole;
  }
  net.line[1].weights[3] = std::nanf("");
  check_refused([&] { LinesNet{net.view()}; }, "finite");
  net.reach = 6;
  check_refused([&] { LinesNet{net.view()}; }, "reach");
  return 0;
}
