#include "actors/choice_draws.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace tengen {

ChoiceDraws::ChoiceDraws(std::vector<uint32_t> num_choices) : num_choices_(std::move(num_choices)) {
  for (const uint32_t count : num_choices_) {
    if (count == 0) throw Error("num_choices (0) must be at least 1; correct the environment");
    num_logits_ += count;
  }
}

void ChoiceDraws::draw(std::span<const float> logits, std::span<const double> uniforms,
                       size_t stride, std::span<int64_t> choices, std::span<float> log_prob) const {
  std::vector<double> cumulative(num_choices_.empty() ? 0
                                                      : *std::ranges::max_element(num_choices_));
  const float* next = logits.data();
  for (size_t row = 0; row < log_prob.size(); ++row) {
    double row_log_prob = 0.0;
    for (size_t part = 0; part < num_parts(); ++part) {
      const uint32_t count = num_choices_[part];
      const double best = *std::max_element(next, next + count);
      double total = 0.0;
      for (uint32_t i = 0; i < count; ++i) cumulative[i] = total += std::exp(next[i] - best);
      const double bound = uniforms[row * stride + part] * total;
      uint32_t chosen = 0;
      while (chosen + 1 < count && cumulative[chosen] <= bound) ++chosen;
      choices[row * num_parts() + part] = chosen;
      row_log_prob += next[chosen] - best - std::log(total);
      next += count;
    }
    log_prob[row] = static_cast<float>(row_log_prob);
  }
}

size_t ChoiceDraws::first_out_of_range(std::span<const int64_t> choices) const {
  for (size_t i = 0; i < choices.size(); ++i) {
    const uint32_t count = num_choices_[i % num_parts()];
    if (choices[i] < 0 || choices[i] >= count) return i / num_parts();
  }
  return choices.size() / num_parts();
}

}  // namespace tengen
