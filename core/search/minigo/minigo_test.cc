// Cases of the search of the MLPerf benchmark minigo that tests/unit/search/test_minigo.py, which
// compares trees with a reference, cannot reach.

#include <cmath>
#include <functional>
#include <vector>

#include "base/testing.h"
#include "games/tictactoe/tictactoe.h"
#include "search/minigo/minigo_search.h"
#include "search/testing.h"

using namespace tengen;

namespace {

// Returns a position's value to play. Its policy is passed as logits.
using Value = std::function<float(const TicTacToe::State&)>;

SearchSettings settings_of(int virtual_losses) {
  SearchSettings settings;
  settings.policy = RootPolicy::kMinigo;
  settings.minigo_virtual_losses = virtual_losses;
  return settings;
}

TicTacToe::State after(const TicTacToe& game, const std::vector<int>& moves) {
  auto state = game.initial_state();
  for (const int move : moves) game.apply(state, move);
  return state;
}

template <Game G, class Answer>
void run(MinigoSearch<G>& search, Answer answer) {
  while (search.advance()) {
    for (int i = 0; i < search.num_leaves(); ++i) answer(i);
  }
}

SearchResult searched(MinigoSearch<TicTacToe>& search, const TicTacToe::State& root, int num,
                      const Value& value, const std::vector<float>& logits) {
  search.begin(root, request_of(num));
  run(search, [&](int i) { search.accept(i, logits.data(), nullptr, value(search.leaf(i))); });
  SearchResult result;
  search.finish(result);
  return result;
}

// Among equal scores the lowest action is selected, not the one that was visited first.
void check_equal_scores() {
  const TicTacToe game;
  SearchSettings settings = settings_of(1);
  settings.minigo_c_init = 0.01f;
  // Action 5 looks best and loses. Then 3, 1 and the others follow, whose priors hardly matter.
  const std::vector<float> logits = {-30, -25, -30, -20, -30, 0, -30, -30, -30};
  const Value value = [&](const auto& state) {
    if (game.ply(state) != 1) return game.ply(state) == 0 ? 0.5f : 0.0f;
    return game.is_legal(state, 5) ? 0.1f : 1.0f;
  };
  MinigoSearch<TicTacToe> search(game, settings);
  const SearchResult result = searched(search, game.initial_state(), 11, value, logits);
  const Node& root = search.tree().node(search.tree().root());
  const Edges edges = search.tree().edges(root);
  TENGEN_CHECK(edges.legal_index[0] == 5 && edges.legal_index[1] == 3);
  for (const ActionResult& a : result.actions) {
    TENGEN_CHECK(a.visits == (a.action == 0 ? 2u : 1u));
  }
}

// Visits and values of edges match those of their child nodes, whichever player moves next.
float check_node(const RandomGame& game, const Tree& tree, Arena::Offset offset,
                 const RandomGame::State& state) {
  const Node& node = tree.node(offset);
  TENGEN_CHECK(node.to_play == game.to_play(state));
  if (node.num_legal == 0) return static_cast<float>(node.visits);
  const Edges edges = tree.edges(node);
  float total = 1.0f;  // the node's own evaluation
  for (int i = 0; i < node.num_edges; ++i) {
    RandomGame::State next = state;
    game.apply(next, tree.actions(node)[edges.legal_index[i]]);
    const Node& child = tree.node(edges.child[i]);
    const double sum = value_for(node, child, child.value_sum);
    TENGEN_CHECK(edges.value_sum[i] == static_cast<float>(sum));
    TENGEN_CHECK(edges.visits[i] == static_cast<float>(child.visits));
    total += check_node(game, tree, edges.child[i], next);
  }
  TENGEN_CHECK(static_cast<float>(node.visits) == total);
  return total;
}

void check_random_games() {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RandomGame game(seed);
    MinigoSearch<RandomGame> search(game, settings_of(1 + static_cast<int>(seed % 5)));
    search.begin(game.initial_state(), request_of(60, seed % 2 == 0, seed));
    std::vector<float> logits;
    run(search, [&](int i) {
      float value;
      evaluate(game, search.leaf(i), nullptr, logits, &value);
      search.accept(i, logits.data(), nullptr, value);
    });
    check_node(game, search.tree(), search.tree().root(), game.initial_state());
    SearchResult result;
    search.finish(result);
    float policy = 0.0f;
    for (const ActionResult& a : result.actions) policy += a.policy;
    TENGEN_CHECK(std::abs(policy - 1.0f) < 1e-5f && result.num_simulations >= 60);
  }
}

void check_misuse() {
  const TicTacToe game;
  MinigoSearch<TicTacToe> search(game, settings_of(4));
  SearchResult result;
  TENGEN_CHECK(throws([&] { search.advance(); }) && throws([&] { search.finish(result); }));
  SearchRequest request = request_of(4);
  request.left_out = {{0, 4, 1}};
  TENGEN_CHECK(throws([&] { search.begin(game.initial_state(), request); }));
  TENGEN_CHECK(throws([&] { search.begin(after(game, {0, 3, 1, 4, 2}), request_of(4)); }));
  search.begin(game.initial_state(), request_of(4));
  TENGEN_CHECK(search.advance() && throws([&] { search.finish(result); }));
  std::vector<float> broken(9, std::nanf(""));
  TENGEN_CHECK(throws([&] { search.accept(0, broken.data(), nullptr, 0.0f); }));
}

}  // namespace

int main() {
  check_equal_scores();
  check_random_games();
  check_misuse();
  return 0;
}
