#pragma once
// Test helpers: multi-threaded searches in a shared tree, and a serial search as their oracle.

#include <algorithm>
#include <thread>
#include <vector>

#include "base/testing.h"
#include "search/serial/search.h"
#include "search/shared/shared_search.h"
#include "search/testing.h"

namespace tengen {

// Evaluates leaves as thread `index` until the search ends. Returns the number of leaves.
template <Game G>
int work(SharedSearch<G>& search, const G& game, int index) {
  std::vector<float> logits;
  int num_evaluations = 0;
  for (;;) {
    const uint32_t seen = search.news();
    std::vector<Descent<G>*> waiting;
    for (Descent<G>& descent : search.descents(index)) {
      if (descent.advance()) waiting.push_back(&descent);
    }
    for (Descent<G>* descent : waiting) {
      float value;
      float buffer[2];
      evaluate(game, descent->leaf(), nullptr, logits, &value);
      const float* score = evaluate_score<G>(descent->leaf(), value, buffer);
      descent->accept(logits.data(), nullptr, value, score);
    }
    num_evaluations += static_cast<int>(waiting.size());
    if (!waiting.empty()) {
      search.tell(index);
    } else if (!search.wait(index, seen)) {
      return num_evaluations;
    }
  }
}

// Searches with `num_threads` threads. Returns the number of evaluations.
template <Game G>
int run(SharedSearch<G>& search, const G& game, const typename G::State& state, int num_threads,
        const SearchRequest& request) {
  search.begin(state, request);
  std::vector<int> counts(static_cast<size_t>(num_threads));
  std::vector<std::thread> threads;
  for (int i = 0; i < num_threads; ++i) {
    threads.emplace_back([&, i] { counts[static_cast<size_t>(i)] = work(search, game, i); });
  }
  int total = 0;
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i].join();
    total += counts[i];
  }
  return total;
}

template <Game G>
void run_alone(Search<G>& search, const G& game, const typename G::State& state,
               const SearchRequest& request) {
  std::vector<float> logits;
  search.begin(state, request);
  while (search.advance()) {
    float value;
    float buffer[2];
    evaluate(game, search.leaf(), nullptr, logits, &value);
    const float* score = evaluate_score<G>(search.leaf(), value, buffer);
    search.accept(logits.data(), nullptr, value, score);
  }
}

inline void check_same(const SharedTree& shared, Arena::Offset a, const Tree& alone,
                       Arena::Offset b) {
  const SharedNode& x = shared.node(a);
  const Node& y = alone.node(b);
  TENGEN_CHECK(x.visits == y.visits && x.value_sum == y.value_sum && x.proof == y.proof);
  TENGEN_CHECK(x.value_to_play == y.value_to_play && x.to_play == y.to_play);
  TENGEN_CHECK(x.num_legal == y.num_legal && x.num_edges == y.num_edges);
  TENGEN_CHECK(x.next_prior == y.next_prior && x.visited_prior == y.visited_prior);
  TENGEN_CHECK(std::equal(shared.priors(x), shared.priors(x) + x.num_legal, alone.priors(y)));
  TENGEN_CHECK(shared.keeps_scores() == alone.keeps_scores());
  if (alone.keeps_scores()) {
    const NodeScore& s = shared.score_of(x);
    const NodeScore& t = alone.score_of(y);
    TENGEN_CHECK(s.win_loss_sum == t.win_loss_sum && s.score_sum == t.score_sum);
    TENGEN_CHECK(s.score_to_play == t.score_to_play);
  }
  const Edges p = shared.edges(x);
  const Edges q = alone.edges(y);
  for (int i = 0; i < x.num_edges; ++i) {
    TENGEN_CHECK(p.legal_index[i] == q.legal_index[i] && p.prior[i] == q.prior[i]);
    TENGEN_CHECK(p.visits[i] == q.visits[i] && p.value_sum[i] == q.value_sum[i]);
    check_same(shared, p.child[i], alone, q.child[i]);
  }
}

// Checks that one thread with one descent builds the same tree as Search, bit for bit.
template <Game G>
void check_oracle(const G& game, const typename G::State& state, const SearchSettings& settings,
                  const std::vector<LeftOut>& left_out) {
  Search<G> alone(game, settings);
  SharedSearch<G> shared(game, settings, 1, 1);
  for (const int num_simulations : {0, 1, 2, 3, 10, 100, 700, 50}) {
    alone.reset();
    SearchRequest request = request_of(num_simulations);
    request.left_out = left_out;
    request.keep_squares = !left_out.empty();
    run_alone(alone, game, state, request);
    run(shared, game, state, 1, request);
    check_same(shared.tree(), shared.tree().root(), alone.tree(), alone.tree().root());
    SearchResult expected;
    SearchResult result;
    alone.finish(expected);
    shared.finish(result);
    TENGEN_CHECK(result.best_action == expected.best_action && result.proof == expected.proof);
    TENGEN_CHECK(result.num_simulations == expected.num_simulations);
    TENGEN_CHECK(result.root_value_to_play == expected.root_value_to_play);
    TENGEN_CHECK(result.has_scores == expected.has_scores);
    TENGEN_CHECK(result.root_score_to_play == expected.root_score_to_play);
    for (size_t i = 0; i < result.actions.size(); ++i) {
      TENGEN_CHECK(result.actions[i].policy == expected.actions[i].policy);
      TENGEN_CHECK(result.actions[i].standard_error == expected.actions[i].standard_error);
    }
  }
}

}  // namespace tengen
