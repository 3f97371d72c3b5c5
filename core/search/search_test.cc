#include "search/search.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "games/gomoku/gomoku.h"
#include "games/tictactoe/tictactoe.h"

using namespace tengen;

namespace {

// A random game tree: 1 to 4 moves a position, either player may move next, any result. It has
// what the board games lack: two moves in a row, moves that lose at once, forced moves.
class RandomGame {
 public:
  struct State {
    uint64_t id;
    int depth;
  };
  static constexpr int kDepth = 6;

  explicit RandomGame(uint64_t seed) : seed_(seed) {}
  std::string name() const { return "random"; }
  int num_actions() const { return 4; }
  int num_planes() const { return 1; }
  int height() const { return 1; }
  int width() const { return 1; }
  int max_plies() const { return kDepth; }
  PolicyLayout policy_layout() const { return PolicyLayout::kFlat; }
  int num_symmetries() const { return 1; }
  State initial_state() const { return {mix64(seed_), 0}; }
  int to_play(const State& s) const { return static_cast<int>(s.id >> 7 & 1); }
  int ply(const State& s) const { return s.depth; }
  Outcome outcome(const State& s) const {
    const bool over = s.depth == kDepth || (s.depth > 1 && (s.id >> 20) % 8 == 0);
    return over ? static_cast<Outcome>(1 + (s.id >> 30) % 3) : Outcome::kOngoing;
  }
  int legal_actions(const State& s, uint16_t* actions) const {
    int count = 0;
    for (int action = 0; action < 4; ++action) {
      if (is_legal(s, action)) actions[count++] = static_cast<uint16_t>(action);
    }
    return count;
  }
  bool is_legal(const State& s, int action) const {
    return outcome(s) == Outcome::kOngoing && ((s.id >> 40 & 15) | 2) >> action & 1;
  }
  void apply(State& s, int action) const {
    s.id = mix64(s.id + 1 + static_cast<uint64_t>(action));
    ++s.depth;
  }
  Key128 key(const State& s) const { return {s.id, mix64(s.id)}; }
  void encode(const State&, int, float* planes) const { planes[0] = 1.0f; }
  int transform_action(int action, int) const { return action; }
  std::string to_string(const State&) const { return ""; }

  // The exact value of a position to player 0.
  float solve(const State& s) const {
    if (outcome(s) != Outcome::kOngoing) return value_to_first(outcome(s));
    const float sign = to_play(s) == 0 ? 1.0f : -1.0f;
    float best = -2.0f;
    for (int action = 0; action < 4; ++action) {
      if (!is_legal(s, action)) continue;
      State next = s;
      apply(next, action);
      best = std::max(best, sign * solve(next));
    }
    return sign * best;
  }

