#pragma once
// From an evaluation to the priors of a node.

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "games/game.h"
#include "simd/kernels.h"

namespace tengen {

// The legal actions of one position at a time and their priors. Not thread-safe.
class Priors {
 public:
  explicit Priors(int num_actions)
      : legal_(static_cast<size_t>(num_actions)),
        prior_(static_cast<size_t>(num_actions) + simd::kOverread) {}

  // Takes an evaluation as Search::accept() does; returns the number of legal actions. Throws
  // Error where a number is not finite.
  template <Game G>
  int compute(const G& game, const typename G::State& state, const float* logits,
              const uint16_t* transform, float value_to_play) {
    const int n = game.legal_actions(state, legal_.data());
    for (int i = 0; i < n; ++i) {
      const uint16_t action = legal_[static_cast<size_t>(i)];
      prior_[static_cast<size_t>(i)] = logits[transform == nullptr ? action : transform[action]];
    }
    simd::kernels().softmax(prior_.data(), n, prior_.data());
    if (!std::isfinite(value_to_play) || !std::isfinite(prior_[0])) {
      throw Error("evaluation (not finite) must be numbers; the model is broken");
    }
    return n;
  }

  const uint16_t* legal() const { return legal_.data(); }
  float* prior() { return prior_.data(); }  // in the order of legal()

 private:
  std::vector<uint16_t> legal_;
  std::vector<float> prior_;
};

}  // namespace tengen
