#pragma once
// A search of one position: yields leaves, accepts their evaluations, and does not depend on
// batches, caches or networks.
//
//   search.begin(state, request);
//   while (search.advance()) {                      // a leaf needs an evaluation
//     evaluate(search.leaf()) -> logits, value
//     search.accept(logits, transform, value);
//   }
//   search.finish(result);
//
// Values are backed up in the order of selection, so a search is a pure function of its state,
// request, settings and evaluations. Proofs of terminal values, and of positions that the rules
// decide within two moves, propagate up the tree.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "games/game.h"
#include "search/check_request.h"
#include "search/evaluation/priors.h"
#include "search/evaluation/score_utility.h"
#include "search/result.h"
#include "search/selection/lower_bound.h"
#include "search/serial/search_rule.h"
#include "search/settings.h"
#include "search/tree/proofs.h"
#include "search/tree/read_root.h"
#include "search/tree/tree.h"

namespace tengen {

// A search of one position. Externally synchronised. `game` must outlive the search.
template <Game G>
class Search {
 public:
  using State = typename G::State;

  // Throws Error if the settings count the score but the game has none, or the policy is minigo.
  Search(const G& game, const SearchSettings& settings)
      : game_(game),
        settings_(settings),
        utility_(settings),
        rule_(settings, game.num_actions()),
        priors_(game.num_actions()) {
    check_score(game, settings);
    check(settings.policy != RootPolicy::kMinigo, "search.policy", "minigo",
          "must be puct or gumbel for a search of one leaf at a time; choose one");
    path_.reserve(static_cast<size_t>(game.max_plies()) + 1);
  }

  // Starts a search of `root`. Reuses the tree that play() or stay() kept: its visits count towards
  // the request, and the center of the score utility does not change. A Gumbel search or one that
  // excludes actions always starts with an empty tree. Throws Error if the game has ended at `root`
  // or the number of simulations is out of range.
  void begin(const State& root, const SearchRequest& request) {
    check_request(game_, root, request);
    root_state_ = root;
    const bool had_all = considers_all();
    request_ = request;
    rule_.begin(request);
    const bool had_squares = keeps_squares_;
    keeps_squares_ = settings_.keeps_squares() || request.keep_squares;
    num_simulations_ = 0;
    waiting_ = false;
    at_unknown_move_ = false;
    considered_prior_ = 1.0f;
    budget_ = request.num_simulations;
    const bool keeps_scores = utility_.counts() || request.keep_scores;
    const bool can_reuse = kept_ && request.left_out.empty() && had_squares >= keeps_squares_ &&
                           had_all == considers_all();
    if (!can_reuse || tree_.keeps_scores() != keeps_scores) tree_.clear(keeps_scores);
    kept_ = asks_priors_ = false;
    if (tree_.root() == Arena::kNull) {
      tree_.set_root(tree_.add_node(game_.to_play(root)));
    } else {
      budget_ -= static_cast<int>(root_node().visits) - 1;
      // The root was evaluated as a leaf, under one symmetry, so its priors are requested again.
      asks_priors_ = settings_.root_symmetries && root_node().proof == Proof::kUnknown;
      if (!asks_priors_) rule_.prepare_root(tree_, request_, priors_.prior());
    }
  }

  // Continues the search up to `num_simulations` in total. Throws Error before begin(), if the
  // number is out of range, and for a Gumbel search, whose schedule depends on the number.
  void extend(int num_simulations) {
    if (tree_.root() == Arena::kNull || settings_.policy == RootPolicy::kGumbel) {
      throw Error("search.extend (" + std::to_string(num_simulations) +
                  ") must follow begin() of a puct search; begin one");
    }
    check_num_simulations(num_simulations);
    budget_ += num_simulations - request_.num_simulations;
    request_.num_simulations = num_simulations;
  }

