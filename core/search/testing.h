#pragma once
// A game, an evaluation and checks for the native tests of searches.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/testing.h"
#include "games/game.h"
#include "search/result.h"
#include "search/settings.h"
#include "search/tree/tree.h"

namespace tengen {

// A random game tree: 1 to 4 moves per position, any order of players, any results. Covers
// situations that board games lack: two moves in a row, immediate losses, forced moves.
class RandomGame {
 public:
  struct State {
    uint64_t id;
    int depth;
  };
  static constexpr int kDepth = 6;

  static constexpr std::array<uint16_t, 4> kImages = {0, 1, 2, 3};

  explicit RandomGame(uint64_t seed) : seed_(seed) {}
  std::string name() const { return "random"; }
  int num_actions() const { return 4; }
  int num_planes() const { return 1; }
  int height() const { return 1; }
  int width() const { return 1; }
  int max_plies() const { return kDepth; }
  PolicyLayout policy_layout() const { return PolicyLayout::kFlat; }
  int num_symmetries() const { return 1; }
  State initial_state() const { return {mix64(seed_), 0}; }
  int to_play(const State& s) const { return static_cast<int>(s.id >> 7 & 1); }
  int ply(const State& s) const { return s.depth; }
  Outcome outcome(const State& s) const {
    const bool over = s.depth == kDepth || (s.depth > 1 && (s.id >> 20) % 8 == 0);
    return over ? static_cast<Outcome>(1 + (s.id >> 30) % 3) : Outcome::kOngoing;
  }
  int legal_actions(const State& s, uint16_t* actions) const {
    int count = 0;
    for (int action = 0; action < 4; ++action) {
      if (is_legal(s, action)) actions[count++] = static_cast<uint16_t>(action);
    }
    return count;
  }
  bool is_legal(const State& s, int action) const {
    return outcome(s) == Outcome::kOngoing && ((s.id >> 40 & 15) | 2) >> action & 1;
  }
  void apply(State& s, int action) const {
    s.id = mix64(s.id + 1 + static_cast<uint64_t>(action));
    ++s.depth;
  }
  Key128 key(const State& s) const { return {s.id, mix64(s.id)}; }
  void encode(const State&, int, float* planes) const { planes[0] = 1.0f; }
  const uint16_t* images(const State&, int) const { return kImages.data(); }
  std::string to_string(const State&) const { return ""; }

  // Returns the exact value of a position for player 0.
  float solve(const State& s) const {
    if (outcome(s) != Outcome::kOngoing) return value_to_first(outcome(s));
    const float sign = to_play(s) == 0 ? 1.0f : -1.0f;
    float best = -2.0f;
    for (int action = 0; action < 4; ++action) {
      if (!is_legal(s, action)) continue;
      State next = s;
      apply(next, action);
      best = std::max(best, sign * solve(next));
    }
    return sign * best;
  }

