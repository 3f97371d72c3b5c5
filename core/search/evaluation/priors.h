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

// Holds the actions of one position and their priors. Not thread-safe.
class Priors {
 public:
  explicit Priors(int num_actions)
      : legal_(static_cast<size_t>(num_actions)),
        prior_(static_cast<size_t>(num_actions) + simd::kOverread) {}

  // Lists the actions of a position: those that the rules leave to consider (games/decisive.h), or
  // all legal ones if `all` or if the game has no such rules.
  template <Game G>
  Decisive list(const G& game, const typename G::State& state, bool all) {
    if constexpr (HasDecisive<G>) {
      if (!all) return game.decisive_actions(state, legal_.data());
    }
    return {.count = game.legal_actions(state, legal_.data())};
  }

  // The proof of the listed position if one or two moves end the game; otherwise kUnknown. Unknown
  // in games with a score, because a proof then needs the score of the proving line.
  template <Game G>
  static Proof proof_of(const Decisive& listed) {
    if (HasScore<G>) return Proof::kUnknown;
    return listed.is_won ? Proof::kWin : listed.is_lost ? Proof::kLoss : Proof::kUnknown;
  }

  // Computes the priors of the `count` listed actions. The parameters are as in Search::accept().
  // Throws Error if the evaluation is not finite.
  void compute(int count, const float* logits, const uint16_t* transform, float value_to_play) {
    for (int i = 0; i < count; ++i) {
      const uint16_t action = legal_[static_cast<size_t>(i)];
      prior_[static_cast<size_t>(i)] = logits[transform == nullptr ? action : transform[action]];
    }
    simd::kernels().softmax(prior_.data(), count, prior_.data());
    if (!std::isfinite(value_to_play) || !std::isfinite(prior_[0])) {
      throw Error("evaluation (not finite) must be finite; use another model");
    }
  }

  // Returns the probability of the `count` listed actions among all legal actions of the position.
  template <Game G>
  float considered_prior(const G& game, const typename G::State& state, int count,
                         const float* logits, const uint16_t* transform) const {
    if constexpr (!HasDecisive<G>) return 1.0f;
    std::vector<uint16_t> all(static_cast<size_t>(game.num_actions()));
    const int num_legal = game.legal_actions(state, all.data());
    if (num_legal == count) return 1.0f;
    const auto logit = [&](uint16_t action) {
      return static_cast<double>(logits[transform == nullptr ? action : transform[action]]);
    };
    double top = logit(all[0]);
    for (int i = 1; i < num_legal; ++i) top = std::max(top, logit(all[static_cast<size_t>(i)]));
    double total = 0.0;
    double listed = 0.0;
    for (int i = 0; i < num_legal; ++i) total += std::exp(logit(all[static_cast<size_t>(i)]) - top);
    for (int i = 0; i < count; ++i) listed += std::exp(logit(legal_[static_cast<size_t>(i)]) - top);
    return static_cast<float>(listed / total);
  }

  // Removes the actions that `left_out` excludes for `player` at `depth` moves below the root,
  // unless no action would remain. `num_legal` is the number of listed actions. Normalises the
  // priors again; returns the number of remaining actions.
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