  // Descends to a leaf. Returns true if the leaf needs an evaluation, false if the search has
  // ended. Throws Error before begin() and while a leaf is waiting, because a descent past that
  // leaf would reach a node without legal actions. With an external game, true may also mean that
  // the next move is unknown; see at_unknown_move().
  bool advance() {
    if (tree_.root() == Arena::kNull || waiting_) {
      throw Error(std::string("search.advance (") + (waiting_ ? "a leaf waits" : "no search") +
                  ") must follow begin() or accept(); call one of them first");
    }
    if (root_node().num_legal == 0 || asks_priors_) {
      path_.clear();
      leaf_ = tree_.root();
      leaf_state_ = root_state_;
      return waiting_ = true;
    }
    if constexpr (ExternallyPlayed<G>) {
      if (at_unknown_move_) {
        at_unknown_move_ = false;
        game_.apply(leaf_state_, last_action());
        if (add_leaf()) return waiting_ = true;
      }
    }
    while (num_simulations_ < budget_ && root_node().proof == Proof::kUnknown) {
      ++num_simulations_;
      if (descend()) {
        waiting_ = !at_unknown_move_;
        return true;
      }
    }
    return false;
  }

  // After advance() returns true: whether the descent stopped before unknown_move() instead of at a
  // leaf. The next advance() makes the move if it is still unknown. Always false for native games.
  bool at_unknown_move() const {
    if constexpr (ExternallyPlayed<G>) return at_unknown_move_;
    return false;
  }
  auto unknown_move() const
    requires ExternallyPlayed<G>
  {
    return typename G::Move{leaf_state_, last_action()};
  }

  // The number of simulations that this search has started.
  int num_simulations() const { return num_simulations_; }

  // Whether leaf() waits for accept(), or unknown_move() is still unknown.
  bool is_waiting() const {
    if constexpr (ExternallyPlayed<G>) {
      if (at_unknown_move_) return !game_.is_known(leaf_state_, last_action());
    }
    return waiting_;
  }

  // Whether leaf() is the root.
  bool at_root() const { return waiting_ && leaf_ == tree_.root(); }

  // The position to evaluate, after advance() returned true.
  const State& leaf() const { return leaf_state_; }

  // Accepts the evaluation of leaf(). The logit of action a, on any scale, is at
  // logits[transform[a]], or at logits[a] if `transform` is null. `value_to_play` is in [-1, 1].
  // `score_to_play` (mean and standard deviation in points) is ignored in a search without scores.
  void accept(const float* logits, const uint16_t* transform, float value_to_play,
              const float* score_to_play = nullptr) {
    if (!waiting_) throw Error("search.accept (no leaf) needs advance() to return true first");
    const bool is_root = leaf_ == tree_.root();
    // A leaf below the root has been listed on arrival.
    if (is_root) listed_ = priors_.list(game_, leaf_state_, considers_all());
    int n = listed_.count;
    priors_.compute(n, logits, transform, value_to_play);
    if (is_root && !considers_all()) {
      considered_prior_ = priors_.considered_prior(game_, leaf_state_, n, logits, transform);
    }
    if (!request_.left_out.empty()) {
      const int depth = static_cast<int>(path_.size());
      n = priors_.leave_out(request_.left_out, game_.to_play(leaf_state_), depth, n);
    }
    if (is_root && asks_priors_) {
      asks_priors_ = waiting_ = false;
      tree_.set_priors(leaf_, priors_.prior());
      return rule_.prepare_root(tree_, request_, priors_.prior());
    }
    Visit own{value_to_play, value_to_play, 0.0f};
    if (tree_.keeps_scores()) own = take_score(tree_.node(leaf_), value_to_play, score_to_play);
    tree_.expand(leaf_, priors_.legal(), priors_.prior(), n);
    tree_.node(leaf_).value_to_play = own.value;
    waiting_ = false;
    if (is_root) {
      tree_.add_visit(root_node(), own, true);
      rule_.prepare_root(tree_, request_, priors_.prior());
    } else {
      back_up(own);
    }
  }

