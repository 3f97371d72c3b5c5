#pragma once
// Samples continuous actions from the means and standard deviations of a policy.

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tengen {

// K independent Gaussian numbers per row, mapped to actions by middle + half * number. With bounds,
// numbers are squashed with tanh before the map, and actions are clipped to the bounds. Immutable
// and thread-safe.
class GaussianDraws {
 public:
  using Bounds = std::pair<std::vector<double>, std::vector<double>>;  // low and high

  // Throws Error unless all vectors have the same length, at least 1.
  GaussianDraws(std::vector<double> middle, std::vector<double> half, std::optional<Bounds> bounds);

  size_t num_parts() const { return middle_.size(); }

  // Samples the actions of every row, in double precision. A row of `outputs` has K means and then
  // K logarithms of standard deviations, which are clipped to [-20, 2]. The Box-Muller transform
  // uses K of the random numbers in [0, 1) for radii and then K for angles; row i uses them from
  // index i * stride on. `log_prob` receives the log-density of each row, in nats: without bounds
  // that of the stored numbers before the map, with bounds that of the squashed numbers.
  void draw(std::span<const float> outputs, std::span<const double> uniforms, size_t stride,
            std::span<float> actions, std::span<float> log_prob) const;

 private:
  std::vector<double> middle_, half_;
  std::optional<Bounds> bounds_;
};

}  // namespace tengen
