#pragma once
// Searches one position with several threads in one tree, for play and analysis, which need one
// result quickly. Many concurrent games use one tree per game instead (search/serial/search.h).
//
//   search.begin(state, request);
//   each thread i:
//     for (;;) {
//       seen = search.news();
//       for (d : search.descents(i)) if (d.advance()) ... d waits for its leaf
//       if there are leaves: evaluate and accept() them, then search.tell(i);
//       else if (!search.wait(i, seen)) break;
//     }
//   search.finish(result);
//
// The choice of leaves depends on the timing of the threads, so repeated searches differ. With only
// one descent the tree equals that of Search bit for bit.
// Source: Chaslot et al. 2008, "Parallel Monte-Carlo tree search", tree parallelisation with local
// locks and virtual loss.
// Differs from the paper: marks also cover children without a visit, and a child whose evaluation
// is pending is not evaluated again.

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "games/game.h"
#include "search/check_request.h"
#include "search/result.h"
#include "search/selection/lower_bound.h"
#include "search/selection/policy_target.h"
#include "search/settings.h"
#include "search/shared/descent.h"
#include "search/tree/read_root.h"
#include "search/tree/shared_arena.h"
#include "search/tree/tree.h"

namespace tengen {

// No thread may be in the search during begin() and finish(); the other methods say which threads
// may call them. `game` must outlive the search.
template <Game G>
class SharedSearch {
 public:
  using State = typename G::State;

  // Each of `num_threads` threads gathers up to `num_descents` leaves. Throws Error like Search,
  // and if the policy is not PUCT, because sequential halving needs sequential simulations.
  SharedSearch(const G& game, const SearchSettings& settings, int num_threads, int num_descents)
      : shared_(game, settings) {
    if (settings.policy != RootPolicy::kPuct) {
      throw Error(std::string("search.policy (") +
                  (settings.policy == RootPolicy::kGumbel ? "gumbel" : "minigo") +
                  ") must be puct for more than one thread; use one thread");
    }
    check_score(game, settings);
    for (int i = 0; i < num_threads; ++i) {
      threads_.push_back(std::make_unique<Thread>(&shared_, &arenas_[0], num_descents));
    }
  }

  // Starts a search of `root`, with an empty tree or the tree that stay() or play() kept, whose
  // visits count towards the request. Throws Error like Search::begin(), and if the request
  // explores, which only self-play does.
  void begin(const State& root, const SearchRequest& request) {
    check_request(shared_.game, root, request);
    if (request.explore) {
      throw Error("request.explore (true) must be false in a shared tree; use one thread");
    }
    const bool keeps_scores = shared_.utility.counts() || request.keep_scores;
    const bool keeps_squares = shared_.settings.keeps_squares() || request.keep_squares;
    const bool considers_all = request.considers_all || !request.left_out.empty();
    const bool can_reuse =
        kept_ && request.left_out.empty() && shared_.considers_all == considers_all &&
        shared_.keeps_squares >= keeps_squares && tree().keeps_scores() == keeps_scores;
    kept_ = false;
    for (auto& thread : threads_) {
      thread->state.has_news = false;
      for (Descent<G>& descent : thread->descents) descent.reset();
    }
    if (!can_reuse) begin_tree(shared_.game.to_play(root), keeps_scores);
    const SharedNode& node = tree().node(shared_.root);
    shared_.root_state = root;
    shared_.budget = request.num_simulations;
    shared_.left_out = request.left_out;
    shared_.considers_all = considers_all;
    shared_.keeps_squares = keeps_squares;
    shared_.num_begun = can_reuse ? static_cast<int>(node.visits) - 1 : 0;
    shared_.root_proven = node.proof != Proof::kUnknown;
    shared_.asks_priors =
        can_reuse && shared_.settings.root_symmetries && node.proof == Proof::kUnknown;
    shared_.root_taken = shared_.root_expanded = can_reuse && !shared_.asks_priors;
    shared_.stopped = false;
  }

  // Keeps the tree for a begin() of the same position, unless a leaf is waiting.
  void stay() { kept_ = has_root() && shared_.left_out.empty() && !is_waiting(); }

  // Call after the game continues with `action`. Keeps the action's subtree, if any, for begin().
  void play(int action) {
    stay();
    if (!kept_) return;
    kept_ = false;
    const SharedNode& root = tree().node(shared_.root);
    const Edges edges = tree().edges(root);
    for (int i = 0; i < root.num_edges; ++i) {
      if (tree().actions(root)[edges.legal_index[i]] != action) continue;
      if (tree().node(edges.child[i]).num_legal == 0) break;
      return adopt(edges.child[i]);
    }
    shared_.root_expanded = shared_.asks_priors = false;  // no tree was kept
  }

