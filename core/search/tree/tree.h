#pragma once
// The search tree: nodes, their legal actions and the edges visited so far, all in one arena.
//
// A node stores its legal actions with their priors, in ascending order of action. An edge is
// created at its first visit. All unvisited children of a node share one value (FPU, or the
// completed Q), so the best of them is the one with the largest prior. Selection therefore compares
// only the edges and that child, not all legal actions.
//
// Values in a tree are the utility that its search maximises: win minus loss, optionally plus a
// function of the score (search/evaluation/score_utility.h). A tree with scores stores both parts.
//
// The same layout serves single-threaded and shared trees; in a shared tree nodes have a lock and
// edges count the descents in flight.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/spin_lock.h"
#include "search/proof.h"
#include "search/tree/arena.h"
#include "search/tree/shared_arena.h"
#include "simd/kernels.h"

namespace tengen {

struct Node {
  Arena::Offset legal = Arena::kNull;  // float prior[num_legal], then uint16_t action[num_legal]
  Arena::Offset edges = Arena::kNull;  // the edge block, see Edges
  uint32_t visits = 0;                 // the node's evaluation plus every descent through the node
  float value_to_play = 0.0f;          // the evaluator's value
  double value_sum = 0.0;              // for the side to play
  double value_square_sum = 0.0;       // sum of squared values, if the search keeps squares
  float visited_prior = 0.0f;          // prior mass of the edges, in order of creation
  float next_prior = -1.0f;            // the largest prior of an action without an edge; -1 if none
  uint16_t next_index = 0;             // index of the action of next_prior among the legal actions
  // The number of actions to consider, all legal; 0 if the node is not expanded or is settled.
  uint16_t num_legal = 0;
  uint16_t num_edges = 0;
  uint16_t capacity = 0;
  Proof proof = Proof::kUnknown;
  uint8_t to_play = 0;

  double mean_value() const { return value_sum / visits; }
  double mean_square() const { return value_square_sum / visits; }
};

// Converts a value of `child` to the view of the side to play at `node`; never minus zero.
inline double value_for(const Node& node, const Node& child, double value) {
  return child.to_play == node.to_play ? value : 0.0 - value;
}

// The amounts that a visit adds to a node, for the node's side to play.
struct Visit {
  float value;
  float win_loss;
  float score;  // points; undefined, like win_loss, in a tree without scores

  Visit operator-() const { return {-value, -win_loss, -score}; }
};

// A node's values in a tree with scores, for the side to play; stored after the node.
struct NodeScore {
  double win_loss_sum = 0.0;
  double score_sum = 0.0;         // points
  float win_loss_to_play = 0.0f;  // the evaluator's value
  float score_to_play = 0.0f;     // the evaluator's score, or the score of the proving line
};

// A node that several threads visit. The lock protects all fields and blocks of the node; `proof`
// is also read without the lock; see Descent.
struct SharedNode : Node {
  SpinLock lock;
  uint32_t in_flight = 0;  // the sum of the edges' in_flight
};

// The columns of a node's edge block. Values are for the side to play at the node. The value sum of
// an edge that is proven lost is minus infinity, so that selection avoids it.
//
// `value_sum` is a float for the kernels. It is rounded from a double at each visit, because a
// float sum of a million visits would lose the third digit. In a single-threaded tree the child has
// the double. In a shared tree the child may be ahead of the edge, so the edge has its own.
struct Edges {
  float* prior;
  float* visits;
  float* value_sum;
  float* in_flight;   // descents in flight through the edge; null in a single-threaded tree
  double* exact_sum;  // exact sum, or null like in_flight; undefined after the child is proven
  Arena::Offset* child;
  uint16_t* legal_index;
};

// A search tree. Memory is an Arena, or one thread's cursor in a SharedArena.
template <class Memory>
class BasicTree {
 public:
  static constexpr bool kShared = Memory::kShared;
  using Node = std::conditional_t<kShared, SharedNode, tengen::Node>;

  BasicTree() = default;
  explicit BasicTree(Memory memory) : arena_(std::move(memory)) {}

  void clear(bool keeps_scores = false) {
    arena_.clear();
    root_ = Arena::kNull;
    keeps_scores_ = keeps_scores;
  }

  // Whether nodes have a NodeScore.
  bool keeps_scores() const { return keeps_scores_; }

  Arena::Offset root() const { return root_; }
  void set_root(Arena::Offset node) { root_ = node; }
  Node& node(Arena::Offset offset) { return *at<Node>(offset); }
  const Node& node(Arena::Offset offset) const { return *at<Node>(offset); }
  size_t used_bytes() const { return arena_.used_bytes(); }

