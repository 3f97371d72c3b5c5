#pragma once
// Choices drawn from logits, as an actor does for some sixteen rows at a time between an answer
// and a step: what matters there is how much code runs, as it finds caches cold.

#include <cstdint>
#include <span>
#include <vector>

namespace tengen {

// One choice or several independent ones. Immutable after its making; any thread.
class ChoiceDraws {
 public:
  // Throws Error for a part without choices.
  explicit ChoiceDraws(std::vector<uint32_t> num_choices);

  size_t num_parts() const { return num_choices_.size(); }
  size_t num_logits() const { return num_logits_; }

  // Draws the choices of every row by uniform numbers in [0, 1): of row i those at i * stride, one
  // a part. In double precision. A choice whose probability underflows is not drawn. What the
  // choices' probabilities were is `log_prob`, in nats, a number a row.
  // Precondition: the logits are finite.
  void draw(std::span<const float> logits, std::span<const double> uniforms, size_t stride,
            std::span<int64_t> choices, std::span<float> log_prob) const;

  // The first row whose choices are not 0 to the part's last; the number of rows if all are.
  size_t first_out_of_range(std::span<const int64_t> choices) const;

 private:
  std::vector<uint32_t> num_choices_;
  size_t num_logits_ = 0;
};

}  // namespace tengen
