#pragma once
// Evaluates the leaves of searches in self-play and matches. A leaf's evaluation comes from the
// cache, or the leaf is added to the batch, under the symmetry that its key determines. For
// external games, the unknown moves of all searches are made in one call.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "games/game.h"
#include "search/serial/search.h"
#include "selfplay/leaves/leaf_batch.h"
#include "selfplay/leaves/root_mean.h"

namespace tengen {

// Evaluates leaves. Not thread-safe; `game` must outlive the server. S: a search or a Descent.
template <Game G, class S = Search<G>>
class LeafServer : public LeafBatch<G> {
  using Base = LeafBatch<G>;
  using Base::game_, Base::buffers_, Base::cache_, Base::num_rows_;

 public:
  // `wants_score`: evaluations include a score. `root_symmetries`: a root's evaluation is the mean
  // over all symmetries and bypasses the cache.
  LeafServer(const G& game, int capacity, size_t cache_bytes, bool wants_score,
             bool root_symmetries)
      : Base(game, static_cast<size_t>(capacity), cache_bytes, wants_score),
        waiting_(buffers_.capacity) {
    if (root_symmetries && game.num_symmetries() > 1) means_.resize(waiting_.size());
  }

  // Fills the batch and returns its number of rows; 0 if every search has ended. `run_all` calls
  // run() for each search that is not waiting. Throws Error if rows of the last batch are waiting.
  template <class F>
  int fill(F&& run_all) {
    this->check_answered();
    for (RootMean<S>& mean : means_) {
      if (mean.wants_more() && mean.is_idle()) send(mean);
    }
    run_all();
    while (resolve()) {
      run_all();
      // Searches at another unknown move wait for the next batch, because moves are cheaper in
      // batches.
      if (num_rows_ > 0) break;
    }
    for (RootMean<S>& mean : means_) {
      while (mean.wants_more() && num_rows_ < static_cast<int>(waiting_.size())) send(mean);
    }
    return num_rows_;
  }

  // Runs the search. Returns true if the search has ended; false if it waits for its leaf, which is
  // then in the batch, or for an unknown move. Precondition: the search is not waiting.
  bool run(S& search, WorkerStats& stats) {
    while (search.advance()) {
      if (search.at_unknown_move()) {
        at_unknown_moves_.push_back(&search);
        return false;
      }
      if (!means_.empty() && search.at_root()) {
        const auto is_free = [](const RootMean<S>& one) { return one.search() == nullptr; };
        RootMean<S>& mean = *std::find_if(means_.begin(), means_.end(), is_free);
        mean.begin(&search, game_.num_symmetries(), static_cast<size_t>(game_.num_actions()));
        send(mean);
        return false;
      }
      const Key128 key = game_.key(search.leaf());
      const int symmetry = symmetry_of(key, game_.num_symmetries());
      EvaluationCache::Entry entry;
      if (cache_.find(key, &entry)) {
        ++stats.num_cache_hits;
        search.accept(entry.policy, game_.images(search.leaf(), symmetry), entry.value,
                      entry.score);
        continue;
      }
      game_.encode(search.leaf(), symmetry, buffers_.planes_row(num_rows_));
      waiting_[static_cast<size_t>(num_rows_)] = {key, symmetry, &search, nullptr};
      ++num_rows_;
      return false;
    }
    return true;
  }

  // Passes each waiting search its evaluation, and empties the batch.
  void answer(WorkerStats& stats) {
    for (int row = 0; row < num_rows_; ++row) {
      const Waiting& w = waiting_[static_cast<size_t>(row)];
      const float value = buffers_.value[static_cast<size_t>(row)];
      const float* score = buffers_.score_row(row);
      if (w.mean != nullptr) {
        const uint16_t* images = game_.images(w.search->leaf(), w.symmetry);
        if (w.mean->add(buffers_.policy_row(row), images, value, score)) w.mean->finish();
        continue;
      }
      cache_.insert(w.key, buffers_.policy_row(row), value, score);
      w.search->accept(buffers_.policy_row(row), game_.images(w.search->leaf(), w.symmetry), value,
                       score);
    }
    this->empty(stats);
  }

  // Drops the waiting rows and unknown moves; their searches must have been reset.
  void clear() {
    num_rows_ = 0;
    at_unknown_moves_.clear();
    for (RootMean<S>& mean : means_) mean.clear();
  }

 private:
  struct Waiting {
    Key128 key;
    int symmetry = 0;
    S* search = nullptr;
    RootMean<S>* mean = nullptr;
  };

  // Adds the root to the batch under the next symmetry.
  void send(RootMean<S>& mean) {
    const int symmetry = mean.take();
    game_.encode(mean.search()->leaf(), symmetry, buffers_.planes_row(num_rows_));
    waiting_[static_cast<size_t>(num_rows_++)] = {{}, symmetry, mean.search(), &mean};
  }

  // Makes all moves that searches wait for in one call. Returns whether there were such moves;
  // always false in native games.
  bool resolve() {
    if constexpr (ExternallyPlayed<G>) {
      if (at_unknown_moves_.empty()) return false;
      std::vector<typename G::Move> moves;
      for (const S* search : at_unknown_moves_) moves.push_back(search->unknown_move());
      at_unknown_moves_.clear();
      game_.resolve(moves);
      return true;
    }
    return false;
  }

  std::vector<Waiting> waiting_;
  std::vector<RootMean<S>> means_;  // means of waiting roots; empty if roots need only one symmetry
  std::vector<S*> at_unknown_moves_;
};

}  // namespace tengen
