#pragma once
// Benchmarks the simulations of one or several threads in one tree, without a network.

#include <cstdint>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "games/game.h"
#include "inference/evaluators.h"
#include "search/serial/search.h"
#include "search/shared/shared_search.h"
#include "selfplay/openings/opening.h"

namespace tengen {

struct SharedBenchmark {
  SearchSettings search;
  bool use_null = false;  // whether to use the null evaluator in place of the hash evaluator
  int num_simulations = 64;
  uint64_t num_searches = 0;
  int num_threads = 1;  // number of threads that search the tree
  int batch_rows = 1;   // leaves that each thread gathers; one thread with one leaf uses Search
};

// One benchmark run. Externally synchronised.
template <Game G>
class SharedBenchmarkRun {
 public:
  SharedBenchmarkRun(const G& game, const SharedBenchmark& settings)
      : game_(game),
        settings_(settings),
        alone_(game, settings.search),
        shared_(game, settings.search, settings.num_threads, settings.batch_rows) {}

  // Searches positions after 0 to 19 random plies, starting with an empty tree at each position;
  // returns the total number of simulations.
  uint64_t run() {
    const bool is_alone = settings_.num_threads == 1 && settings_.batch_rows == 1;
    uint64_t num_simulations = 0;
    std::vector<uint16_t> legal(static_cast<size_t>(game_.num_actions()));
    for (uint64_t i = 0; i < settings_.num_searches; ++i) {
      typename G::State state = game_.initial_state();
      std::vector<uint16_t> moves;
      Rng rng(0, 0, i, 0, Purpose::kOpening);
      play_opening(game_, state, static_cast<uint32_t>(i % 20), rng, legal.data(), moves);
      num_simulations += is_alone ? search_alone(state) : search_shared(state);
    }
    return num_simulations;
  }

 private:
  struct Answer {
    float value;
    float score[2];
  };

  uint64_t search_alone(const typename G::State& state) {
    std::vector<float> logits(static_cast<size_t>(game_.num_actions()));
    alone_.reset();
    alone_.begin(state, request());
    while (alone_.advance()) {
      const Answer answer = evaluate(alone_.leaf(), logits.data());
      alone_.accept(logits.data(), nullptr, answer.value, answer.score);
    }
    alone_.finish(result_);
    return result_.num_simulations;
  }

  uint64_t search_shared(const typename G::State& state) {
    shared_.begin(state, request());
    std::vector<std::thread> others;
    for (int i = 1; i < settings_.num_threads; ++i) others.emplace_back([this, i] { work(i); });
    work(0);
    for (auto& thread : others) thread.join();
    shared_.finish(result_);
    return result_.num_simulations;
  }

  // Searches as thread `index`. Evaluates leaves in batches, as for a network.
  void work(int index) {
    const auto num_actions = static_cast<size_t>(game_.num_actions());
    std::vector<Descent<G>*> waiting;
    std::vector<float> logits(static_cast<size_t>(settings_.batch_rows) * num_actions);
    std::vector<Answer> answers(static_cast<size_t>(settings_.batch_rows));
    for (;;) {
      const uint32_t seen = shared_.news();
      waiting.clear();
      for (Descent<G>& descent : shared_.descents(index)) {
        if (descent.advance()) waiting.push_back(&descent);
      }
      if (waiting.empty()) {
        if (!shared_.wait(index, seen)) return;
        continue;
      }
      for (size_t i = 0; i < waiting.size(); ++i) {
        answers[i] = evaluate(waiting[i]->leaf(), logits.data() + i * num_actions);
      }
      for (size_t i = 0; i < waiting.size(); ++i) {
        waiting[i]->accept(logits.data() + i * num_actions, nullptr, answers[i].value,
                           answers[i].score);
      }
      shared_.tell(index);
    }
  }

  Answer evaluate(const typename G::State& state, float* logits) const {
    Answer answer{};
    if (settings_.use_null) {
      null_evaluate(game_.num_actions(), logits, &answer.value);
      null_score(answer.score);
    } else {
      const Key128 key = game_.key(state);
      hash_evaluate(key, game_.num_actions(), logits, &answer.value);
      if (settings_.search.score_weight > 0.0f) hash_score(key, answer.value, answer.score);
    }
    return answer;
  }

  SearchRequest request() const {
    SearchRequest request;
    request.num_simulations = settings_.num_simulations;
    return request;
  }

  const G& game_;
  SharedBenchmark settings_;
  Search<G> alone_;
  SharedSearch<G> shared_;
  SearchResult result_;
};

}  // namespace tengen