  // Returns the scores of a node. Precondition: the tree keeps scores, and the node belongs to it.
  NodeScore& score_of(tengen::Node& n) const {
    return *reinterpret_cast<NodeScore*>(reinterpret_cast<char*>(&n) + kScorePlace);
  }
  const NodeScore& score_of(const tengen::Node& n) const {
    return score_of(const_cast<tengen::Node&>(n));
  }

  Arena::Offset add_node(int to_play) {
    const Arena::Offset offset = allocate_node();
    Node& made = *new (at<Node>(offset)) Node();
    made.to_play = static_cast<uint8_t>(to_play);
    if (keeps_scores_) new (&score_of(made)) NodeScore();
    return offset;
  }

  // Adds a visit to a node. kScores equals keeps_scores(), which callers check once per path.
  template <bool kScores>
  void add_visit(Node& n, const Visit& visit, bool keeps_squares) {
    n.visits += 1;
    n.value_sum += visit.value;
    if (keeps_squares) n.value_square_sum += static_cast<double>(visit.value) * visit.value;
    if constexpr (kScores) {
      NodeScore& score = score_of(n);
      score.win_loss_sum += visit.win_loss;
      score.score_sum += visit.score;
    }
  }
  void add_visit(Node& n, const Visit& visit, bool keeps_squares) {
    keeps_scores_ ? add_visit<true>(n, visit, keeps_squares)
                  : add_visit<false>(n, visit, keeps_squares);
  }

  float* priors(const Node& n) { return at<float>(n.legal); }
  const float* priors(const Node& n) const { return at<float>(n.legal); }
  uint16_t* actions(const Node& n) {
    return reinterpret_cast<uint16_t*>(at<float>(n.legal) + n.num_legal);
  }
  const uint16_t* actions(const Node& n) const {
    return reinterpret_cast<const uint16_t*>(at<float>(n.legal) + n.num_legal);
  }

  Edges edges(const Node& n) { return columns(at<float>(n.edges), n.capacity); }
  Edges edges(const Node& n) const {
    return columns(const_cast<float*>(at<float>(n.edges)), n.capacity);
  }

  // Expands the node with copies of its `num_legal` >= 1 legal actions and their priors.
  void expand(Arena::Offset offset, const uint16_t* legal, const float* prior, int num_legal) {
    const Arena::Offset block = arena_.allocate(block_bytes(num_legal, kLegalBytes, 1));
    Node& n = node(offset);
    n.legal = block;
    n.num_legal = static_cast<uint16_t>(num_legal);
    std::memcpy(priors(n), prior, static_cast<size_t>(num_legal) * sizeof(float));
    std::memcpy(actions(n), legal, static_cast<size_t>(num_legal) * sizeof(uint16_t));
    find_next(n);
  }

  // Creates the edge for the unvisited legal action at `legal_index`; returns the edge's index. The
  // caller attaches the child. The prior moves from the legal actions to the edge.
  int add_edge(Arena::Offset offset, int legal_index) {
    if (node(offset).num_edges == node(offset).capacity) grow_edges(offset);
    Node& n = node(offset);
    const Edges e = edges(n);
    const int index = n.num_edges++;
    float& prior = priors(n)[legal_index];
    e.prior[index] = prior;
    e.visits[index] = 0.0f;
    e.value_sum[index] = 0.0f;
    if constexpr (kShared) {
      e.in_flight[index] = 0.0f;
      e.exact_sum[index] = 0.0;
    }
    e.child[index] = Arena::kNull;
    e.legal_index[index] = static_cast<uint16_t>(legal_index);
    n.visited_prior += prior;
    prior = kVisited;
    find_next(n);
    return index;
  }

  // Replaces the priors of an expanded node and keeps its edges.
  void set_priors(Arena::Offset offset, const float* prior) {
    Node& n = node(offset);
    std::memcpy(priors(n), prior, n.num_legal * sizeof(float));
    const Edges e = edges(n);
    n.visited_prior = 0.0f;
    for (int i = 0; i < n.num_edges; ++i) {
      const int place = e.legal_index[i];
      e.prior[i] = prior[place];
      n.visited_prior += prior[place];
      priors(n)[place] = kVisited;
    }
    find_next(n);
  }

  // Replaces this tree with a copy of the subtree at `from` in `other`, without descents in flight.
  void adopt(const BasicTree& other, Arena::Offset from) {
    clear(other.keeps_scores());
    root_ = copy(other, from);
  }

 private:
  static constexpr int kFirstCapacity = 4;
  static constexpr size_t kScorePlace = (sizeof(Node) + 7) / 8 * 8;
  static constexpr float kVisited = -1.0f;  // replaces the prior of an action with an edge
  static constexpr int kFloatColumns = kShared ? 4 : 3;
  static constexpr size_t kEdgeBytes = kFloatColumns * sizeof(float) +
                                       (kShared ? sizeof(double) : 0) + sizeof(Arena::Offset) +
                                       sizeof(uint16_t);
  static constexpr size_t kLegalBytes = sizeof(float) + sizeof(uint16_t);

