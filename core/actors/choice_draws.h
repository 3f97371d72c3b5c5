#pragma once
// Samples actions from the logits of a policy. An actor does this for about sixteen rows between
// inference and an environment step, with cold caches, so the code must be small.

#include <cstdint>
#include <span>
#include <vector>

namespace tengen {

// One or several independent categorical distributions (parts). Immutable and thread-safe.
class ChoiceDraws {
 public:
  // `num_choices` has the number of choices per part. Throws Error if a part has none.
  explicit ChoiceDraws(std::vector<uint32_t> num_choices);

  size_t num_parts() const { return num_choices_.size(); }
  size_t num_logits() const { return num_logits_; }

  // Samples the choices of every row, in double precision. `uniforms` are random numbers in [0, 1);
  // row i uses one per part, from index i * stride on. Never samples a choice whose probability
  // underflows. `log_prob` receives the log-probability of each row's choices, in nats.
  // Precondition: the logits are finite.
  void draw(std::span<const float> logits, std::span<const double> uniforms, size_t stride,
            std::span<int64_t> choices, std::span<float> log_prob) const;

  // Returns the index of the first row with an out-of-range choice, or the number of rows.
  size_t first_out_of_range(std::span<const int64_t> choices) const;

 private:
  std::vector<uint32_t> num_choices_;
  size_t num_logits_ = 0;
};

}  // namespace tengen
