#pragma once
// The batch to which searches add their leaves, and the cache that evaluates some of the leaves.
// The derived classes (leaf_server.h, leaves_server.h) decide how many leaves a search waits for
// and how it receives their evaluations.

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/hash.h"
#include "games/game.h"
#include "inference/cache.h"
#include "inference/port.h"

namespace tengen {

// Counters of one worker since its start.
struct WorkerStats {
  uint64_t num_games = 0;
  uint64_t num_plies = 0;        // searched plies
  uint64_t num_rows = 0;         // number of rows of finished games
  uint64_t num_simulations = 0;  // number of simulations, including those of unfinished searches
  uint64_t num_evaluations = 0;  // number of rows sent to the backend
  uint64_t num_cache_hits = 0;
  uint64_t num_batches = 0;
};

// Returns the symmetry, 0 to `num_symmetries` - 1, under which a position is evaluated. With `seed`
// 0 the symmetry depends only on the position's key.
inline int symmetry_of(const Key128& key, int num_symmetries, uint64_t seed = 0) {
  if (num_symmetries == 1) return 0;
  return static_cast<int>(mix64(key.hi + 0x5bd1e995u + seed) %
                          static_cast<uint64_t>(num_symmetries));
}

// A batch of leaves. Not thread-safe; `game` must outlive the batch.
template <Game G>
class LeafBatch {
 public:
  int num_rows() const { return num_rows_; }
  BatchBuffers& buffers() { return buffers_; }

 protected:
  LeafBatch(const G& game, size_t capacity, size_t cache_bytes, bool wants_score)
      : game_(game),
        buffers_(capacity,
                 {static_cast<size_t>(game.num_planes()), static_cast<size_t>(game.height()),
                  static_cast<size_t>(game.width())},
                 static_cast<size_t>(game.num_actions()), wants_score),
        cache_(cache_bytes, game.num_actions(), wants_score) {}

  // Throws Error if rows of the batch are waiting for their evaluation.
  void check_answered() const {
    if (num_rows_ == 0) return;
    throw Error("port.next (" + std::to_string(num_rows_) +
                " rows wait) must follow done(); evaluate them first");
  }

  // Empties the batch. Call after every row has been evaluated.
  void empty(WorkerStats& stats) {
    stats.num_evaluations += static_cast<uint64_t>(num_rows_);
    stats.num_batches += num_rows_ > 0;
    num_rows_ = 0;
  }

  const G& game_;
  BatchBuffers buffers_;
  EvaluationCache cache_;
  int num_rows_ = 0;
};

}  // namespace tengen