  // Writes the results to `result`. Throws Error if the root is not evaluated or a leaf is waiting.
  void finish(SearchResult& result) {
    if (tree_.root() == Arena::kNull || waiting_ || root_node().num_legal == 0) {
      throw Error(
          "search.finish (no result) needs an evaluated root and no waiting leaf; advance "
          "the search first");
    }
    read_root(tree_, result);
    if (keeps_squares_) add_standard_errors(tree_, result);
    result.num_simulations = static_cast<uint32_t>(num_simulations_);
    result.considered_prior = considered_prior_;
    rule_.conclude(tree_, result);
  }

  // Call after the game continues with `action`. Keeps the subtree of `action`, if any, for the
  // next begin(). Overwrites `scratch`, which may be any tree; the searches of a thread share it.
  void play(int action, Tree& scratch) {
    if (tree_.root() == Arena::kNull) return;
    // A Gumbel schedule needs an empty tree, and the next search may exclude other actions.
    if (settings_.policy == RootPolicy::kGumbel || !request_.left_out.empty()) return reset();
    const Node& root = root_node();
    const Edges edges = tree_.edges(root);
    for (int i = 0; i < root.num_edges; ++i) {
      if (tree_.actions(root)[edges.legal_index[i]] != action) continue;
      if (tree_.node(edges.child[i]).num_legal == 0) break;
      scratch.adopt(tree_, edges.child[i]);
      std::swap(tree_, scratch);
      kept_ = true;
      return;
    }
    reset();
  }

  // Call if the next begin() is for the same position. Keeps the tree, if any, for that search.
  void stay() {
    const bool is_there = tree_.root() != Arena::kNull && root_node().num_legal > 0;
    const bool can_stay = settings_.policy == RootPolicy::kPuct && request_.left_out.empty();
    if (!is_there || !can_stay) return reset();
    kept_ = true;
  }

  // Drops the tree and any waiting leaf.
  void reset() {
    tree_.clear();
    kept_ = false;
    asks_priors_ = false;
    waiting_ = false;
    at_unknown_move_ = false;
  }

  const Tree& tree() const { return tree_; }

 private:
  struct Step {
    Arena::Offset node;
    int edge;
  };

  // With excluded actions, what the rules prove could depend on one of them.
  bool considers_all() const { return request_.considers_all || !request_.left_out.empty(); }

  Node& root_node() { return tree_.node(tree_.root()); }

  // Performs one descent. Returns true if the leaf waits for an evaluation or the move to the leaf
  // is unknown, false if the descent ended in a known value and backed it up.
  bool descend() {
    path_.clear();
    leaf_state_ = root_state_;
    Arena::Offset current = tree_.root();
    for (;;) {
      const int edge = rule_.select(tree_, current, num_simulations_ - 1);
      const Node& node = tree_.node(current);
      const Edges edges = tree_.edges(node);
      const int action = tree_.actions(node)[edges.legal_index[edge]];
      path_.push_back({current, edge});
      if constexpr (ExternallyPlayed<G>) {
        if (edges.child[edge] == Arena::kNull && !game_.is_known(leaf_state_, action)) {
          return at_unknown_move_ = true;
        }
      }
      game_.apply(leaf_state_, action);
      if (edges.child[edge] == Arena::kNull) return add_leaf();
      current = edges.child[edge];
      if (tree_.node(current).proof != Proof::kUnknown) {
        leaf_ = current;
        back_up(settled(tree_.node(current)));
        return false;
      }
    }
  }

  // Adds a node for leaf_state_ at the end of the path. Returns the same as descend().
  bool add_leaf() {
    const Outcome outcome = game_.outcome(leaf_state_);
    const int to_play = game_.to_play(leaf_state_);
    const Step last = path_.back();
    leaf_ = tree_.add_node(to_play);
    tree_.edges(tree_.node(last.node)).child[last.edge] = leaf_;
    if (outcome == Outcome::kOngoing) {
      listed_ = priors_.list(game_, leaf_state_, considers_all());
      tree_.node(leaf_).proof = Priors::proof_of<G>(listed_);
      if (tree_.node(leaf_).proof == Proof::kUnknown) return true;
      back_up(settled(tree_.node(leaf_)));
      return false;
    }
    const float value = to_play == 0 ? value_to_first(outcome) : -value_to_first(outcome);
    Node& leaf = tree_.node(leaf_);
    leaf.proof = value > 0 ? Proof::kWin : value < 0 ? Proof::kLoss : Proof::kDraw;
    if (tree_.keeps_scores()) tree_.score_of(leaf).score_to_play = final_score(game_, leaf_state_);
    back_up(settled(leaf));
    return false;
  }

