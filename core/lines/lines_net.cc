#include "lines/lines_net.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "lines/lines_training.h"
#include "simd/kernels.h"

namespace tengen {
namespace {

int padded(int size) { return (size + simd::kLanes - 1) / simd::kLanes * simd::kLanes; }

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
    : patterns_(weights.reach),
      width_(weights.line[2].num_outputs),
      context_(weights.context),
      policy_(weights.policy),
      value1_(weights.value[0]),
      value2_(weights.value[1]) {
  const Dense first(weights.line[0]);
  const Dense second(weights.line[1]);
  const Dense third(weights.line[2]);
  check_size(first.num_inputs() == patterns_.num_inputs(), "line 1");
  check_size(second.num_inputs() == first.num_outputs(), "line 2");
  check_size(third.num_inputs() == second.num_outputs(), "line 3");
  check_size(width_ % simd::kLanes == 0 && width_ <= kMaxFeatures, "features");
  check_size(context_.num_inputs() >= 2 * width_, "context");
  check_size(policy_.num_inputs() == context_.num_outputs() && policy_.num_outputs() == width_,
             "policy");
  check_size(value1_.num_inputs() == context_.num_outputs(), "value 1");
  check_size(value2_.num_inputs() == value1_.num_outputs() && value2_.num_outputs() == 3,
             "value 2");

  const auto width = static_cast<size_t>(width_);
  table_.resize(patterns_.size() * width);
  std::vector<float> hidden1(static_cast<size_t>(first.padded()));
  std::vector<float> hidden2(static_cast<size_t>(second.padded()));
  const std::vector<float> all_inputs = patterns_.inputs();
  const float* inputs = all_inputs.data();
  for (size_t row = 0; row < table_.size(); row += width, inputs += first.num_inputs()) {
    first.run(inputs, true, hidden1.data());
    second.run(hidden1.data(), true, hidden2.data());
    third.run(hidden2.data(), false, table_.data() + row);
  }
}

void LinesNet::evaluate(const LinesBoard& board, const float* planes, int num_rows, float* policy,
                        float* value) const {
  const int num_others = board.num_planes - 3;
  check_size(num_others >= 0 && context_.num_inputs() == 2 * width_ + num_others, "planes");

  const int num_cells = board.height * board.width;
  const auto cells_size = static_cast<size_t>(num_cells);
  const auto width = static_cast<size_t>(width_);
  std::vector<uint32_t> rows(LinePatterns::kDirections * cells_size + LinePatterns::kPadding);
  std::vector<float> cells(cells_size * width);
  std::vector<float> pooled(static_cast<size_t>(context_.num_inputs()));
  std::vector<float> context(static_cast<size_t>(context_.padded()));
  std::vector<float> weights(static_cast<size_t>(policy_.padded()));
  std::vector<float> hidden(static_cast<size_t>(value1_.padded()));
  std::vector<float> outcome(static_cast<size_t>(value2_.padded()) + simd::kOverread);
  const simd::Kernels& kernels = simd::kernels();

  for (int n = 0; n < num_rows; ++n) {
    patterns_.find(board, planes, rows.data());
    pool_lines({1, num_cells, width_}, table_.data(), rows.data(), cells.data(), pooled.data(),
               pooled.data() + width_);
    for (int i = 0; i < num_others; ++i) {
      const float* plane = planes + static_cast<size_t>(3 + i) * cells_size;
      float sum = 0.0f;
      for (size_t cell = 0; cell < cells_size; ++cell) sum += plane[cell];
      pooled[2 * width + static_cast<size_t>(i)] = sum / static_cast<float>(num_cells);
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
