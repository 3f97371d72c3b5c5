#pragma once
// The search of the MLPerf benchmark minigo: several leaves of one tree are evaluated in a batch.
//
//   search.begin(state, request);
//   while (search.advance()) {                      // num_leaves() leaves need an evaluation
//     for (i = 0; i < search.num_leaves(); ++i)
//       evaluate(search.leaf(i)) -> logits, value
//       search.accept(i, logits, transform, value);
//   }
//   search.finish(result);
//
// Source: MLPerf training v2.1, minigo; minigo_rule.h has the selection rule.
// Each waiting descent puts a virtual loss on every edge of its path (Chaslot et al. 2008,
// "Parallel Monte-Carlo tree search"). A batch ends after `minigo_virtual_losses` descents; their
// values are then backed up in the order of the descents. A descent to a node that is already
// waiting counts towards the batch but is not backed up. A descent to a finished game backs up its
// result immediately; nothing is proven.
//
// Differs from the benchmark: a leaf with a cached evaluation waits for its batch like any other
// leaf, so that a search is a pure function of its state, tree, request, settings and evaluations.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "games/game.h"
#include "search/check_request.h"
#include "search/evaluation/priors.h"
#include "search/evaluation/root_noise.h"
#include "search/minigo/minigo_rule.h"
#include "search/result.h"
#include "search/settings.h"
#include "search/tree/tree.h"

namespace tengen {

// Whether the game has a pass, which is then its last action.
template <Game G>
bool has_pass(const G& game) {
  return game.policy_layout() == PolicyLayout::kCellsAndPass;
}

// A search with minigo's rule. Externally synchronised; nothing blocks. `game` must outlive it.
template <Game G>
  requires(!ExternallyPlayed<G>)
class MinigoSearch {
 public:
  using State = typename G::State;

  // Without `may_pass` no descent passes while another action is legal, and a pass is never the
  // best action; the pass still has its prior and its share of the noise.
  MinigoSearch(const G& game, const SearchSettings& settings, bool may_pass = true)
      : game_(game),
        settings_(settings),
        rule_(settings),
        barred_(!may_pass && has_pass(game) ? game.num_actions() - 1 : kNone),
        leaves_(static_cast<size_t>(settings.minigo_virtual_losses)),
        descents_(leaves_.size()),
        priors_(game.num_actions()),
        noise_(static_cast<size_t>(game.num_actions())) {}

  // Starts a search of `root` that performs the request's simulations, including the root's own
  // evaluation, in addition to those in the tree that play() kept. symmetry_seed() returns
  // `symmetry_seed`. Throws Error like Search::begin(), and if the request excludes actions.
  void begin(const State& root, const SearchRequest& request, uint64_t symmetry_seed = 0) {
    check_request(game_, root, request);
    check(request.left_out.empty(), "request.left_out", request.left_out.size(),
          "must be empty for policy minigo; use puct");
    if (kept_) check_num_simulations(static_cast<int>(root_visits()) + request.num_simulations);
    root_state_ = root;
    request_ = request;
    symmetry_seed_ = symmetry_seed;
    num_simulations_ = 0;
    num_leaves_ = num_answered_ = 0;
    num_descents_ = 0;
    if (!kept_) {
      tree_.clear();
      tree_.set_root(tree_.add_node(game_.to_play(root)));
      root_node().value_sum = bare_value_;
    }
    kept_ = false;
    bare_value_ = 0.0f;
    wants_noise_ = request.explore;
    wanted_visits_ = root_node().visits + static_cast<uint32_t>(request.num_simulations);
  }

  // Descends until a batch is full. Returns true if leaves need an evaluation, false if the search
  // has ended. Throws Error before begin() and while leaves are waiting.
  bool advance() {
    if (tree_.root() == Arena::kNull || is_waiting()) {
      throw Error(std::string("search.advance (") + (is_waiting() ? "leaves wait" : "no search") +
                  ") must follow begin() or accept(); call one of them first");
    }
    while (root_node().visits < wanted_visits_) {
      gather();
      if (is_waiting()) return true;
    }
    return false;
  }

  // Whether leaves of the batch wait for accept().
  bool is_waiting() const { return num_answered_ < num_leaves_; }

  // The number of leaves of this batch, which all need an evaluation, and their positions.
  int num_leaves() const { return num_leaves_; }
  const State& leaf(int index) const { return leaves_[static_cast<size_t>(index)].state; }

