#pragma once
// Computes the priors of a node from an evaluation.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "games/decisive.h"
#include "games/game.h"
#include "search/proof.h"
#include "search/settings.h"
#include "simd/kernels.h"

namespace tengen {

// Holds the legal actions of one position and their priors. Not thread-safe.
class Priors {
 public:
  explicit Priors(int num_actions)
      : legal_(static_cast<size_t>(num_actions)),
        prior_(static_cast<size_t>(num_actions) + simd::kOverread) {}

  // Computes the priors of the legal actions, or of those that the rules leave to consider
  // (games/decisive.h). The parameters are as in Search::accept(). Returns the number of actions.
  // Throws Error if the evaluation is not finite.
  template <Game G>
  int compute(const G& game, const typename G::State& state, const float* logits,
              const uint16_t* transform, float value_to_play, bool is_decisive) {
    const int n = is_decisive ? considered_actions(game, state, legal_.data())
                              : game.legal_actions(state, legal_.data());
    for (int i = 0; i < n; ++i) {
      const uint16_t action = legal_[static_cast<size_t>(i)];
      prior_[static_cast<size_t>(i)] = logits[transform == nullptr ? action : transform[action]];
    }
    simd::kernels().softmax(prior_.data(), n, prior_.data());
    if (!std::isfinite(value_to_play) || !std::isfinite(prior_[0])) {
      throw Error("evaluation (not finite) must be finite; use another model");
    }
    return n;
  }

  // Returns the proof of a position in which one or two moves end the game; otherwise kUnknown.
  // Searches that keep scores get none, because they need the score of the proving line.
  template <Game G>
  Proof prove(const G& game, const typename G::State& state) {
    if constexpr (HasDecisive<G> && !HasScore<G>) {
      const Decisive found = game.decisive_actions(state, legal_.data());
      return found.is_won ? Proof::kWin : found.is_lost ? Proof::kLoss : Proof::kUnknown;
    }
    return Proof::kUnknown;
  }

  // Removes the actions that `left_out` excludes for `player` at `depth` moves below the root,
  // unless no action would remain. `num_legal` is the result of compute(). Normalises the priors
  // again; returns the number of remaining actions.
  int leave_out(const std::vector<LeftOut>& left_out, int player, int depth, int num_legal) {
    const auto stays = [&](uint16_t action) {
      return std::none_of(left_out.begin(), left_out.end(), [&](const LeftOut& other) {
        return other.action == action && other.player == player && depth < other.depth;
      });
    };
    float total = 0.0f;
    int num_left = 0;
    for (size_t i = 0; i < static_cast<size_t>(num_legal); ++i) {
      if (!stays(legal_[i])) continue;
      ++num_left;
      total += prior_[i];
    }
    if (num_left == 0 || num_left == num_legal) return num_legal;
    size_t next = 0;
    for (size_t i = 0; i < static_cast<size_t>(num_legal); ++i) {
      if (!stays(legal_[i])) continue;
      legal_[next] = legal_[i];
      prior_[next++] = total > 0.0f ? prior_[i] / total : 1.0f / static_cast<float>(num_left);
    }
    return num_left;
  }

  const uint16_t* legal() const { return legal_.data(); }
  float* prior() { return prior_.data(); }  // priors in the order of legal()

 private:
  std::vector<uint16_t> legal_;
  std::vector<float> prior_;
};

}  // namespace tengen
