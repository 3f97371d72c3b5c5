#include "lines/lines_net.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "simd/kernels.h"

namespace tengen {
namespace {

constexpr int kStates = 3;      // of a cell on the board: empty, own stone, opponent's stone
constexpr int kDirections = 4;  // across, down, down right, down left
constexpr int kSteps[kDirections][2] = {{0, 1}, {1, 0}, {1, 1}, {1, -1}};  // rows, columns

int padded(int size) { return (size + simd::kLanes - 1) / simd::kLanes * simd::kLanes; }

uint32_t power(int exponent) {
  uint32_t product = 1;
  for (int i = 0; i < exponent; ++i) product *= kStates;
  return product;
}

void check_size(bool is_right, const char* what) {
  check(is_right, "lines network", what, "has a wrong size; export the model again");
}

}  // namespace

LinesNet::Dense::Dense(const DenseWeights& from)
    : num_inputs_(from.num_inputs), num_outputs_(from.num_outputs) {
  check_size(num_inputs_ > 0 && num_outputs_ > 0, "layer");
  const auto num_inputs = static_cast<size_t>(num_inputs_);
  const auto num_outputs = static_cast<size_t>(num_outputs_);
  check_size(from.weights.size() == num_inputs * num_outputs, "weights");
  check_size(from.bias.size() == num_outputs, "bias");
  for (const std::span<const float> numbers : {from.weights, from.bias}) {
    const bool is_finite =
        std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
    check(is_finite, "lines network", "weights", "must be finite; export an older checkpoint");
  }
  const auto width = static_cast<size_t>(tengen::padded(num_outputs_));
  weights_.resize(num_inputs * width);
  bias_.resize(width);
  for (size_t out = 0; out < num_outputs; ++out) {
    bias_[out] = from.bias[out];
    for (size_t in = 0; in < num_inputs; ++in) {
      weights_[in * width + out] = from.weights[out * num_inputs + in];
    }
  }
}

void LinesNet::Dense::run(const float* x, bool has_relu, float* out) const {
  simd::kernels().dense(x, num_inputs_, weights_.data(), bias_.data(), padded(), has_relu, out);
}

LinesNet::LinesNet(const LinesWeights& weights)
    : reach_(weights.reach),
      width_(weights.line[2].num_outputs),
      context_(weights.context),
      policy_(weights.policy),
      value1_(weights.value[0]),
      value2_(weights.value[1]) {
  check_size(reach_ >= 1 && reach_ <= kMaxReach, "reach");
  const int length = 2 * reach_ + 1;
  const Dense first(weights.line[0]);
  const Dense second(weights.line[1]);
  const Dense third(weights.line[2]);
  check_size(first.num_inputs() == kStates * length, "line 1");
  check_size(second.num_inputs() == first.num_outputs(), "line 2");
  check_size(third.num_inputs() == second.num_outputs(), "line 3");
  check_size(width_ % simd::kLanes == 0 && width_ <= kMaxFeatures, "features");
  check_size(context_.num_inputs() >= 2 * width_, "context");
  check_size(policy_.num_inputs() == context_.num_outputs() && policy_.num_outputs() == width_,
             "policy");
  check_size(value1_.num_inputs() == context_.num_outputs(), "value 1");
  check_size(value2_.num_inputs() == value1_.num_outputs() && value2_.num_outputs() == 3,
             "value 2");

  uint32_t num_rows = 0;
  for (int left = 0; left <= reach_; ++left) {
    for (int right = 0; right <= reach_; ++right) {
      first_row_[left][right] = num_rows;
      num_rows += power(left + right + 1);
    }
  }
  const auto width = static_cast<size_t>(width_);
  table_.resize(num_rows * width);
  std::vector<float> inputs(static_cast<size_t>(kStates * length));
  std::vector<float> hidden1(static_cast<size_t>(first.padded()));
  std::vector<float> hidden2(static_cast<size_t>(second.padded()));
  float* row = table_.data();
  for (int left = 0; left <= reach_; ++left) {
    for (int right = 0; right <= reach_; ++right) {
      const int size = left + right + 1;
      for (uint32_t pattern = 0; pattern < power(size); ++pattern, row += width) {
        std::fill(inputs.begin(), inputs.end(), 0.0f);
        uint32_t rest = pattern;
        for (int k = length - 1; k >= 0; --k) {
          float* cell = inputs.data() + kStates * k;
          if (k < reach_ - left || k > reach_ + right) {
            cell[2] = 1.0f;
            continue;
          }
          const uint32_t state = rest % kStates;
          rest /= kStates;
          if (state > 0) cell[state - 1] = 1.0f;
        }
        first.run(inputs.data(), true, hidden1.data());
        second.run(hidden1.data(), true, hidden2.data());
        third.run(hidden2.data(), false, row);
      }
    }
  }
}

void LinesNet::evaluate(const LinesBoard& board, const float* planes, int num_rows, float* policy,
                        float* value) const {
  const int num_others = board.num_planes - 3;
  check_size(
      board.height >= 1 && board.height <= kMaxSide && board.width >= 1 && board.width <= kMaxSide,
      "board");
  check_size(num_others >= 0 && context_.num_inputs() == 2 * width_ + num_others, "planes");

  const int num_cells = board.height * board.width;
  const auto cells_size = static_cast<size_t>(num_cells);
  const auto width = static_cast<size_t>(width_);
  std::array<uint32_t, kMaxSide + 2> powers;
  for (int i = 0; i < kMaxSide + 2; ++i) powers[static_cast<size_t>(i)] = power(i);
  std::vector<uint32_t> rows(kDirections * cells_size);
  std::vector<float> cells(cells_size * width);
  std::vector<float> pooled(static_cast<size_t>(context_.num_inputs()));
  std::vector<float> context(static_cast<size_t>(context_.padded()));
  std::vector<float> weights(static_cast<size_t>(policy_.padded()));
  std::vector<float> hidden(static_cast<size_t>(value1_.padded()));
  std::vector<float> outcome(static_cast<size_t>(value2_.padded()) + simd::kOverread);
  std::array<uint32_t, kMaxSide + 1> code;  // of a line's first cells
  const simd::Kernels& kernels = simd::kernels();

  for (int n = 0; n < num_rows; ++n) {
    const float* own = planes + cells_size;
    const float* other = planes + 2 * cells_size;
    for (int direction = 0; direction < kDirections; ++direction) {
      const int down = kSteps[direction][0];
      const int across = kSteps[direction][1];
      for (int start = 0; start < num_cells; ++start) {
        const int y = start / board.width;
        const int x = start % board.width;
        // A line starts at a cell without predecessor.
        const int before = x - across;
        if (y - down >= 0 && before >= 0 && before < board.width) continue;
        const int column_end = across > 0 ? board.width - x : across < 0 ? x + 1 : kMaxSide;
        const int length = std::min(down > 0 ? board.height - y : kMaxSide, column_end);
        const int step = down * board.width + across;
        code[0] = 0;
        for (int i = 0; i < length; ++i) {
          const auto cell = static_cast<size_t>(start + i * step);
          const uint32_t state = own[cell] > 0.5f ? 1 : other[cell] > 0.5f ? 2 : 0;
          code[static_cast<size_t>(i) + 1] = code[static_cast<size_t>(i)] * kStates + state;
        }
        for (int i = 0; i < length; ++i) {
          const int left = std::min(i, reach_);
          const int right = std::min(length - 1 - i, reach_);
          const uint32_t before_it = code[static_cast<size_t>(i - left)];
          const uint32_t pattern = code[static_cast<size_t>(i + right) + 1] -
                                   before_it * powers[static_cast<size_t>(left + right) + 1];
          rows[static_cast<size_t>(kDirections * (start + i * step) + direction)] =
              first_row_[left][right] + pattern;
        }
      }
    }
    kernels.sum_rows(table_.data(), width_, rows.data(), num_cells, cells.data());
    kernels.pool(cells.data(), num_cells, width_, pooled.data(), pooled.data() + width_);
    const float share = 1.0f / static_cast<float>(num_cells);
    for (size_t i = 0; i < width; ++i) pooled[i] *= share;
    for (int i = 0; i < num_others; ++i) {
      const float* plane = planes + static_cast<size_t>(3 + i) * cells_size;
      float sum = 0.0f;
      for (size_t cell = 0; cell < cells_size; ++cell) sum += plane[cell];
      pooled[2 * width + static_cast<size_t>(i)] = sum * share;
    }
    context_.run(pooled.data(), true, context.data());
    policy_.run(context.data(), false, weights.data());
    kernels.dots(cells.data(), num_cells, width_, weights.data(), policy);
    value1_.run(context.data(), true, hidden.data());
    value2_.run(hidden.data(), false, outcome.data());
    kernels.softmax(outcome.data(), 3, outcome.data());
    *value++ = outcome[0] - outcome[2];
    policy += cells_size;
    planes += static_cast<size_t>(board.num_planes) * cells_size;
  }
}

}  // namespace tengen