 private:
  uint64_t seed_;
};
static_assert(Game<RandomGame>);

// A fixed evaluation of a position. With `order` the logits stand where it says.
template <Game G>
void evaluate(const G& game, const typename G::State& state, const uint16_t* order,
              std::vector<float>& logits, float* value) {
  const Key128 key = game.key(state);
  logits.resize(static_cast<size_t>(game.num_actions()));
  for (size_t action = 0; action < logits.size(); ++action) {
    const float logit = static_cast<float>(mix64(key.lo + action) >> 40) * 0x1.0p-22f;
    logits[order == nullptr ? action : order[action]] = logit;
  }
  *value = static_cast<float>(mix64(key.hi) >> 40) * 0x1.0p-23f - 1.0f;
}

template <Game G>
SearchResult run(Search<G>& search, const G& game, const typename G::State& state,
                 const SearchRequest& request, const uint16_t* order = nullptr) {
  std::vector<float> logits;
  search.begin(state, request);
  while (search.advance()) {
    float value;
    evaluate(game, search.leaf(), order, logits, &value);
    search.accept(logits.data(), order, value);
  }
  SearchResult result;
  search.finish(result);
  return result;
}

SearchSettings settings_of(RootPolicy policy) {
  SearchSettings settings;
  settings.policy = policy;
  return settings;
}

SearchRequest request_of(int num_simulations, bool explore = false, uint64_t game = 0) {
  SearchRequest request;
  request.num_simulations = num_simulations;
  request.explore = explore;
  request.game = game;
  return request;
}

template <class F>
bool throws(F&& f) {
  try {
    f();
  } catch (const Error&) {
    return true;
  }
  return false;
}

float to_player(float value_to_first, int player) {
  return player == 0 ? value_to_first : -value_to_first;
}

// Every proof in the tree is the game's exact value, counts add up, and values change sign where
// the player does.
void check_node(const RandomGame& game, const Tree& tree, Arena::Offset offset,
                const RandomGame::State& state) {
  const Node& node = tree.node(offset);
  TENGEN_CHECK(node.to_play == game.to_play(state));
  TENGEN_CHECK(std::abs(node.value_sum) <= static_cast<float>(node.visits) * 1.00001f);
  if (node.proof != Proof::kUnknown) {
    TENGEN_CHECK(proof_value(node.proof) == to_player(game.solve(state), node.to_play));
  }
  const Edges edges = tree.edges(node);
  float total = 0.0f;
  for (int i = 0; i < node.num_edges; ++i) {
    RandomGame::State next = state;
    game.apply(next, tree.actions(node)[edges.legal_index[i]]);
    total += edges.visits[i];
    const Node& child = tree.node(edges.child[i]);
    TENGEN_CHECK(edges.visits[i] == static_cast<float>(child.visits));
    const float sign = child.to_play == node.to_play ? 1.0f : -1.0f;
    const float value = sign * proof_value(child.proof);
    if (child.proof == Proof::kUnknown) {
      TENGEN_CHECK(edges.value_sum[i] == sign * child.value_sum);
    } else {
      TENGEN_CHECK(edges.value_sum[i] == (value < 0.0f ? -std::numeric_limits<float>::infinity()
                                                       : value * edges.visits[i]));
    }
    check_node(game, tree, edges.child[i], next);
  }
  TENGEN_CHECK(static_cast<float>(node.visits) >= total);
}

void check_result(const SearchResult& result, int num_simulations, int num_legal) {
  TENGEN_CHECK(static_cast<int>(result.actions.size()) == num_legal);
  uint32_t visits = 0;
  float policy = 0.0f;
  bool has_best = false;
  for (const ActionResult& a : result.actions) {
    visits += a.visits;
    policy += a.policy;
    TENGEN_CHECK(a.policy >= 0.0f && std::abs(a.value_to_play) <= 1.0f);
    has_best |= a.action == result.best_action && (a.policy > 0.0f || num_simulations == 0);
    if (result.proof != Proof::kLoss && num_legal > 1 && a.proof == Proof::kLoss) {
      TENGEN_CHECK(a.policy == 0.0f && a.action != result.best_action);
    }
  }
  TENGEN_CHECK(has_best);
  TENGEN_CHECK(std::abs(policy - 1.0f) < 1e-5f);
  TENGEN_CHECK(visits == result.num_simulations);
  TENGEN_CHECK(static_cast<int>(visits) <= num_simulations);
  if (result.proof == Proof::kUnknown) {
    TENGEN_CHECK(static_cast<int>(visits) == num_simulations);
  }
}

// Proofs hold with any order of players, for every budget; a large budget solves most games (not
// all: a search goes on visiting a proven draw while it looks better than what is open).
void check_random_games(RootPolicy policy) {
  int num_solved = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const RandomGame game(seed);
    const auto state = game.initial_state();
    std::vector<uint16_t> legal(4);
    const int num_legal = game.legal_actions(state, legal.data());
    const float exact = to_player(game.solve(state), game.to_play(state));
    for (const int num_simulations : {0, 1, 2, 3, 5, 16, 100, 2000}) {
      Search<RandomGame> search(game, settings_of(policy));
      const SearchResult result =
          run(search, game, state, request_of(num_simulations, seed % 2 == 0, seed));
      check_result(result, num_simulations, num_legal);
      check_node(game, search.tree(), search.tree().root(), state);
      if (result.proof == Proof::kUnknown) continue;
      num_solved += num_simulations == 2000;
      TENGEN_CHECK(result.root_value_to_play == exact);
      RandomGame::State next = state;
      game.apply(next, result.best_action);
      TENGEN_CHECK(to_player(game.solve(next), game.to_play(state)) == exact);
    }
  }
  TENGEN_CHECK(num_solved > (policy == RootPolicy::kPuct ? 120 : 60));
}

