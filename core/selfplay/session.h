#pragma once
// One game's search driven from outside, by one thread: play and analysis. A port of one row.

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "inference/port.h"
#include "search/search.h"
#include "search/variation.h"
#include "selfplay/leaf_server.h"

namespace tengen {

// The position after `moves` of the game or of a variant of it. Throws Error where there is no such
// variant, a move is illegal or the game is over.
template <Game G>
typename G::State position_after(const G& game, const std::string& variant,
                                 const std::vector<int>& moves) {
  typename G::State state = initial_state_of(game, variant);
  for (size_t i = 0; i < moves.size(); ++i) {
    if (game.outcome(state) != Outcome::kOngoing || !game.is_legal(state, moves[i])) {
      throw Error("moves[" + std::to_string(i) + "] (" + std::to_string(moves[i]) +
                  ") must be legal in its position; check the moves before it");
    }
    game.apply(state, moves[i]);
  }
  if (game.outcome(state) != Outcome::kOngoing) {
    throw Error("moves (" + std::to_string(moves.size()) +
                " of them) must lead to a position that is not over; leave out the last");
  }
  return state;
}

class SearchSession : public Port {
 public:
  // Starts a search of the position_after() these moves, and throws as that does. Then drive the
  // port until next() returns 0 and read result().
  virtual void begin(const std::vector<int>& moves, const SearchRequest& request,
                     const std::string& variant) = 0;
  // Lets the search that ended go on to `num_simulations` in all; see Search::extend().
  virtual void extend(int num_simulations) = 0;
  virtual const SearchResult& result() = 0;
  // Of the search that ended; see variation.h.
  virtual std::vector<int> variation(int action, size_t max_length) const = 0;
};

template <Game G>
class GameSession final : public SearchSession {
 public:
  GameSession(const G& game, const SearchSettings& settings, size_t cache_bytes)
      : game_(game), search_(game_, settings), leaves_(game_, 1, cache_bytes, HasScore<G>) {}

  void begin(const std::vector<int>& moves, const SearchRequest& request,
             const std::string& variant) override {
    const typename G::State state = position_after(game_, variant, moves);
    leaves_.clear();  // a search left half way may have a row waiting
    search_.reset();
    search_.begin(state, request);
  }

  void extend(int num_simulations) override { search_.extend(num_simulations); }

  int next() override {
    return leaves_.fill([&] { leaves_.run(search_, stats_); });
  }
  void done() override { leaves_.answer(stats_); }
  BatchBuffers& buffers() override { return leaves_.buffers(); }
  const SearchResult& result() override {
    search_.finish(result_);
    return result_;
  }
  std::vector<int> variation(int action, size_t max_length) const override {
    return principal_variation(search_.tree(), action, max_length);
  }

 private:
  const G game_;
  Search<G> search_;
  LeafServer<G> leaves_;
  WorkerStats stats_;
  SearchResult result_;
};

}  // namespace tengen