  // The seed that, with the position, determines a leaf's symmetry; if 0, the position alone does.
  uint64_t symmetry_seed() const { return symmetry_seed_; }

  // Accepts the evaluation of leaf(index), like Search::accept(). The last one backs up the batch.
  void accept(int index, const float* logits, const uint16_t* transform, float value_to_play) {
    check(is_waiting(), "search.accept", index, "needs advance() to return true first");
    const Leaf& leaf = leaves_[static_cast<size_t>(index)];
    const int n = priors_.list(game_, leaf.state, true).count;
    priors_.compute(n, logits, transform, value_to_play);
    tree_.expand(leaf.node, priors_.legal(), priors_.prior(), n);
    tree_.node(leaf.node).value_to_play = value_to_play;
    if (++num_answered_ == num_leaves_) back_up_batch();
  }

  // The number of simulations that this search has started.
  int num_simulations() const { return num_simulations_; }

  // Writes the results: visits and Q of every legal action, the most visited action, and as
  // `policy` the normalised visits without those caused only by noise, or the priors if no action
  // has a visit. Throws Error before the root is evaluated and while leaves are waiting.
  void finish(SearchResult& result) {
    if (tree_.root() == Arena::kNull || is_waiting() || root_node().num_legal == 0) {
      throw Error(
          "search.finish (no result) needs an evaluated root and no waiting leaves; advance the "
          "search first");
    }
    read_root(result);
    // most_visited() is not null, because at least one action is allowed.
    const ActionResult* best = most_visited(result, [](int) { return false; });
    result.best_action = best->action;
    rule_.prune(root_node().visits, *best, result);
    float total = 0.0f;
    for (const ActionResult& a : result.actions) total += a.policy;
    for (ActionResult& a : result.actions) a.policy = total > 0.0f ? a.policy / total : a.prior;
  }

  // The most visited allowed action of a result of finish(); see MinigoRule::most_visited().
  template <class IsOut>
  const ActionResult* most_visited(const SearchResult& result, IsOut&& is_out) const {
    const bool is_only = result.actions.size() == 1;
    return rule_.most_visited(tree_.node(tree_.root()).visits, result, [&](int action) {
      return (action == barred_ && !is_only) || is_out(action);
    });
  }

  // Whether descents may pass while another action is legal.
  bool may_pass() const { return barred_ == kNone; }

  // Call after the move `action`. The next begin() reuses its subtree or, if no descent took it,
  // the root's initial value for it. Overwrites `scratch`, which may be any tree.
  void play(int action, Tree& scratch) {
    if (tree_.root() == Arena::kNull || root_node().num_legal == 0) return reset();
    game_.apply(root_state_, action);  // another play() may precede the next begin()
    const Node& root = root_node();
    const Edges edges = tree_.edges(root);
    for (int i = 0; i < root.num_edges; ++i) {
      if (tree_.actions(root)[edges.legal_index[i]] != action) continue;
      scratch.adopt(tree_, edges.child[i]);
      std::swap(tree_, scratch);
      kept_ = true;
      return;
    }
    const float value = rule_.first_value(root);
    const bool is_same_side = game_.to_play(root_state_) == root.to_play;
    reset();
    bare_value_ = is_same_side ? value : -value;
  }

  // The visits of this search's root or, after play(), of the next search's root.
  uint32_t root_visits() const {
    return tree_.root() == Arena::kNull ? 0 : tree_.node(tree_.root()).visits;
  }

  // Drops the tree, the state kept by play(), and waiting leaves.
  void reset() {
    tree_.clear();
    kept_ = false;
    num_leaves_ = num_answered_ = 0;
    bare_value_ = 0.0f;
  }

  const Tree& tree() const { return tree_; }

 private:
  struct Step {
    Arena::Offset node;
    int edge;
    bool operator==(const Step&) const = default;
  };
  struct Leaf {
    State state{};
    Arena::Offset node = Arena::kNull;
  };
  // A waiting descent: its path and leaf index; kNoLeaf if another descent waits for the leaf.
  struct Descent {
    std::vector<Step> path;
    int leaf = kNoLeaf;
  };
  static constexpr int kNoLeaf = -1;
  static constexpr int kNone = -1;  // no action