  // Like Search::extend(); call after every thread has reached the end of the search.
  void extend(int num_simulations) {
    if (shared_.root == Arena::kNull) {
      throw Error("search.extend (" + std::to_string(num_simulations) +
                  ") must follow begin(); begin a search");
    }
    check_num_simulations(num_simulations);
    shared_.budget = num_simulations;
    shared_.stopped = false;  // a stop() after the end of a search has no effect
  }

  // Returns the descents of thread `index`. Only for that thread.
  std::vector<Descent<G>>& descents(int index) { return thread(index).descents; }

  // The number of announcements by tell(). Any thread may call this.
  uint32_t news() const { return news_.load(std::memory_order_acquire); }

  // Announces any positions that thread `index` has evaluated or settled since its last call.
  void tell(int index) {
    bool& has_news = thread(index).state.has_news;
    if (has_news) tell_all();
    has_news = false;
  }

  // Call from thread `index` when none of its descents waits for an evaluation. Returns false if
  // the thread's part of the search has ended. Otherwise blocks until news() differs from `seen`,
  // its value before the descents were advanced; then returns true, and they may continue.
  bool wait(int index, uint32_t seen) {
    tell(index);  // wakes threads that are blocked at positions which the cache evaluated
    const auto& own = thread(index).descents;
    if (std::none_of(own.begin(), own.end(), [](const auto& d) { return d.is_blocked(); })) {
      return false;
    }
    news_.wait(seen, std::memory_order_acquire);
    return true;
  }

  // Ends the search soon: no new simulation starts. Any thread may call this.
  void stop() {
    shared_.stopped.store(true, std::memory_order_relaxed);
    tell_all();
  }

  // Writes the results. Throws Error if the search was stopped before the root was evaluated.
  void finish(SearchResult& result) const {
    if (!has_root()) {
      throw Error("search.finish (no result) needs an evaluated root; run the search first");
    }
    read_root(tree(), result);
    if (shared_.keeps_squares) add_standard_errors(tree(), result);
    result.num_simulations = tree().node(tree().root()).visits - 1;
    normalise_policy(result);
    result.best_action = best_puct_action(tree(), shared_.settings, result);
  }

  const SharedTree& tree() const { return threads_.front()->state.tree; }

 private:
  struct Thread {
    Thread(SharedState<G>* shared, SharedArena* arena, int num_descents)
        : state(arena, shared->game.num_actions()) {
      for (int i = 0; i < num_descents; ++i) descents.emplace_back(shared, &state);
    }
    ThreadState state;
    std::vector<Descent<G>> descents;
  };

  bool has_root() const { return shared_.root_expanded || shared_.asks_priors; }

  bool is_waiting() const {
    return std::any_of(threads_.begin(), threads_.end(), [](const auto& thread) {
      return std::any_of(thread->descents.begin(), thread->descents.end(),
                         [](const auto& descent) { return descent.is_waiting(); });
    });
  }

  void begin_tree(int to_play, bool keeps_scores) {
    arenas_[current_].clear();
    for (auto& thread : threads_) thread->state.tree.clear(keeps_scores);
    share_root(threads_.front()->state.tree.add_node(to_play));
  }
  void adopt(Arena::Offset from) {
    SharedArena& arena = arenas_[1 - current_];
    arena.clear();
    SharedTree kept{SharedArena::Cursor(&arena)};
    kept.adopt(tree(), from);
    for (auto& thread : threads_) {
      thread->state.tree = SharedTree(SharedArena::Cursor(&arena));
      thread->state.tree.clear(kept.keeps_scores());
    }
    const Arena::Offset root = kept.root();
    threads_.front()->state.tree = std::move(kept);
    current_ = 1 - current_;
    share_root(root);
    kept_ = true;
  }
  void share_root(Arena::Offset root) {
    shared_.root = root;
    for (auto& thread : threads_) thread->state.tree.set_root(root);
  }

  void tell_all() {
    news_.fetch_add(1, std::memory_order_release);
    news_.notify_all();
  }

  Thread& thread(int index) { return *threads_[static_cast<size_t>(index)]; }

  SharedState<G> shared_;
  SharedArena arenas_[2];  // the memory of the current tree, and of the tree after a move
  int current_ = 0;
  bool kept_ = false;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::atomic<uint32_t> news_{0};
};

}  // namespace tengen
