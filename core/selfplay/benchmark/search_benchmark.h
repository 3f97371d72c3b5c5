#pragma once
// Benchmarks the search on one thread without a network: plays games with searches that start with
// an empty tree and use the hash evaluator.

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "games/game.h"
#include "inference/evaluators.h"
#include "search/serial/search.h"

namespace tengen {

struct SearchBenchmark {
  uint64_t num_searches = 0;
  uint64_t num_simulations = 0;
};

// Searches `num_searches` successive positions of games whose moves are sampled from the root
// policy. With `encode`, also encodes every leaf, as for a network.
template <Game G>
SearchBenchmark benchmark_search(const G& game, const SearchSettings& settings, int num_simulations,
                                 uint64_t num_searches, bool encode, uint64_t seed) {
  const auto num_actions = static_cast<size_t>(game.num_actions());
  std::vector<float> logits(num_actions);
  std::vector<float> planes(static_cast<size_t>(game.num_planes() * game.height() * game.width()));
  float score[2];
  Search<G> search(game, settings);
  SearchResult result;
  SearchBenchmark done;
  typename G::State state = game.initial_state();
  for (uint64_t i = 0; i < num_searches; ++i) {
    SearchRequest request;
    request.num_simulations = num_simulations;
    request.explore = true;
    request.seed = seed;
    request.game = i;
    search.reset();
    search.begin(state, request);
    while (search.advance()) {
      if (search.at_unknown_move()) continue;
      if (encode) game.encode(search.leaf(), 0, planes.data());
      const Key128 key = game.key(search.leaf());
      float value;
      hash_evaluate(key, game.num_actions(), logits.data(), &value);
      if (settings.score_weight > 0.0f) hash_score(key, value, score);
      search.accept(logits.data(), nullptr, value, score);
    }
    search.finish(result);
    done.num_searches += 1;
    done.num_simulations += result.num_simulations;
    Rng rng(seed, 0, i, 0, Purpose::kMoveChoice);
    double left = rng.uniform();
    int action = result.best_action;
    for (const ActionResult& a : result.actions) {
      if ((left -= a.policy) < 0.0) {
        action = a.action;
        break;
      }
    }
    game.apply(state, action);
    if (game.outcome(state) != Outcome::kOngoing) state = game.initial_state();
  }
  return done;
}

}  // namespace tengen
