#pragma once
// Performs one simulation at a time in a tree that several threads search; see shared_search.h.
//
// A descent marks every edge that it takes. Other descents count the mark as a visit, so they take
// other paths. A descent holds at most one node's lock, and none while it waits for an evaluation.
// The first descent through an edge creates the child. The child is pending until it is expanded.
// Other descents that reach a pending child are blocked, so no position is evaluated twice.

#include <atomic>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "games/game.h"
#include "search/evaluation/priors.h"
#include "search/evaluation/score_utility.h"
#include "search/selection/puct.h"
#include "search/settings.h"
#include "search/tree/proofs.h"
#include "search/tree/tree.h"

namespace tengen {

// State shared by the descents of one search, besides the tree. Only the atomics change while
// descents are in flight below the root.
template <Game G>
struct SharedState {
  SharedState(const G& rules, const SearchSettings& search_settings)
      : game(rules), settings(search_settings), utility(search_settings), puct(search_settings) {}

  const G& game;
  const SearchSettings settings;
  ScoreUtility utility;  // its center is set once, by the thread that evaluates the root
  const Puct puct;
  bool keeps_squares = false;
  std::vector<LeftOut> left_out;
  bool considers_all = false;  // whether left_out or the request exclude the rules' decisions
  typename G::State root_state{};
  Arena::Offset root = Arena::kNull;
  int budget = 0;
  std::atomic<int> num_begun{0};  // number of simulations started, at most the budget
  std::atomic<bool> root_taken{false};
  std::atomic<bool> root_expanded{false};
  bool asks_priors = false;  // the root of a reused tree still needs new priors
  std::atomic<bool> root_proven{false};
  std::atomic<bool> stopped{false};
};

// State shared by the descents of one thread.
struct ThreadState {
  ThreadState(SharedArena* arena, int num_actions)
      : tree(SharedArena::Cursor(arena)), priors(num_actions) {}
  SharedTree tree;
  Priors priors;
  bool has_news = false;  // whether a position that may block descents is no longer pending
};

// One simulation in progress. Only for the thread that owns `thread`; other threads run their own.
template <Game G>
class Descent {
 public:
  using State = typename G::State;

  Descent(SharedState<G>* shared, ThreadState* thread) : shared_(shared), thread_(thread) {
    path_.reserve(static_cast<size_t>(shared->game.max_plies()) + 1);
  }

  // Performs simulations. Returns true if one needs an evaluation, false if this descent
  // is_blocked() or the search has ended. Throws Error while a leaf is waiting.
  bool advance() {
    if (waiting_) throw Error("descent.advance (a leaf waits) must follow accept(); call it first");
    retreat();
    if (!shared_->root_expanded.load(std::memory_order_acquire)) return take_root();
    while (begin()) {
      const Arrival arrival = descend();
      if (arrival == Arrival::kLeaf) return waiting_ = true;
      if (arrival == Arrival::kPending) {
        blocked_ = true;
        return false;
      }
      begun_ = false;
    }
    return false;
  }

  // Whether advance() stopped at a position that another descent is evaluating. The marks stay
  // until the next call, so that other descents take other paths.
  bool is_blocked() const { return blocked_; }
  bool is_waiting() const { return waiting_; }
  static constexpr bool at_unknown_move() { return false; }

  // Whether leaf() is the root.
  bool at_root() const { return waiting_ && path_.empty(); }

  // The position to evaluate, after advance() returned true.
  const State& leaf() const { return leaf_state_; }

  // Accepts the evaluation of leaf(), with the parameters of Search::accept().
  void accept(const float* logits, const uint16_t* transform, float value_to_play,
              const float* score_to_play = nullptr) {
    if (!waiting_) throw Error("descent.accept (no leaf) needs advance() to return true first");
    const int to_play = shared_->game.to_play(leaf_state_);
    int n = thread_->priors.list(shared_->game, leaf_state_, shared_->considers_all).count;
    thread_->priors.compute(n, logits, transform, value_to_play);
    if (!shared_->left_out.empty()) {
      const int depth = static_cast<int>(path_.size());
      n = thread_->priors.leave_out(shared_->left_out, to_play, depth, n);
    }
    if (path_.empty() && shared_->asks_priors) return take_priors();
    Visit own{value_to_play, value_to_play, 0.0f};
    {
      SharedNode& leaf = tree().node(leaf_);
      const std::lock_guard hold(leaf.lock);
      leaf.to_play = static_cast<uint8_t>(to_play);
      if (tree().keeps_scores()) own = take_score(leaf, value_to_play, score_to_play);
      tree().expand(leaf_, thread_->priors.legal(), thread_->priors.prior(), n);
      leaf.value_to_play = own.value;
      tree().add_visit(leaf, own, true);
    }
    thread_->has_news = true;
    waiting_ = begun_ = false;
    if (path_.empty()) shared_->root_expanded.store(true, std::memory_order_release);
    back_up(own);
  }

