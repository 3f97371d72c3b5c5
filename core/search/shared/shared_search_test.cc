#include "search/shared/shared_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "games/gomoku/gomoku.h"
#include "games/tictactoe/tictactoe.h"
#include "search/serial/search.h"
#include "search/shared/shared_testing.h"
#include "search/testing.h"

using namespace tengen;

namespace {

// Compares with the serial search, also with sums of squares and with excluded actions.
template <Game G>
void check_oracle(const G& game, const typename G::State& state) {
  for (const float option : {0.0f, 0.85f}) {
    SearchSettings settings;
    settings.cpuct_stdev_scale = settings.lcb_stdevs = option;
    check_oracle(game, state, settings, {});
    check_oracle(game, state, settings, {{0, 2, 1}, {1, 1, 2}, {0, 0, 3}, {1, 3, 5}});
  }
}

// Checks that nothing is in flight after all threads have left, that each action has at most one
// edge, and that a node's visits are its own evaluation plus those of its edges (a proven node is
// also visited as a leaf). Returns the number of expanded nodes in the subtree.
int check_counts(const SharedTree& tree, Arena::Offset offset) {
  const SharedNode& node = tree.node(offset);
  TENGEN_CHECK(node.in_flight == 0);
  if (node.num_legal == 0) {
    TENGEN_CHECK(node.proof != Proof::kUnknown);
    return 0;
  }
  const Edges edges = tree.edges(node);
  int num_expanded = 1;
  float visits = 1.0f;
  std::set<int> taken;
  for (int i = 0; i < node.num_edges; ++i) {
    TENGEN_CHECK(edges.in_flight[i] == 0.0f && edges.visits[i] >= 1.0f);
    TENGEN_CHECK(edges.visits[i] == static_cast<float>(tree.node(edges.child[i]).visits));
    TENGEN_CHECK(taken.insert(edges.legal_index[i]).second);
    visits += edges.visits[i];
    num_expanded += check_counts(tree, edges.child[i]);
  }
  const auto own = static_cast<float>(node.visits);
  TENGEN_CHECK(node.proof == Proof::kUnknown ? visits == own : visits <= own);
  return num_expanded;
}

// In a tree without proofs every value sum equals the sum of the evaluations below.
void check_values(const SharedTree& tree, Arena::Offset offset) {
  const SharedNode& node = tree.node(offset);
  TENGEN_CHECK(node.proof == Proof::kUnknown);
  TENGEN_CHECK(std::abs(node.value_sum - evaluated_sum(tree, offset)) < 1e-9);
  const Edges edges = tree.edges(node);
  for (int i = 0; i < node.num_edges; ++i) {
    const SharedNode& child = tree.node(edges.child[i]);
    const double sum = value_for(node, child, child.value_sum);
    TENGEN_CHECK(std::abs(edges.exact_sum[i] - sum) < 1e-9);
    TENGEN_CHECK(edges.value_sum[i] == static_cast<float>(edges.exact_sum[i]));
    check_values(tree, edges.child[i]);
  }
}

// Every simulation of the budget runs once, and every position is evaluated once.
template <Game G>
int check_search(SharedSearch<G>& search, const G& game, const typename G::State& state,
                 int num_threads, int num_simulations, bool considers_all = false) {
  SearchRequest request = request_of(num_simulations);
  request.considers_all = considers_all;
  const int num_evaluations = run(search, game, state, num_threads, request);
  const SharedTree& tree = search.tree();
  const SharedNode& root = tree.node(tree.root());
  TENGEN_CHECK(check_counts(tree, tree.root()) == num_evaluations);
  const int num_done = static_cast<int>(root.visits) - 1;
  TENGEN_CHECK(root.proof == Proof::kUnknown ? num_done == num_simulations
                                             : num_done <= num_simulations);
  SearchResult result;
  search.finish(result);
  check_result(result, num_simulations, root.num_legal);
  return num_done;
}

// On a large board no end of the game is within reach, so all sums can be checked if the rules
// decide nothing earlier.
void check_big_board() {
  const Gomoku game(15);
  const auto state = game.initial_state();
  SharedSearch<Gomoku> search(game, SearchSettings(), 4, 3);
  for (const int num_simulations : {800, 0, 1, 5, 3000}) {
    check_search(search, game, state, 4, num_simulations, true);
    check_values(search.tree(), search.tree().root());
  }
}

// Trees with fewer positions than descents, and with many proofs. Each search ends, and its proofs
// match the game's value.
void check_random_games() {
  int num_solved = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const RandomGame game(seed);
    const auto state = game.initial_state();
    const float exact = to_player(game.solve(state), game.to_play(state));
    SharedSearch<RandomGame> search(game, SearchSettings(), 4, 4);
    for (const int num_simulations : {0, 1, 2, 5, 16, 100, 2000}) {
      check_search(search, game, state, 4, num_simulations);
      const SharedTree& tree = search.tree();
      check_node(game, tree, tree.root(), state, 1e-3f);
      SearchResult result;
      search.finish(result);
      if (result.proof == Proof::kUnknown) continue;
      num_solved += num_simulations == 2000;
      TENGEN_CHECK(result.root_value_to_play == exact);
      RandomGame::State next = state;
      game.apply(next, result.best_action);
      TENGEN_CHECK(to_player(game.solve(next), game.to_play(state)) == exact);
    }
  }
  TENGEN_CHECK(num_solved > 17);
}

