#include "search/serial/search.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "games/gomoku/gomoku.h"
#include "games/tictactoe/tictactoe.h"
#include "search/testing.h"

using namespace tengen;

namespace {

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

// Proofs are correct with any order of players and any budget. A large budget solves most games but
// not all, because a search keeps visiting a proven draw that looks better than unproven moves.
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

// During a game with tree reuse, a kept subtree counts towards the budget and stays consistent.
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

// Sums of squares are kept with a subtree; a subtree without them is not reused if they are needed.
void check_kept_squares() {
  const Gomoku game(7);
  Tree scratch;
  for (const bool had_squares : {false, true}) {
    Search<Gomoku> search(game, SearchSettings());
    auto state = game.initial_state();
    SearchRequest request = request_of(200);
    request.keep_squares = had_squares;
    const SearchResult first = run(search, game, state, request);
    search.play(first.best_action, scratch);
    game.apply(state, first.best_action);
    request.keep_squares = true;
    const SearchResult second = run(search, game, state, request);
    TENGEN_CHECK((second.num_simulations < 200) == had_squares);
    const Tree& tree = search.tree();
    const Node& root = tree.node(tree.root());
    const Edges edges = tree.edges(root);
    for (int i = 0; i < root.num_edges; ++i) {
      const Node& child = tree.node(edges.child[i]);
      const double mean = child.mean_value();
      TENGEN_CHECK(child.mean_square() > mean * mean - 1e-6);
      TENGEN_CHECK(second.actions[edges.legal_index[i]].standard_error > 0.0f);
    }
  }
}

// The sums lose no visit, even if moves have millions of visits.
void check_many_visits() {
  const Gomoku game(9);
  const auto state = game.initial_state();
  for (const double value : {0.7, -0.7}) {
    Search<Gomoku> search(game, SearchSettings());
    run(search, game, state, request_of_two_actions(20, game.num_actions()));
    constexpr uint32_t kCount = 8'000'000;  // a float sum would increase in steps of 0.5
    add_old_visits(search.tree(), kCount, value);
    search.extend(2020);
    std::vector<float> logits;
    while (search.advance()) {
      float leaf_value;
      evaluate(game, search.leaf(), nullptr, logits, &leaf_value);
      search.accept(logits.data(), nullptr, leaf_value);
    }
    check_old_visits(search.tree(), kCount, value);
  }
}

// Whatever the priors, a search of few simulations plays the move that wins at once, and the only
// move that prevents a win of the opponent, unless the request excludes it.
void check_decisive_moves(RootPolicy policy) {
  const Gomoku game(9);
  const int wanted = 76;
  auto state = game.initial_state();
  // The first player has four in the last row, from the corner.
  for (const int move : {72, 4, 73, 5, 74, 6, 75}) game.apply(state, move);
  for (const bool is_won : {false, true}) {
    if (is_won) game.apply(state, 20);  // the second player has not blocked
    for (const int num_simulations : {0, 1, 16}) {
      for (const bool excludes : {false, true}) {
        SearchRequest request = request_of(num_simulations);
        if (excludes) request.left_out.push_back({game.to_play(state), wanted, 1});
        Search<Gomoku> search(game, settings_of(policy));
        search.begin(state, request);
        while (search.advance()) {
          std::vector<float> logits(81, 0.0f);
          logits[static_cast<size_t>(wanted)] = -90.0f;  // the prior underflows
          search.accept(logits.data(), nullptr, 0.9f);
        }
        SearchResult result;
        search.finish(result);
        TENGEN_CHECK((result.best_action == wanted) == !excludes);
        if (excludes || num_simulations == 0) continue;
        TENGEN_CHECK(result.actions.size() == 1 && result.actions[0].policy == 1.0f);
        TENGEN_CHECK(result.proof == (is_won ? Proof::kWin : Proof::kUnknown));
        TENGEN_CHECK(static_cast<int>(result.num_simulations) == (is_won ? 1 : num_simulations));
      }
    }
  }
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
  // Neither an abandoned search nor an old tree affects the next search.
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
    check_decisive_moves(policy);
  }
  check_kept_squares();
  check_many_visits();
  check_misuse();
  return 0;
}