  // Resets the descent after the tree has been cleared.
  void reset() {
    path_.clear();
    waiting_ = blocked_ = begun_ = false;
  }

 private:
  enum class Arrival { kLeaf, kKnown, kPending };

  struct Step {
    Arena::Offset node;
    int edge;
  };

  SharedTree& tree() { return thread_->tree; }

  static Proof load_proof(SharedNode& node) {
    return std::atomic_ref(node.proof).load(std::memory_order_acquire);
  }

  // Sets the proof of a node. Requires the node's lock. The store also publishes to_play.
  static void store_proof(SharedNode& node, Proof proof) {
    std::atomic_ref(node.proof).store(proof, std::memory_order_release);
  }

  // Stores the score of the leaf; if the leaf is the root, centers the utility on its score.
  // Returns the visit to add. Requires the leaf's lock.
  Visit take_score(SharedNode& leaf, float value, const float* score) {
    put_score(tree().score_of(leaf), value, score);
    if constexpr (HasScore<G>) {
      if (leaf_ == shared_->root) {
        shared_->utility.center(shared_->game.num_points(shared_->root_state),
                                leaf.to_play == 0 ? score[0] : -score[0]);
      }
    }
    return shared_->utility.evaluated(leaf, value, score);
  }

  // Sets the new priors of the root of a reused tree, which already has edges.
  void take_priors() {
    {
      SharedNode& root = tree().node(leaf_);
      const std::lock_guard hold(root.lock);
      tree().set_priors(leaf_, thread_->priors.prior());
    }
    shared_->asks_priors = waiting_ = begun_ = false;
    thread_->has_news = true;
    shared_->root_expanded.store(true, std::memory_order_release);
  }

  // Takes the root as the leaf unless another descent has taken the root. Returns whether it did.
  bool take_root() {
    blocked_ = false;
    if (shared_->stopped.load(std::memory_order_relaxed)) return false;
    blocked_ = shared_->root_taken.exchange(true, std::memory_order_relaxed);
    // The descent that took the root evaluates it, even if the search is stopped meanwhile.
    if (blocked_) return false;
    path_.clear();
    leaf_ = shared_->root;
    leaf_state_ = shared_->root_state;
    return waiting_ = true;
  }

  // Returns whether there is a simulation to perform: a new one, or a blocked one in progress.
  bool begin() {
    if (shared_->stopped.load(std::memory_order_relaxed) ||
        shared_->root_proven.load(std::memory_order_relaxed)) {
      return begun_ = false;
    }
    if (begun_) return true;
    int count = shared_->num_begun.load(std::memory_order_relaxed);
    do {
      if (count >= shared_->budget) return false;
    } while (
        !shared_->num_begun.compare_exchange_weak(count, count + 1, std::memory_order_relaxed));
    return begun_ = true;
  }

  Arrival descend() {
    leaf_state_ = shared_->root_state;
    leaf_ = shared_->root;
    for (;;) {
      SharedNode& node = tree().node(leaf_);
      int action;
      bool is_new;
      {
        const std::lock_guard hold(node.lock);
        if (node.proof != Proof::kUnknown && leaf_ != shared_->root) break;
        if (node.num_legal == 0) return Arrival::kPending;
        action = take_edge(node, &is_new);
      }
      shared_->game.apply(leaf_state_, action);
      if (is_new) return arrive();
    }
    settle(load_proof(tree().node(leaf_)));
    return Arrival::kKnown;
  }

  // Selects and marks an edge; leaf_ becomes its child. Returns the action. Requires the node's
  // lock.
  int take_edge(SharedNode& node, bool* is_new) {
    int edge = shared_->puct.select(tree(), node, leaf_ == shared_->root);
    *is_new = edge == kNewEdge;
    if (*is_new) {
      edge = tree().add_edge(leaf_, node.next_index);
      const Arena::Offset child = tree().add_node(0);  // the side to play is not known yet
      tree().edges(node).child[edge] = child;
    }
    const Edges edges = tree().edges(node);
    edges.in_flight[edge] += 1.0f;
    node.in_flight += 1;
    path_.push_back({leaf_, edge});
    leaf_ = edges.child[edge];
    return tree().actions(node)[edges.legal_index[edge]];
  }

