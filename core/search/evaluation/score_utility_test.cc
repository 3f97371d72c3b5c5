#include "search/evaluation/score_utility.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/testing.h"
#include "search/serial/search.h"
#include "search/testing.h"

using namespace tengen;

namespace {

// E[2 / pi * atan(mean + stdev * Z)] by Simpson's rule on a grid that is fine enough for every
// stdev here.
double integrate(double mean, double stdev) {
  constexpr int kSteps = 40000;
  constexpr double kReach = 8.0;
  const double step = 2.0 * kReach / kSteps;
  double sum = 0.0;
  for (int i = 0; i <= kSteps; ++i) {
    const double z = -kReach + i * step;
    const double weight = i == 0 || i == kSteps ? 1.0 : i % 2 == 1 ? 4.0 : 2.0;
    sum += weight * std::exp(-0.5 * z * z) * std::atan(mean + stdev * z);
  }
  return M_2_PI * sum * step / 3.0 / std::sqrt(2.0 * M_PI);
}

void check_expectation() {
  for (const double stdev : {0.0, 0.1, 0.5, 0.69, 0.71, 1.0, 2.2, 5.0, 12.0, 20.0}) {
    for (const double mean : {-40.0, -3.0, -1.0, -0.1, 0.0, 0.3, 1.0, 7.0, 25.0}) {
      const double found = expected_saturated(mean, stdev);
      TENGEN_CHECK(std::abs(found - integrate(mean, stdev)) < 1e-3);
      TENGEN_CHECK(std::abs(found + expected_saturated(-mean, stdev)) < 1e-12);
    }
  }
  TENGEN_CHECK(std::abs(expected_saturated(1.0, 0.0) - 0.5) < 1e-12);
  // Beyond the documented range it is still a mean of values in [-1, 1], and roughly right.
  TENGEN_CHECK(std::abs(expected_saturated(50.0, 100.0) - integrate(50.0, 100.0)) < 0.02);
}

SearchSettings scored_settings(RootPolicy policy = RootPolicy::kPuct) {
  SearchSettings settings;
  settings.policy = policy;
  settings.score_weight = 0.4f;
  return settings;
}

// 81 cells, so that one width is 4.5 points.
void check_utility() {
  ScoreUtility utility(scored_settings());
  const auto is = [&](float score, int to_play, float expected) {
    return std::abs(utility(0.25f, score, 0.0f, to_play) - (0.25f + 0.4f * expected)) < 1e-6f;
  };
  utility.center(81, 0.0);
  TENGEN_CHECK(is(0.0f, 0, 0.0f) && is(4.5f, 0, 0.5f) && is(4.5f, 1, 0.5f) && is(-4.5f, 1, -0.5f));
  utility.center(81, 12.0);  // three quarters of it
  TENGEN_CHECK(is(9.0f, 0, 0.0f) && is(13.5f, 0, 0.5f) && is(-9.0f, 1, 0.0f));
  utility.center(81, -40.0);  // a quarter would be more than one width
  TENGEN_CHECK(is(-35.5f, 0, 0.0f) && is(35.5f, 1, 0.0f) && is(-40.0f, 0, -0.5f));
  // An uncertain score has a utility closer to the middle.
  TENGEN_CHECK(utility(0.0f, -31.0f, 3.0f, 0) < utility(0.0f, -31.0f, 0.0f, 0));
  TENGEN_CHECK(utility(0.0f, -31.0f, 3.0f, 0) > 0.0f);
  const ScoreUtility off{SearchSettings()};
  TENGEN_CHECK(!off.counts() && off(0.25f, 30.0f, 1.0f, 0) == 0.25f);
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

// Below a node: values are within range (in a new tree; a reused one gives earlier visits the value
// of a later proof), and a proven node's score is exactly that of the best proving line.
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

// Scores that are kept but do not count change nothing; scores that are not kept cost no memory.
void check_kept_scores() {
  const ScoredGame game(3);
  const auto state = game.initial_state();
  Search<ScoredGame> plain(game, SearchSettings());
  Search<ScoredGame> keeping(game, SearchSettings());
  SearchRequest request = request_of(60);
  run(plain, game, state, request);
  request.keep_scores = true;
  run(keeping, game, state, request);
  SearchResult a;
  SearchResult b;
  plain.finish(a);
  keeping.finish(b);
  TENGEN_CHECK(!a.has_scores && b.has_scores);
  TENGEN_CHECK(a.root_score_to_play == 0.0f && b.root_score_to_play != 0.0f);
  TENGEN_CHECK(std::abs(a.root_value_to_play - b.root_value_to_play) < 1e-6f);
  for (size_t i = 0; i < a.actions.size(); ++i) {
    TENGEN_CHECK(a.actions[i].visits == b.actions[i].visits);
    TENGEN_CHECK(std::abs(a.actions[i].value_to_play - b.actions[i].value_to_play) < 1e-5f);
  }
  static_assert(sizeof(Node) == 56 && sizeof(NodeScore) == 24);
  TENGEN_CHECK(plain.tree().used_bytes() < keeping.tree().used_bytes());
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
  check_expectation();
  check_utility();
  for (const RootPolicy policy : {RootPolicy::kPuct, RootPolicy::kGumbel}) check_trees(policy);
  check_kept_scores();
  check_misuse();
  return 0;
}