 private:
  uint64_t seed_;
};
static_assert(Game<RandomGame>);

// A RandomGame with a score that has the sign of the result.
class ScoredGame : public RandomGame {
 public:
  using RandomGame::RandomGame;
  int max_score() const { return 8; }
  int num_points(const State&) const { return 9; }
  bool is_settled(const State&) const { return false; }
  float score(const State& s) const {
    return value_to_first(outcome(s)) * static_cast<float>(1 + (s.id >> 50) % 8);
  }
  void owners(const State&, int8_t* cells) const { cells[0] = 0; }
};
static_assert(HasScore<ScoredGame>);

// Computes a fixed evaluation of `state`. `order`, if not null, maps actions to logit indices.
template <Game G>
void evaluate(const G& game, const typename G::State& state, const uint16_t* order,
              std::vector<float>& logits, float* value) {
  const Key128 key = game.key(state);
  logits.resize(static_cast<size_t>(game.num_actions()));
  for (size_t action = 0; action < logits.size(); ++action) {
    const float logit = static_cast<float>(mix64(key.lo + action) >> 40) * 0x1.0p-22f;
    logits[order == nullptr ? action : order[action]] = logit;
  }
  *value = static_cast<float>(mix64(key.hi) >> 40) * 0x1.0p-23f - 1.0f;
}

// Computes the mean and standard deviation of a score that is consistent with `value`.
inline void hashed_score(const RandomGame::State& state, float value, float* score) {
  score[0] = 4.0f * value + static_cast<float>(mix64(state.id) >> 40) * 0x1.0p-22f - 2.0f;
  score[1] = static_cast<float>(mix64(state.id + 1) >> 40) * 0x1.0p-22f;
}

// Returns the score in the form that Search::accept() expects; null in games without a score.
template <Game G>
const float* evaluate_score(const typename G::State& state, float value, float* buffer) {
  if constexpr (HasScore<G>) {
    hashed_score(state, value, buffer);
    return buffer;
  }
  return nullptr;
}

inline SearchRequest request_of(int num_simulations, bool explore = false, uint64_t game = 0) {
  SearchRequest request;
  request.num_simulations = num_simulations;
  request.explore = explore;
  request.game = game;
  return request;
}

inline float to_player(float value_to_first, int player) {
  return player == 0 ? value_to_first : -value_to_first;
}

// Recomputes the value sum of a node without proofs from the evaluations in its subtree.
template <class Memory>
double evaluated_sum(const BasicTree<Memory>& tree, Arena::Offset offset) {
  const auto& node = tree.node(offset);
  const Edges edges = tree.edges(node);
  double total = node.value_to_play;
  for (int i = 0; i < node.num_edges; ++i) {
    total += value_for(node, tree.node(edges.child[i]), evaluated_sum(tree, edges.child[i]));
  }
  return total;
}

// Returns a request that excludes all but the first two actions at the root.
inline SearchRequest request_of_two_actions(int num_simulations, int num_actions) {
  SearchRequest request = request_of(num_simulations);
  for (int action = 2; action < num_actions; ++action) request.left_out.push_back({0, action, 1});
  return request;
}

// Adds `count` visits with `value` to each of the root's moves.
template <class Memory>
void add_old_visits(const BasicTree<Memory>& searched, uint32_t count, double value) {
  auto& tree = const_cast<BasicTree<Memory>&>(searched);
  auto& root = tree.node(tree.root());
  const Edges edges = tree.edges(root);
  for (int i = 0; i < root.num_edges; ++i) {
    auto& child = tree.node(edges.child[i]);
    const double sum = count * value;
    child.visits += count;
    child.value_sum += value_for(root, child, sum);
    edges.visits[i] += static_cast<float>(count);
    edges.value_sum[i] += static_cast<float>(sum);
    if constexpr (BasicTree<Memory>::kShared) edges.exact_sum[i] += sum;
    root.visits += count;
    root.value_sum += sum;
  }
}

// Checks after add_old_visits() and a search without proofs that no visit is lost and that the sums
// of the root's edges are as precise as a float allows.
template <class Memory>
void check_old_visits(const BasicTree<Memory>& tree, uint32_t count, double value) {
  const auto& root = tree.node(tree.root());
  const Edges edges = tree.edges(root);
  double total = root.value_to_play;
  for (int i = 0; i < root.num_edges; ++i) {
    const auto& child = tree.node(edges.child[i]);
    const double sum = count * value + value_for(root, child, evaluated_sum(tree, edges.child[i]));
    TENGEN_CHECK(std::abs(value_for(root, child, child.value_sum) - sum) < 1e-6);
    TENGEN_CHECK(std::abs(edges.value_sum[i] - sum) <= 0x1p-24 * std::abs(sum));
    total += sum;
  }
  TENGEN_CHECK(std::abs(root.value_sum - total) < 1e-6 && root.visits > 2 * count + 2000);
}

// Checks that proofs in the tree are exact, that counts add up, and that values change sign when
// the player changes. `tolerance` allows for sums that nodes and edges add in different orders.
template <class Memory>
void check_node(const RandomGame& game, const BasicTree<Memory>& tree, Arena::Offset offset,
                const RandomGame::State& state, float tolerance = 0.0f) {
  const auto& node = tree.node(offset);
  TENGEN_CHECK(node.to_play == game.to_play(state));
  TENGEN_CHECK(std::abs(node.value_sum) <= static_cast<float>(node.visits) * 1.00001f);
  if (node.proof != Proof::kUnknown) {
    TENGEN_CHECK(proof_value(node.proof) == to_player(game.solve(state), node.to_play));
  }
  const Edges edges = tree.edges(node);
  float total = 0.0f;
  for (int i = 0; i < node.num_edges; ++i) {
    RandomGame::State next = state;
    game.apply(next, tree.actions(node)[edges.legal_index[i]]);
    total += edges.visits[i];
    const auto& child = tree.node(edges.child[i]);
    TENGEN_CHECK(edges.visits[i] == static_cast<float>(child.visits));
    const float sign = child.to_play == node.to_play ? 1.0f : -1.0f;
    const float value = sign * proof_value(child.proof);
    if (child.proof == Proof::kUnknown) {
      const float sum = sign * static_cast<float>(child.value_sum);
      TENGEN_CHECK(std::abs(edges.value_sum[i] - sum) <= tolerance);
    } else {
      TENGEN_CHECK(edges.value_sum[i] == (value < 0.0f ? -std::numeric_limits<float>::infinity()
                                                       : value * edges.visits[i]));
    }
    check_node(game, tree, edges.child[i], next, tolerance);
  }
  TENGEN_CHECK(static_cast<float>(node.visits) >= total);
}

inline void check_result(const SearchResult& result, int num_simulations, int num_legal) {
  TENGEN_CHECK(static_cast<int>(result.actions.size()) == num_legal);
  uint32_t visits = 0;
  float policy = 0.0f;
  bool has_best = false;
  for (const ActionResult& a : result.actions) {
    visits += a.visits;
    policy += a.policy;
    TENGEN_CHECK(a.policy >= 0.0f && std::abs(a.value_to_play) <= 1.0f);
    has_best |= a.action == result.best_action && (a.policy > 0.0f || num_simulations == 0);
    if (result.proof != Proof::kLoss && num_legal > 1 && a.proof == Proof::kLoss) {
      TENGEN_CHECK(a.policy == 0.0f && a.action != result.best_action);
    }
  }
  TENGEN_CHECK(has_best);
  TENGEN_CHECK(std::abs(policy - 1.0f) < 1e-5f);
  TENGEN_CHECK(visits == result.num_simulations);
  TENGEN_CHECK(static_cast<int>(visits) <= num_simulations);
  if (result.proof == Proof::kUnknown) {
    TENGEN_CHECK(static_cast<int>(visits) == num_simulations);
  }
}

}  // namespace tengen