  // Handles the arrival at the position of a newly created child.
  Arrival arrive() {
    const Outcome outcome = shared_->game.outcome(leaf_state_);
    const int to_play = shared_->game.to_play(leaf_state_);
    Proof proof = Proof::kUnknown;
    if (outcome == Outcome::kOngoing) {
      const Decisive listed =
          thread_->priors.list(shared_->game, leaf_state_, shared_->considers_all);
      proof = Priors::proof_of<G>(listed);
      if (proof == Proof::kUnknown) return Arrival::kLeaf;
    } else {
      const float value = to_play == 0 ? value_to_first(outcome) : -value_to_first(outcome);
      proof = value > 0 ? Proof::kWin : value < 0 ? Proof::kLoss : Proof::kDraw;
    }
    {
      SharedNode& leaf = tree().node(leaf_);
      const std::lock_guard hold(leaf.lock);
      leaf.to_play = static_cast<uint8_t>(to_play);
      if (tree().keeps_scores()) {
        tree().score_of(leaf).score_to_play = final_score(shared_->game, leaf_state_);
      }
      store_proof(leaf, proof);
    }
    thread_->has_news = true;
    settle(proof);
    return Arrival::kKnown;
  }

  // Ends the simulation at a proven node.
  void settle(Proof proof) {
    SharedNode& leaf = tree().node(leaf_);
    const Visit visit = shared_->utility.settled(tree(), leaf, proof);
    {
      const std::lock_guard hold(leaf.lock);
      tree().add_visit(leaf, visit, shared_->keeps_squares);
    }
    back_up(visit);
  }

  // Removes the marks of a blocked simulation.
  void retreat() {
    for (const Step& step : path_) {
      SharedNode& node = tree().node(step.node);
      const std::lock_guard hold(node.lock);
      tree().edges(node).in_flight[step.edge] -= 1.0f;
      node.in_flight -= 1;
    }
    path_.clear();
    blocked_ = false;
  }

  // Adds the visit to the path (the leaf already has it), removes the marks and updates proofs.
  void back_up(Visit visit) {
    SharedNode* child = &tree().node(leaf_);
    while (!path_.empty()) {
      const Step step = path_.back();
      path_.pop_back();
      SharedNode& node = tree().node(step.node);
      const std::lock_guard hold(node.lock);
      if (child->to_play != node.to_play) visit = -visit;
      update_edge(node, step.edge, *child, visit.value);
      if (node.proof != Proof::kUnknown) {
        visit = shared_->utility.settled(tree(), node, node.proof);
      }
      node.in_flight -= 1;
      tree().add_visit(node, visit, shared_->keeps_squares);
      child = &node;
    }
  }

  // Updates an edge. Requires the node's lock. Another descent may prove the child at any time.
  // That descent then also updates the edge, so the last update sees the proof.
  void update_edge(SharedNode& node, int edge, SharedNode& child, float value) {
    const Edges edges = tree().edges(node);
    edges.in_flight[edge] -= 1.0f;
    edges.visits[edge] += 1.0f;
    const Proof proof = proof_seen_from(node, child);
    if (proof == Proof::kUnknown) {
      edges.exact_sum[edge] += value;
      edges.value_sum[edge] = static_cast<float>(edges.exact_sum[edge]);
      return;
    }
    const Proof own = child.to_play == node.to_play ? proof : opposite(proof);
    const float settled = shared_->utility.settled(tree(), child, own).value;
    edges.value_sum[edge] = settled_sum(node, child, proof, settled, edges.visits[edge]);
    const auto proof_of = [&](SharedNode& one) { return proof_seen_from(node, one); };
    const Proof proven = prove(tree(), node, proof, proof_of);
    if (proven == Proof::kUnknown) return;
    // Writes the score only once, because others may read a proven node's score without the lock.
    if (tree().keeps_scores() && node.proof == Proof::kUnknown) {
      tree().score_of(node).score_to_play = proven_score(tree(), node, proven, proof_of);
    }
    store_proof(node, proven);
    if (&node == &tree().node(shared_->root))
      shared_->root_proven.store(true, std::memory_order_relaxed);
  }

  // Returns proof_for(). Reads the side to play at the child only if the child is proven, because a
  // child that another descent created may still be pending.
  static Proof proof_seen_from(const SharedNode& node, SharedNode& child) {
    const Proof proof = load_proof(child);
    if (proof == Proof::kUnknown || child.to_play == node.to_play) return proof;
    return opposite(proof);
  }

  SharedState<G>* shared_;
  ThreadState* thread_;
  State leaf_state_{};
  Arena::Offset leaf_ = Arena::kNull;
  std::vector<Step> path_;  // marked edges
  bool begun_ = false;      // whether a simulation of the budget is in progress
  bool waiting_ = false;
  bool blocked_ = false;
};

}  // namespace tengen
