#include <cmath>

#include "base/testing.h"
#include "search/evaluation/score_utility.h"
#include "search/shared/shared_testing.h"

using namespace tengen;

namespace {

SearchSettings scored_settings() {
  SearchSettings settings;
  settings.score_weight = 0.4f;
  return settings;
}

// Scores of proven nodes are exact; scores of other nodes are means of their evaluations.
void check_scores(const ScoredGame& game, const SharedTree& tree, Arena::Offset offset,
                  const ScoredGame::State& state) {
  const SharedNode& node = tree.node(offset);
  const NodeScore& score = tree.score_of(node);
  const auto visits = static_cast<float>(node.visits);
  TENGEN_CHECK(std::abs(node.value_sum - score.win_loss_sum) <= visits * 0.40001f);
  TENGEN_CHECK(std::abs(score.score_sum) <= visits * 8.001f);
  if (node.num_legal == 0) TENGEN_CHECK(score.score_to_play == final_score(game, state));
  if (node.proof != Proof::kUnknown) {
    TENGEN_CHECK(score.score_to_play * proof_value(node.proof) >= 0.0f);
    TENGEN_CHECK((score.score_to_play == 0.0f) == (node.proof == Proof::kDraw));
  }
  const Edges edges = tree.edges(node);
  for (int i = 0; i < node.num_edges; ++i) {
    ScoredGame::State next = state;
    game.apply(next, tree.actions(node)[edges.legal_index[i]]);
    check_scores(game, tree, edges.child[i], next);
  }
}

void check_threads() {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const ScoredGame game(seed);
    const auto state = game.initial_state();
    SharedSearch<ScoredGame> search(game, scored_settings(), 4, 3);
    for (const int num_simulations : {0, 1, 5, 100, 1000}) {
      run(search, game, state, 4, request_of(num_simulations));
      check_scores(game, search.tree(), search.tree().root(), state);
      SearchResult result;
      search.finish(result);
      TENGEN_CHECK(result.has_scores && std::abs(result.root_value_to_play) <= 1.0f);
    }
  }
}

}  // namespace

int main() {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const ScoredGame game(seed);
    SearchSettings settings = scored_settings();
    settings.lcb_stdevs = seed % 2 == 0 ? 5.0f : 0.0f;
    check_oracle(game, game.initial_state(), settings, {});
  }
  check_threads();
  TENGEN_CHECK(throws([] { SharedSearch<RandomGame>(RandomGame(1), scored_settings(), 2, 1); }));
  return 0;
}
