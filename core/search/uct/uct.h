#pragma once
// UCT with uniformly random playouts: the fixed opponent `mcts:N`. Source: Kocsis and Szepesvari
// 2006, "Bandit based Monte-Carlo planning"; one playout per simulation, c = 1.4, rewards in [-1,
// 1] for the player to move, no tree reuse.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "games/game.h"

namespace tengen {

template <Game G>
class Uct {
 public:
  using State = typename G::State;

  Uct(const G& game, int num_playouts) : game_(game), num_playouts_(num_playouts) {
    legal_.resize(static_cast<size_t>(game.num_actions()));
  }

  // Returns the most visited action after num_playouts playouts. Ties go to the better value, then
  // to a random action, so that a search with few playouts does not prefer the first cells. Throws
  // Error if the game has ended.
  int choose(const State& root, Rng rng) {
    if (game_.outcome(root) != Outcome::kOngoing) {
      throw Error("root (after " + std::to_string(game_.ply(root)) +
                  " plies) must not be finished; request moves before the end");
    }
    nodes_.clear();
    nodes_.push_back({});
    expand(0, root, rng);
    for (int playout = 0; playout < num_playouts_; ++playout) simulate(root, rng);
    const Item& top = nodes_[0];
    int best = top.first_child;
    for (int i = top.first_child; i < top.first_child + top.num_children; ++i) {
      const Item& child = nodes_[static_cast<size_t>(i)];
      const Item& leader = nodes_[static_cast<size_t>(best)];
      // Remaining ties go to the first child, because the children are in random order.
      if (child.visits > leader.visits ||
          (child.visits == leader.visits && child.value_sum > leader.value_sum)) {
        best = i;
      }
    }
    return nodes_[static_cast<size_t>(best)].action;
  }

 private:
  struct Item {
    int first_child = 0;
    int num_children = 0;
    uint32_t visits = 0;
    float value_sum = 0.0f;  // for the player whose move led to this node
    uint16_t action = 0;
  };

  // Adds the children in random order, so that unvisited children are tried in random order.
  void expand(size_t index, const State& state, Rng& rng) {
    const int n = game_.legal_actions(state, legal_.data());
    for (int i = n - 1; i > 0; --i) {
      std::swap(legal_[static_cast<size_t>(i)], legal_[rng.below(static_cast<uint32_t>(i) + 1)]);
    }
    nodes_[index].first_child = static_cast<int>(nodes_.size());
    nodes_[index].num_children = n;
    for (int i = 0; i < n; ++i) {
      nodes_.push_back({});
      nodes_.back().action = legal_[static_cast<size_t>(i)];
    }
  }

  size_t select(const Item& node) const {
    const double log_visits = std::log(static_cast<double>(node.visits));
    size_t best = static_cast<size_t>(node.first_child);
    double best_score = 0.0;
    for (int i = 0; i < node.num_children; ++i) {
      const size_t index = static_cast<size_t>(node.first_child + i);
      const Item& child = nodes_[index];
      if (child.visits == 0) return index;
      const double score =
          child.value_sum / child.visits + kExploration * std::sqrt(log_visits / child.visits);
      if (i == 0 || score > best_score) {
        best_score = score;
        best = index;
      }
    }
    return best;
  }

  void simulate(const State& root, Rng& rng) {
    State state = root;
    path_.clear();
    path_.push_back({0, 1 - game_.to_play(root)});
    while (game_.outcome(state) == Outcome::kOngoing) {
      const size_t index = path_.back().node;
      if (nodes_[index].num_children == 0) {
        if (nodes_[index].visits == 0) break;
        expand(index, state, rng);
      }
      const size_t next = select(nodes_[index]);
      path_.push_back({next, game_.to_play(state)});
      game_.apply(state, nodes_[next].action);
    }
    const float value = value_to_first(play_out(state, rng));
    for (const Visit& visit : path_) {
      nodes_[visit.node].visits += 1;
      nodes_[visit.node].value_sum += visit.mover == 0 ? value : -value;
    }
  }

  Outcome play_out(State& state, Rng& rng) {
    while (game_.outcome(state) == Outcome::kOngoing) {
      if constexpr (ExternallyPlayed<G>) return game_.playout(state, rng);
      const int n = game_.legal_actions(state, legal_.data());
      game_.apply(state, legal_[rng.below(static_cast<uint32_t>(n))]);
    }
    return game_.outcome(state);
  }

  struct Visit {
    size_t node;
    int mover;  // the player whose move led to the node
  };

  static constexpr double kExploration = 1.4;

  const G& game_;
  int num_playouts_;
  std::vector<Item> nodes_;
  std::vector<Visit> path_;
  std::vector<uint16_t> legal_;
};

}  // namespace tengen