  Node& root_node() { return tree_.node(tree_.root()); }

  // Performs the descents of a batch. If all descents end in finished games, no leaf waits.
  void gather() {
    num_leaves_ = num_answered_ = 0;
    num_descents_ = 0;
    if (root_node().num_legal == 0) {
      leaves_[0].state = root_state_;
      leaves_[0].node = tree_.root();
      descents_[0].path.clear();
      wait_for_leaf();
      return;
    }
    if (wants_noise_) add_noise();
    while (num_descents_ < descents_.size() && root_node().visits < wanted_visits_) descend();
  }

  void add_noise() {
    wants_noise_ = false;
    const Node& root = root_node();
    const int n = root.num_legal;
    read_priors(tree_, root, priors_.prior());
    std::fill_n(noise_.data(), n, static_cast<double>(settings_.minigo_noise_alpha));
    Rng rng(request_.seed, request_.generation, request_.game, request_.ply, Purpose::kRootNoise);
    mix_noise(priors_.prior(), n, settings_.noise_weight, rng, noise_.data());
    tree_.set_priors(tree_.root(), priors_.prior());
  }

  void descend() {
    Descent& descent = descents_[num_descents_];
    std::vector<Step>& path = descent.path;
    path.clear();
    // If this descent yields no leaf, the next descent reuses the slot.
    Leaf& leaf = leaves_[static_cast<size_t>(num_leaves_)];
    leaf.state = root_state_;
    Arena::Offset current = tree_.root();
    do {
      const int edge = take_edge(current);
      const Node& node = tree_.node(current);
      const Edges edges = tree_.edges(node);
      path.push_back({current, edge});
      game_.apply(leaf.state, tree_.actions(node)[edges.legal_index[edge]]);
      Arena::Offset child = edges.child[edge];
      if (child == Arena::kNull) child = add_child(path.back(), leaf.state);
      current = child;
    } while (tree_.node(current).num_legal > 0);
    if (tree_.node(current).proof != Proof::kUnknown) {
      ++num_simulations_;
      back_up(path, current, proof_value(tree_.node(current).proof));
    } else if (is_among_leaves(current)) {
      descent.leaf = kNoLeaf;
      ++num_descents_;
    } else {
      leaf.node = current;
      wait_for_leaf();
    }
    write_sums(path);
  }

  // Returns the edge to descend, and creates it if it is new.
  int take_edge(Arena::Offset offset) {
    const NewEdge next = next_edge(tree_.node(offset));
    const int edge = rule_.select(tree_, tree_.node(offset), next);
    if (edge != kNewEdge) return edge;
    const int made = tree_.add_edge(offset, next.place);
    const Node& node = tree_.node(offset);
    tree_.edges(node).value_sum[made] = rule_.first_value(node);
    return made;
  }

  // Returns the allowed action without an edge that has the highest prior.
  NewEdge next_edge(const Node& node) {
    const int last = node.num_legal - 1;
    if (node.num_edges > last) return {};
    if (barred_ == kNone || last == 0 || tree_.actions(node)[last] != barred_) {
      return {node.next_index, node.next_prior};
    }
    if (node.num_edges == last) return {};
    const int place = simd::kernels().argmax(tree_.priors(node), last);
    return {place, tree_.priors(node)[place]};
  }

  // Creates the node at the end of an edge; `state` is its position.
  Arena::Offset add_child(const Step& step, const State& state) {
    const int to_play = game_.to_play(state);
    const Arena::Offset child = tree_.add_node(to_play);
    const Node& parent = tree_.node(step.node);
    tree_.edges(parent).child[step.edge] = child;
    const float value = rule_.first_value(parent);
    Node& node = tree_.node(child);
    node.value_sum = to_play == parent.to_play ? value : -value;
    const Outcome outcome = game_.outcome(state);
    if (outcome != Outcome::kOngoing) {
      const float result = to_play == 0 ? value_to_first(outcome) : -value_to_first(outcome);
      node.proof = result > 0 ? Proof::kWin : result < 0 ? Proof::kLoss : Proof::kDraw;
    }
    return child;
  }

  bool is_among_leaves(Arena::Offset node) const {
    for (int i = 0; i < num_leaves_; ++i) {
      if (leaves_[static_cast<size_t>(i)].node == node) return true;
    }
    return false;
  }