  // Returns the size of a block of `count` items that starts with columns of floats. In a shared
  // tree a kernel's full-vector read of the last float column must end inside the block, because
  // the memory after the block may belong to another thread.
  static size_t block_bytes(int count, size_t item_bytes, int num_columns) {
    const auto n = static_cast<size_t>(count);
    if constexpr (!kShared) return n * item_bytes;
    const size_t before = static_cast<size_t>(num_columns - 1) * n;
    const size_t last = (n + simd::kLanes - 1) / simd::kLanes * simd::kLanes;
    return std::max(n * item_bytes, (before + last) * sizeof(float));
  }

  template <class T>
  T* at(Arena::Offset offset) {
    return arena_.template at<T>(offset);
  }
  template <class T>
  const T* at(Arena::Offset offset) const {
    return arena_.template at<T>(offset);
  }

  Arena::Offset allocate_node() {
    return arena_.allocate(keeps_scores_ ? kScorePlace + sizeof(NodeScore) : sizeof(Node));
  }

  static Edges columns(float* block, int capacity) {
    float* after = block + kFloatColumns * capacity;
    double* exact_sum = nullptr;
    if constexpr (kShared) {  // after four columns of floats, doubles are aligned
      exact_sum = reinterpret_cast<double*>(after);
      after += 2 * capacity;
    }
    auto* child = reinterpret_cast<Arena::Offset*>(after);
    return {block,
            block + capacity,
            block + 2 * capacity,
            kShared ? block + 3 * capacity : nullptr,
            exact_sum,
            child,
            reinterpret_cast<uint16_t*>(child + capacity)};
  }

  void find_next(Node& n) {
    if (n.num_edges == n.num_legal) {
      n.next_prior = -1.0f;
      return;
    }
    n.next_index = static_cast<uint16_t>(simd::kernels().argmax(priors(n), n.num_legal));
    n.next_prior = priors(n)[n.next_index];
  }

  void grow_edges(Arena::Offset offset) {
    int capacity = node(offset).capacity == 0 ? kFirstCapacity : 2 * node(offset).capacity;
    if (capacity > node(offset).num_legal) capacity = node(offset).num_legal;
    const Arena::Offset block = arena_.allocate(block_bytes(capacity, kEdgeBytes, kFloatColumns));
    Node& n = node(offset);
    const Edges to = columns(at<float>(block), capacity);
    if (n.num_edges > 0) copy_edges(edges(n), to, n.num_edges);
    n.edges = block;
    n.capacity = static_cast<uint16_t>(capacity);
  }

  static void copy_edges(const Edges& from, const Edges& to, int count) {
    const auto n = static_cast<size_t>(count);
    std::memcpy(to.prior, from.prior, n * sizeof(float));
    std::memcpy(to.visits, from.visits, n * sizeof(float));
    std::memcpy(to.value_sum, from.value_sum, n * sizeof(float));
    if constexpr (kShared) {
      std::memcpy(to.in_flight, from.in_flight, n * sizeof(float));
      std::memcpy(to.exact_sum, from.exact_sum, n * sizeof(double));
    }
    std::memcpy(to.child, from.child, n * sizeof(Arena::Offset));
    std::memcpy(to.legal_index, from.legal_index, n * sizeof(uint16_t));
  }

  Arena::Offset copy(const BasicTree& other, Arena::Offset from) {
    const Arena::Offset offset = allocate_node();
    const Node& source = other.node(from);
    Node& made = *new (at<Node>(offset)) Node();
    static_cast<tengen::Node&>(made) = source;
    if (keeps_scores_) score_of(made) = other.score_of(source);
    if (source.num_legal > 0) {
      const Arena::Offset legal = arena_.allocate(block_bytes(source.num_legal, kLegalBytes, 1));
      std::memcpy(at<char>(legal), other.template at<char>(source.legal),
                  source.num_legal * kLegalBytes);
      node(offset).legal = legal;
    }
    if (source.num_edges > 0) {
      const Arena::Offset block =
          arena_.allocate(block_bytes(source.capacity, kEdgeBytes, kFloatColumns));
      const Edges to = columns(at<float>(block), source.capacity);
      copy_edges(other.edges(source), to, source.num_edges);
      if constexpr (kShared) std::fill_n(to.in_flight, source.num_edges, 0.0f);
      node(offset).edges = block;
      for (int i = 0; i < source.num_edges; ++i) {
        const Arena::Offset child = copy(other, other.edges(source).child[i]);
        edges(node(offset)).child[i] = child;
      }
    }
    return offset;
  }

  Memory arena_;
  Arena::Offset root_ = Arena::kNull;
  bool keeps_scores_ = false;
};

using Tree = BasicTree<Arena>;
using SharedTree = BasicTree<SharedArena::Cursor>;

}  // namespace tengen
