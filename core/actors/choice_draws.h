#pragma once
// Samples choices from logits. An actor does this for some sixteen rows at a time between an answer
// and a step, with cold caches, so the amount of code matters.

#include <cstdint>
#include <span>
#include <vector>

namespace tengen {

// One choice or several independent ones (parts). Immutable after construction; any thread.
class ChoiceDraws {
 public:
  // Throws Error if a part has no choices.
  explicit ChoiceDraws(std::vector<uint32_t> num_choices);

  size_t num_parts() const { return num_choices_.size(); }
  size_t num_logits() const { return num_logits_; }

  // Draws the choices of every row with uniform numbers in [0, 1), in double precision. Row i uses
  // the numbers from i * stride on, one per part. A choice whose probability underflows is not
  // drawn. `log_prob` receives each row's log-probability, in nats. Precondition: the logits are
  // finite.
  void draw(std::span<const float> logits, std::span<const double> uniforms, size_t stride,
            std::span<int64_t> choices, std::span<float> log_prob) const;

  // Returns the first row with a choice that is out of range for its part, or the number of rows.
  size_t first_out_of_range(std::span<const int64_t> choices) const;

 private:
  std::vector<uint32_t> num_choices_;
  size_t num_logits_ = 0;
};

}  // namespace tengen
