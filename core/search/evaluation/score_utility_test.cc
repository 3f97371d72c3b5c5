#include "search/evaluation/score_utility.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/testing.h"
#include "search/serial/search.h"
#include "search/testing.h"

using namespace tengen;

namespace {

SearchSettings scored_settings(RootPolicy policy = RootPolicy::kPuct) {
  SearchSettings settings;
  settings.policy = policy;
  settings.score_weight = 0.4f;
  return settings;
}

void run(Search<ScoredGame>& search, const ScoredGame& game, const ScoredGame::State& state,
         const SearchRequest& request) {
  std::vector<float> logits;
  search.begin(state, request);
  while (search.advance()) {
    float value;
    float score[2];
    evaluate(game, search.leaf(), nullptr, logits, &value);
    hashed_score(search.leaf(), value, score);
    search.accept(logits.data(), nullptr, value, score);
  }
}

// In a fresh tree, values are within range; in a reused tree, a later proof changes the value of
// earlier visits. A proven node has exactly the score of the best proving line.
void check_scores(const ScoredGame& game, const Tree& tree, Arena::Offset offset,
                  const ScoredGame::State& state, float weight, bool is_fresh) {
  const Node& node = tree.node(offset);
  const NodeScore& score = tree.score_of(node);
  const auto visits = static_cast<float>(node.visits);
  TENGEN_CHECK(std::abs(score.win_loss_sum) <= visits * 1.00001f);
  if (is_fresh) {
    TENGEN_CHECK(std::abs(node.value_sum - score.win_loss_sum) <= visits * weight * 1.00001f);
  }
  if (node.num_legal == 0) {
    TENGEN_CHECK(score.score_to_play == final_score(game, state));
    return;
  }
  const Edges edges = tree.edges(node);
  float best = -1e9f;
  for (int i = 0; i < node.num_edges; ++i) {
    ScoredGame::State next = state;
    game.apply(next, tree.actions(node)[edges.legal_index[i]]);
    const Node& child = tree.node(edges.child[i]);
    const float sign = child.to_play == node.to_play ? 1.0f : -1.0f;
    if (node.proof != Proof::kUnknown && proof_for(node, child) == node.proof) {
      best = std::max(best, sign * tree.score_of(child).score_to_play);
    }
    check_scores(game, tree, edges.child[i], next, weight, is_fresh);
  }
  if (node.proof != Proof::kUnknown) TENGEN_CHECK(score.score_to_play == best);
}

void check_trees(RootPolicy policy) {
  Tree scratch;
  int num_proven = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const ScoredGame game(seed);
    auto state = game.initial_state();
    Search<ScoredGame> search(game, scored_settings(policy));
    while (game.outcome(state) == Outcome::kOngoing) {
      run(search, game, state, request_of(40, seed % 2 == 0, seed));
      check_scores(game, search.tree(), search.tree().root(), state, 0.4f, game.ply(state) == 0);
      SearchResult result;
      search.finish(result);
      TENGEN_CHECK(result.best_action >= 0);
      TENGEN_CHECK(result.has_scores && std::abs(result.root_value_to_play) <= 1.0f);
      num_proven += result.proof != Proof::kUnknown;
      search.play(result.best_action, scratch);
      game.apply(state, result.best_action);
    }
  }
  TENGEN_CHECK(num_proven > 100);
}

void check_misuse() {
  const RandomGame without(1);
  TENGEN_CHECK(throws([&] { Search<RandomGame>(without, scored_settings()); }));
  const ScoredGame game(1);
  Search<ScoredGame> search(game, scored_settings());
  const std::vector<float> logits(4, 0.0f);
  const float broken[2] = {std::nanf(""), 1.0f};
  search.begin(game.initial_state(), request_of(10));
  TENGEN_CHECK(search.advance());
  TENGEN_CHECK(throws([&] { search.accept(logits.data(), nullptr, 0.0f); }));
  TENGEN_CHECK(throws([&] { search.accept(logits.data(), nullptr, 0.0f, broken); }));
}

}  // namespace

int main() {
  for (const RootPolicy policy : {RootPolicy::kPuct, RootPolicy::kGumbel}) check_trees(policy);
  check_misuse();
  return 0;
}
