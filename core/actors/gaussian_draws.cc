#include "actors/gaussian_draws.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace tengen {
namespace {

// Equal to the bounds in tengen.losses.distributions.
constexpr double kMinLogStd = -20.0, kMaxLogStd = 2.0;

// Returns log(1 - tanh(u)^2), which does not lose precision where tanh(u) is nearly 1 or -1.
double log_slope(double u) {
  const double log_sum = std::max(0.0, -2.0 * u) + std::log1p(std::exp(-std::abs(2.0 * u)));
  return 2.0 * (std::numbers::ln2 - u - log_sum);
}

}  // namespace

GaussianDraws::GaussianDraws(std::vector<double> middle, std::vector<double> half,
                             std::optional<Bounds> bounds)
    : middle_(std::move(middle)), half_(std::move(half)), bounds_(std::move(bounds)) {
  const bool fits = !middle_.empty() && half_.size() == middle_.size() &&
                    (!bounds_ || (bounds_->first.size() == middle_.size() &&
                                  bounds_->second.size() == middle_.size()));
  check(fits, "middle", middle_.size(), "must have an entry per number; correct the caller");
}

void GaussianDraws::draw(std::span<const float> outputs, std::span<const double> uniforms,
                         size_t stride, std::span<float> actions, std::span<float> log_prob) const {
  const size_t count = num_parts();
  for (size_t row = 0; row < log_prob.size(); ++row) {
    const float* const means = outputs.data() + row * 2 * count;
    const double* const numbers = uniforms.data() + row * stride;
    double density = 0.0;
    for (size_t k = 0; k < count; ++k) {
      const double mean = means[k];
      const double log_std = std::clamp<double>(means[count + k], kMinLogStd, kMaxLogStd);
      // Uniform numbers are below 1, so log1p is finite.
      const double radius = std::sqrt(-2.0 * std::log1p(-numbers[k]));
      const double normal = radius * std::cos(2.0 * std::numbers::pi * numbers[count + k]);
      const double drawn = mean + std::exp(log_std) * normal;
      float& action = actions[row * count + k];
      // The density is that of the stored action, which is rounded to float.
      double stored;
      if (bounds_) {
        stored = static_cast<float>(drawn);
        const double squashed = middle_[k] + half_[k] * std::tanh(stored);
        action = static_cast<float>(std::clamp(squashed, bounds_->first[k], bounds_->second[k]));
        density -= log_slope(stored);
      } else {
        action = static_cast<float>(middle_[k] + half_[k] * drawn);
        stored = (action - middle_[k]) / half_[k];
      }
      const double distance = (stored - mean) * std::exp(-log_std);
      density -= 0.5 * distance * distance + log_std + 0.5 * std::log(2.0 * std::numbers::pi);
    }
    log_prob[row] = static_cast<float>(density);
  }
}

}  // namespace tengen