  uint16_t last_action() const {
    const Node& node = tree_.node(path_.back().node);
    return tree_.actions(node)[tree_.edges(node).legal_index[path_.back().edge]];
  }

  template <bool kScores>
  Visit settled(const Node& node) const {
    if constexpr (kScores) return utility_.settled(tree_, node, node.proof);
    return {proof_value(node.proof), proof_value(node.proof), 0.0f};
  }
  Visit settled(const Node& node) const {
    return tree_.keeps_scores() ? settled<true>(node) : settled<false>(node);
  }

  // Stores the leaf's score; centers the utility on it if the leaf is the root. Returns the visit.
  Visit take_score(Node& leaf, float value, const float* score) {
    put_score(tree_.score_of(leaf), value, score);
    if constexpr (HasScore<G>) {
      if (leaf_ == tree_.root()) {
        utility_.center(game_.num_points(root_state_), leaf.to_play == 0 ? score[0] : -score[0]);
      }
    }
    return utility_.evaluated(leaf, value, score);
  }

  // Adds the leaf's visit to every node and edge of the path, and updates proofs.
  void back_up(const Visit& visit) {
    tree_.keeps_scores() ? add_to_path<true>(visit) : add_to_path<false>(visit);
  }

  // Adds a visit to the path. A template, so that searches without scores do not pay for them.
  template <bool kScores>
  void add_to_path(Visit visit) {
    Node* child = &tree_.node(leaf_);
    tree_.add_visit<kScores>(*child, visit, keeps_squares_);
    for (size_t i = path_.size(); i-- > 0;) {
      Node& node = tree_.node(path_[i].node);
      const Edges edges = tree_.edges(node);
      const int edge = path_[i].edge;
      const bool same_player = child->to_play == node.to_play;
      if (!same_player) visit = -visit;
      edges.visits[edge] += 1.0f;
      const Proof proof = proof_for(node, *child);
      if (proof == Proof::kUnknown) {
        edges.value_sum[edge] = static_cast<float>(value_for(node, *child, child->value_sum));
      } else {
        edges.value_sum[edge] =
            settled_sum(node, *child, proof, settled<kScores>(*child).value, edges.visits[edge]);
        const auto proof_of = [&](const Node& one) { return proof_for(node, one); };
        node.proof = prove(tree_, node, proof, proof_of);
        if (node.proof != Proof::kUnknown) {
          if constexpr (kScores) {
            tree_.score_of(node).score_to_play = proven_score(tree_, node, node.proof, proof_of);
          }
          visit = settled<kScores>(node);
        }
      }
      tree_.add_visit<kScores>(node, visit, keeps_squares_);
      child = &node;
    }
  }

  const G& game_;
  SearchSettings settings_;
  bool keeps_squares_ = false;  // summing squared values costs 2 % of a search's time
  ScoreUtility utility_;
  SearchRule rule_;
  Tree tree_;
  SearchRequest request_;
  State root_state_{};
  State leaf_state_{};
  Arena::Offset leaf_ = Arena::kNull;
  Decisive listed_;                // the actions of leaf_, in priors_
  float considered_prior_ = 1.0f;  // see SearchResult
  int num_simulations_ = 0;
  int budget_ = 0;
  bool waiting_ = false;
  bool at_unknown_move_ = false;
  bool asks_priors_ = false;  // whether the root of a reused tree waits for new priors
  bool kept_ = false;         // whether play() or stay() kept the tree for the next root
  std::vector<Step> path_;
  Priors priors_;
};

}  // namespace tengen