  // Makes the current descent wait for the evaluation of the leaf in the next slot.
  void wait_for_leaf() {
    descents_[num_descents_++].leaf = num_leaves_++;
    ++num_simulations_;
  }

  void back_up_batch() {
    for (size_t i = 0; i < num_descents_; ++i) {
      const Descent& descent = descents_[i];
      if (descent.leaf == kNoLeaf) continue;
      const Arena::Offset node = leaves_[static_cast<size_t>(descent.leaf)].node;
      back_up(descent.path, node, tree_.node(node).value_to_play);
    }
    const size_t num_descents = std::exchange(num_descents_, 0);
    for (size_t i = 0; i < num_descents; ++i) write_sums(descents_[i].path);
  }

  // Adds a visit to the leaf and the path; `value` is for the side to play at `leaf`. write_sums()
  // updates the value sums of the edges.
  void back_up(const std::vector<Step>& path, Arena::Offset leaf, float value) {
    Node* child = &tree_.node(leaf);
    add_visit(*child, value);
    for (size_t i = path.size(); i-- > 0;) {
      Node& node = tree_.node(path[i].node);
      if (child->to_play != node.to_play) value = -value;
      tree_.edges(node).visits[path[i].edge] += 1.0f;
      add_visit(node, value);
      child = &node;
    }
  }

  // Sets each edge's value sum to its child's minus a virtual loss for each waiting descent.
  // Repeated float additions and subtractions would lose small values after millions of visits.
  void write_sums(const std::vector<Step>& path) {
    for (size_t depth = 0; depth < path.size(); ++depth) {
      const Step& step = path[depth];
      double num_losses = 0.0;
      for (size_t i = 0; i < num_descents_; ++i) {
        const std::vector<Step>& other = descents_[i].path;
        num_losses += depth < other.size() && other[depth] == step;
      }
      const Node& node = tree_.node(step.node);
      const Edges edges = tree_.edges(node);
      const Node& child = tree_.node(edges.child[step.edge]);
      edges.value_sum[step.edge] =
          static_cast<float>(value_for(node, child, child.value_sum) - num_losses);
    }
  }

  static void add_visit(Node& node, float value) {
    node.visits += 1;
    node.value_sum += value;
  }

  // Fills `result` except best_action and the policy target.
  void read_root(SearchResult& result) {
    const Node& root = root_node();
    const float* prior = tree_.priors(root);
    const uint16_t* actions = tree_.actions(root);
    result.actions.assign(root.num_legal, ActionResult{});
    for (int i = 0; i < root.num_legal; ++i) {
      ActionResult& a = result.actions[static_cast<size_t>(i)];
      a.action = actions[i];
      a.prior = prior[i];
      a.value_to_play = rule_.first_value(root);
    }
    const Edges edges = tree_.edges(root);
    for (int i = 0; i < root.num_edges; ++i) {
      ActionResult& a = result.actions[edges.legal_index[i]];
      a.prior = edges.prior[i];
      a.visits = static_cast<uint32_t>(edges.visits[i]);
      a.value_to_play = edges.value_sum[i] / (1.0f + edges.visits[i]);
    }
    for (ActionResult& a : result.actions) a.utility_to_play = a.value_to_play;
    result.root_value_to_play = root.value_sum / (1.0f + static_cast<float>(root.visits));
    result.network_value_to_play = root.value_to_play;
    result.num_simulations = static_cast<uint32_t>(num_simulations_);
    result.proof = Proof::kUnknown;
    result.has_scores = false;
  }

  const G& game_;
  SearchSettings settings_;
  MinigoRule rule_;
  Tree tree_;
  SearchRequest request_;
  State root_state_{};
  const int barred_;         // the pass, if it is allowed only without another legal action
  float bare_value_ = 0.0f;  // W of the next root before its evaluation, if no tree is kept
  bool kept_ = false;        // whether play() kept the tree for the next root
  bool wants_noise_ = false;
  uint32_t wanted_visits_ = 0;  // the root's visits at the end of the search
  int num_simulations_ = 0;
  uint64_t symmetry_seed_ = 0;
  std::vector<Leaf> leaves_;
  int num_leaves_ = 0;
  int num_answered_ = 0;
  std::vector<Descent> descents_;  // waiting descents
  size_t num_descents_ = 0;
  Priors priors_;
  std::vector<double> noise_;
};

}  // namespace tengen
