#pragma once
// A LeafServer for searches that wait for several leaves at the same time.

#include <cstdint>
#include <vector>

#include "games/game.h"
#include "selfplay/leaves/leaf_batch.h"

namespace tengen {

// Evaluates leaves. Not thread-safe; `game` must outlive the server. S: such as MinigoSearch.
template <Game G, class S>
class LeavesServer : public LeafBatch<G> {
  using Base = LeafBatch<G>;
  using Base::game_, Base::buffers_, Base::cache_, Base::num_rows_;

 public:
  // Serves `num_searches` searches that each wait for at most `num_leaves` leaves.
  LeavesServer(const G& game, int num_searches, int num_leaves, size_t cache_bytes)
      : Base(game, static_cast<size_t>(num_searches) * static_cast<size_t>(num_leaves), cache_bytes,
             false),
        waiting_(buffers_.capacity) {}

  // Like LeafServer::fill().
  template <class F>
  int fill(F&& run_all) {
    this->check_answered();
    run_all();
    return num_rows_;
  }

  // Runs the search. Returns true if the search has ended, false if it waits for rows of the batch.
  // Precondition: the search is not waiting.
  bool run(S& search, WorkerStats& stats) {
    while (search.advance()) {
      for (int leaf = 0; leaf < search.num_leaves(); ++leaf) serve(search, leaf, stats);
      if (search.is_waiting()) return false;
    }
    return true;
  }

  // Passes every waiting search its evaluations and empties the batch.
  void answer(WorkerStats& stats) {
    for (int row = 0; row < num_rows_; ++row) {
      const Waiting& w = waiting_[static_cast<size_t>(row)];
      const float* policy = buffers_.policy_row(row);
      const float value = buffers_.value[static_cast<size_t>(row)];
      cache_.insert(w.key, policy, value, buffers_.score_row(row));
      const uint16_t* images = game_.images(w.search->leaf(w.leaf), w.symmetry);
      w.search->accept(w.leaf, policy, images, value);
    }
    this->empty(stats);
  }

 private:
  struct Waiting {
    Key128 key;
    int symmetry = 0;
    int leaf = 0;
    S* search = nullptr;
  };

  // Evaluates a leaf from the cache, or adds it to the batch.
  void serve(S& search, int leaf, WorkerStats& stats) {
    const auto& state = search.leaf(leaf);
    Key128 key = game_.key(state);
    const int symmetry = symmetry_of(key, game_.num_symmetries(), search.symmetry_seed());
    // The cache has separate entries for the symmetries of a position.
    key.lo ^= mix64(static_cast<uint64_t>(symmetry));
    EvaluationCache::Entry entry;
    if (cache_.find(key, &entry)) {
      ++stats.num_cache_hits;
      return search.accept(leaf, entry.policy, game_.images(state, symmetry), entry.value);
    }
    game_.encode(state, symmetry, buffers_.planes_row(num_rows_));
    waiting_[static_cast<size_t>(num_rows_++)] = {key, symmetry, leaf, &search};
  }

  std::vector<Waiting> waiting_;
};

}  // namespace tengen
