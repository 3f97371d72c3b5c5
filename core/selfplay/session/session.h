#pragma once
// A search of one game under external control.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "inference/port.h"
#include "search/serial/search.h"
#include "search/tree/variation.h"
#include "selfplay/leaves/leaf_server.h"

namespace tengen {

// Returns the position after `moves` in `variant`, or in the game itself if `variant` is empty.
// Throws Error if the variant does not exist, a move is illegal or the game has ended.
template <Game G>
typename G::State position_after(const G& game, const std::string& variant,
                                 const std::vector<int>& moves) {
  typename G::State state = initial_state_of(game, variant);
  play_moves(game, state, moves);
  if (game.outcome(state) != Outcome::kOngoing) {
    throw Error("moves (" + std::to_string(moves.size()) +
                " of them) must not finish the game; leave the last one out");
  }
  return state;
}

// The line of moves to the position that a session searched last.
struct SearchedLine {
  std::string variant;
  std::vector<int> moves;

  // Whether the moves `to` equal or continue this line.
  bool leads_to(const std::string& to_variant, const std::vector<int>& to) const {
    return to_variant == variant && to.size() >= moves.size() &&
           std::equal(moves.begin(), moves.end(), to.begin());
  }
};

// A search driven by one thread or several, each with its own port. Each thread drives its port
// until the port's next() returns 0. Call the other methods only while no thread drives a port.
class SearchSession {
 public:
  virtual ~SearchSession() = default;
  // Starts a search of the position after `moves`. Throws Error like position_after(). Then drive
  // the ports, and read result(). With `keeps_tree`, reuses the subtree of the last completed
  // search if `moves` continue its moves; its visits count towards the request.
  virtual void begin(const std::vector<int>& moves, const SearchRequest& request,
                     const std::string& variant, bool keeps_tree = false) = 0;
  // Continues the completed search up to `num_simulations` in total; see Search::extend().
  virtual void extend(int num_simulations) = 0;
  // With several threads, next() may block until another port's done() is called.
  virtual Port& port(int index) = 0;
  // Ends a search by several threads soon with the current results; every next() returns. Any
  // thread may call this.
  virtual void stop() {}
  // Returns the result of the completed search. Throws Error if there is no result yet.
  virtual const SearchResult& result() = 0;
  // Returns the principal variation of the completed search; see search/tree/variation.h.
  virtual std::vector<int> variation(int action, size_t max_length) const = 0;
};

// A search by one thread, through a port with one row.
template <Game G>
class GameSession final : public SearchSession, public Port {
 public:
  GameSession(const G& game, const SearchSettings& settings, size_t cache_bytes)
      : game_(game),
        search_(game_, settings),
        leaves_(game_, 1, cache_bytes, HasScore<G>, settings.root_symmetries) {}

  void begin(const std::vector<int>& moves, const SearchRequest& request,
             const std::string& variant, bool keeps_tree = false) override {
    const typename G::State state = position_after(game_, variant, moves);
    leaves_.clear();  // an abandoned search may have a waiting row
    if (keeps_tree && !search_.is_waiting() && line_.leads_to(variant, moves)) {
      go_on(moves);
    } else {
      search_.reset();
    }
    line_ = {variant, moves};
    search_.begin(state, request);
  }

  void extend(int num_simulations) override { search_.extend(num_simulations); }
  Port& port(int) override { return *this; }

  int next() override {
    return leaves_.fill([&] {
      if (!search_.is_waiting()) leaves_.run(search_, stats_);
    });
  }
  void done() override { leaves_.answer(stats_); }
  BatchBuffers& buffers() override { return leaves_.buffers(); }
  const SearchResult& result() override {
    search_.finish(result_);
    // Counts the root's visits, to include the simulations of an earlier search.
    result_.num_simulations = search_.tree().node(search_.tree().root()).visits - 1;
    return result_;
  }
  std::vector<int> variation(int action, size_t max_length) const override {
    return principal_variation(search_.tree(), action, max_length);
  }

 private:
  void go_on(const std::vector<int>& moves) {
    if (moves.size() == line_.moves.size()) search_.stay();
    for (size_t i = line_.moves.size(); i < moves.size(); ++i) search_.play(moves[i], scratch_);
  }

  const G game_;
  Search<G> search_;
  Tree scratch_;
  SearchedLine line_;
  LeafServer<G> leaves_;
  WorkerStats stats_;
  SearchResult result_;
};

}  // namespace tengen