// Descents in flight spread out, also over children without a visit: five descents of one thread
// find five leaves, although the prior alone would send all of them to the same leaf.
void check_spread() {
  const Gomoku game(9);
  const auto state = game.initial_state();
  SharedSearch<Gomoku> search(game, SearchSettings(), 1, 5);
  search.begin(state, request_of(1000));
  std::vector<float> logits(81, 0.0f);
  logits[40] = 2.0f;
  auto& descents = search.descents(0);
  TENGEN_CHECK(descents[0].advance());
  descents[0].accept(logits.data(), nullptr, 0.0f);
  for (int round = 0; round < 20; ++round) {
    std::set<std::pair<uint64_t, uint64_t>> leaves;
    for (auto& descent : descents) {
      TENGEN_CHECK(descent.advance());
      const Key128 key = game.key(descent.leaf());
      leaves.insert({key.hi, key.lo});
    }
    TENGEN_CHECK(leaves.size() == descents.size());
    const SharedNode& root = search.tree().node(search.tree().root());
    TENGEN_CHECK(root.in_flight == descents.size());
    for (auto& descent : descents) descent.accept(logits.data(), nullptr, 0.0f);
  }
  TENGEN_CHECK(check_counts(search.tree(), search.tree().root()) == 101);
}

// In a game with only one line, the first descent blocks the second, which keeps its marks while
// the first is in flight, and then continues from the first one's position.
void check_blocked() {
  TicTacToe game;
  auto state = game.initial_state();
  for (const int action : {0, 1, 2, 4, 3, 5, 7, 6}) game.apply(state, action);
  TENGEN_CHECK(game.outcome(state) == Outcome::kOngoing);  // one cell is left
  SharedSearch<TicTacToe> search(game, SearchSettings(), 1, 2);
  search.begin(state, request_of(10));
  auto& descents = search.descents(0);
  TENGEN_CHECK(descents[0].advance());
  TENGEN_CHECK(!descents[1].advance() && descents[1].is_blocked());
  const std::vector<float> logits(9, 0.0f);
  descents[0].accept(logits.data(), nullptr, 0.5f);
  TENGEN_CHECK(!descents[1].advance() && !descents[1].is_blocked());  // the last cell ends it
  TENGEN_CHECK(!descents[0].advance() && !search.wait(0, search.news()));
  SearchResult result;
  search.finish(result);
  TENGEN_CHECK(result.num_simulations == 1 && result.proof == Proof::kDraw);
}

// A blocked thread is woken when another thread, which has no more work, expands a position itself,
// as with an evaluation from the cache.
void check_news() {
  const TicTacToe game;
  SharedSearch<TicTacToe> search(game, SearchSettings(), 2, 1);
  search.begin(game.initial_state(), request_of(0));
  const std::vector<float> logits(9, 0.0f);
  TENGEN_CHECK(search.descents(0)[0].advance());
  const uint32_t seen = search.news();
  TENGEN_CHECK(!search.descents(1)[0].advance() && search.descents(1)[0].is_blocked());
  search.descents(0)[0].accept(logits.data(), nullptr, 0.0f);
  TENGEN_CHECK(!search.descents(0)[0].advance() && !search.wait(0, seen));
  TENGEN_CHECK(search.wait(1, seen));  // immediately
  TENGEN_CHECK(!search.descents(1)[0].advance() && !search.wait(1, search.news()));
}

// See check_many_visits() in the test of the single-threaded search.
void check_many_visits() {
  const Gomoku game(9);
  constexpr uint32_t kCount = 8'000'000;
  SharedSearch<Gomoku> search(game, SearchSettings(), 2, 2);
  run(search, game, game.initial_state(), 2, request_of_two_actions(20, game.num_actions()));
  add_old_visits(search.tree(), kCount, 0.7);
  search.extend(2020);
  std::thread other([&] { work(search, game, 1); });
  work(search, game, 0);
  other.join();
  check_old_visits(search.tree(), kCount, 0.7);
}