// Along games with reuse: a kept subtree counts towards the budget, and stays sound.
void check_reuse(RootPolicy policy) {
  Tree scratch;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const RandomGame game(1000 + seed);
    auto state = game.initial_state();
    Search<RandomGame> search(game, settings_of(policy));
    while (game.outcome(state) == Outcome::kOngoing) {
      const SearchResult result = run(search, game, state, request_of(30, true, seed));
      const Node& root = search.tree().node(search.tree().root());
      TENGEN_CHECK(root.visits <= 31 || policy == RootPolicy::kPuct);
      TENGEN_CHECK(root.proof != Proof::kUnknown || root.visits >= 31);
      check_node(game, search.tree(), search.tree().root(), state);
      search.play(result.best_action, scratch);
      game.apply(state, result.best_action);
    }
  }
}

// The trees of a big board outgrow their first memory; the result does not show it.
void check_big_board() {
  const Gomoku game(15);
  auto state = game.initial_state();
  for (const RootPolicy policy : {RootPolicy::kPuct, RootPolicy::kGumbel}) {
    Search<Gomoku> search(game, settings_of(policy));
    Search<Gomoku> again(game, settings_of(policy));
    for (int round = 0; round < 2; ++round) {
      check_result(run(search, game, state, request_of(500, true)), 500, game.num_actions());
    }
    const SearchResult a = run(search, game, state, request_of(300, true));
    const SearchResult b = run(again, game, state, request_of(300, true));
    for (size_t i = 0; i < a.actions.size(); ++i) {
      TENGEN_CHECK(a.actions[i].visits == b.actions[i].visits);
      TENGEN_CHECK(a.actions[i].policy == b.actions[i].policy);
    }
  }
}

void check_transform() {
  const TicTacToe game;
  const auto state = game.initial_state();
  const std::vector<uint16_t> order = {3, 1, 4, 0, 5, 8, 2, 6, 7};
  Search<TicTacToe> search(game, SearchSettings());
  const SearchResult plain = run(search, game, state, request_of(200));
  const SearchResult moved = run(search, game, state, request_of(200), order.data());
  for (size_t i = 0; i < 9; ++i) TENGEN_CHECK(plain.actions[i].visits == moved.actions[i].visits);
}

void check_misuse() {
  const TicTacToe game;
  auto state = game.initial_state();
  Search<TicTacToe> search(game, SearchSettings());
  SearchResult result;
  const std::vector<float> logits(9, 0.0f);
  TENGEN_CHECK(throws([&] { search.advance(); }));
  TENGEN_CHECK(throws([&] { search.finish(result); }));
  TENGEN_CHECK(throws([&] { search.begin(state, request_of(-1)); }));
  TENGEN_CHECK(throws([&] { search.begin(state, request_of(1 << 25)); }));
  search.begin(state, request_of(50));
  TENGEN_CHECK(throws([&] { search.accept(logits.data(), nullptr, 0.0f); }));
  TENGEN_CHECK(search.advance());
  TENGEN_CHECK(throws([&] { search.advance(); }));
  TENGEN_CHECK(throws([&] { search.finish(result); }));
  search.accept(logits.data(), nullptr, 0.0f);
  TENGEN_CHECK(search.advance());
  for (const float value : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    TENGEN_CHECK(throws([&] { search.accept(logits.data(), nullptr, value); }));
    std::vector<float> broken = logits;
    std::fill(broken.begin() + 4, broken.end(), value);
    TENGEN_CHECK(throws([&] { search.accept(broken.data(), nullptr, 0.0f); }));
  }
  // A search given up half way does not show in the next one, nor does an old tree.
  const SearchResult after = run(search, game, state, request_of(50));
  Search<TicTacToe> fresh(game, SearchSettings());
  const SearchResult expected = run(fresh, game, state, request_of(50));
  for (size_t i = 0; i < 9; ++i) {
    TENGEN_CHECK(after.actions[i].visits == expected.actions[i].visits);
  }
  for (const int action : {0, 3, 1, 4, 2}) game.apply(state, action);
  TENGEN_CHECK(throws([&] { search.begin(state, request_of(50)); }));
}

}  // namespace

int main() {
  for (const RootPolicy policy : {RootPolicy::kPuct, RootPolicy::kGumbel}) {
    check_random_games(policy);
    check_reuse(policy);
  }
  check_big_board();
  check_transform();
  check_misuse();
}