// Another thread stops a search that would take hours. Its results so far are available.
void check_stop() {
  const Gomoku game(9);
  const auto state = game.initial_state();
  SharedSearch<Gomoku> search(game, SearchSettings(), 2, 2);
  for (int round = 0; round < 5; ++round) {
    search.begin(state, request_of(kMaxSimulations));
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) threads.emplace_back([&, i] { work(search, game, i); });
    while (search.news() % 100 != 99) std::this_thread::yield();
    search.stop();
    for (auto& thread : threads) thread.join();
    SearchResult result;
    search.finish(result);
    TENGEN_CHECK(result.num_simulations < kMaxSimulations && result.best_action >= 0);
  }
  // A thread that waits for the leaf of a thread that has left is also woken.
  search.begin(state, request_of(10));
  TENGEN_CHECK(search.descents(0)[0].advance());
  std::atomic<bool> is_blocked{false};
  std::thread waiting([&] {
    const uint32_t seen = search.news();
    TENGEN_CHECK(!search.descents(1)[0].advance());
    is_blocked = true;
    TENGEN_CHECK(search.wait(1, seen));
    TENGEN_CHECK(!search.descents(1)[0].advance() && !search.wait(1, search.news()));
  });
  while (!is_blocked) std::this_thread::yield();
  search.stop();
  waiting.join();
}

void check_misuse() {
  const TicTacToe game;
  auto state = game.initial_state();
  SearchSettings gumbel;
  gumbel.policy = RootPolicy::kGumbel;
  TENGEN_CHECK(throws([&] { SharedSearch<TicTacToe>(game, gumbel, 2, 1); }));
  SharedSearch<TicTacToe> search(game, SearchSettings(), 2, 1);
  SearchResult result;
  TENGEN_CHECK(throws([&] { search.finish(result); }));
  TENGEN_CHECK(throws([&] { search.begin(state, request_of(-1)); }));
  TENGEN_CHECK(throws([&] { search.begin(state, request_of(10, true)); }));
  search.begin(state, request_of(10));
  Descent<TicTacToe>& descent = search.descents(0)[0];
  const std::vector<float> logits(9, 0.0f);
  TENGEN_CHECK(throws([&] { descent.accept(logits.data(), nullptr, 0.0f); }));
  TENGEN_CHECK(descent.advance() && !descent.is_blocked());
  TENGEN_CHECK(throws([&] { descent.advance(); }));
  TENGEN_CHECK(throws([&] { search.finish(result); }));
  TENGEN_CHECK(!search.descents(1)[0].advance());  // the root is claimed
  TENGEN_CHECK(search.descents(1)[0].is_blocked());
  TENGEN_CHECK(throws([&] { descent.accept(logits.data(), nullptr, std::nanf("")); }));
  descent.accept(logits.data(), nullptr, 0.0f);
  search.finish(result);
  TENGEN_CHECK(result.num_simulations == 0);
  // An abandoned search does not affect the next one.
  TENGEN_CHECK(search.descents(1)[0].advance() && descent.advance());
  check_search(search, game, state, 2, 100);
  for (const int action : {0, 3, 1, 4, 2}) game.apply(state, action);
  TENGEN_CHECK(throws([&] { search.begin(state, request_of(50)); }));
}

// With one visit there is no spread, so descents in flight do not change a node's exploration.
void check_spread_of_one_visit() {
  SearchSettings settings;
  const Puct plain(settings);
  settings.cpuct_stdev_scale = 0.85f;
  const Puct puct(settings);
  SharedNode node{};
  node.visits = 1;
  node.in_flight = 3;
  node.value_sum = 0.8f;
  node.value_square_sum = 0.64f;
  TENGEN_CHECK(puct.scale(node) == plain.scale(node));
  node.visits = 2;
  node.value_square_sum = 1.28f;
  TENGEN_CHECK(puct.scale(node) != plain.scale(node));
}

}  // namespace

int main() {
  check_spread_of_one_visit();
  check_oracle(TicTacToe(), TicTacToe().initial_state());
  check_oracle(Gomoku(9), Gomoku(9).initial_state());
  for (uint64_t seed = 0; seed < 16; ++seed) {
    const RandomGame game(seed);
    check_oracle(game, game.initial_state());
  }
  check_big_board();
  check_random_games();
  check_spread();
  check_blocked();
  check_news();
  check_many_visits();
  check_stop();
  check_misuse();
  return 0;
}
