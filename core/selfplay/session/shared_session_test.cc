#include "selfplay/session/shared_session.h"

#include <thread>
#include <vector>

#include "base/testing.h"
#include "games/gomoku/gomoku.h"
#include "games/tictactoe/tictactoe.h"
#include "search/testing.h"
#include "selfplay/testing.h"

using namespace tengen;

namespace {

void drive_all(SearchSession& session, int num_threads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < num_threads; ++i) {
    threads.emplace_back([&, i] { drive(session.port(i)); });
  }
  for (auto& thread : threads) thread.join();
}

// Many short searches, with and without a cache, on one session.
template <Game G>
void check_many(const G& game, size_t cache_bytes) {
  SharedGameSession<G> session(game, SearchSettings(), 4, 3, cache_bytes);
  std::vector<int> moves;
  auto state = game.initial_state();
  while (game.outcome(state) == Outcome::kOngoing && moves.size() < 12) {
    session.begin(moves, request_of(120), "");
    drive_all(session, 4);
    const SearchResult& result = session.result();
    uint32_t visits = 0;
    for (const ActionResult& a : result.actions) visits += a.visits;
    TENGEN_CHECK(visits == result.num_simulations);
    TENGEN_CHECK(visits == 120 || result.proof != Proof::kUnknown);
    moves.push_back(result.best_action);
    game.apply(state, result.best_action);
  }
}

// With one port of one row, results equal the single-threaded ones; with more, visits add up.
void check_kept_tree() {
  const Gomoku game(9);
  GameSession<Gomoku> alone(game, SearchSettings(), 1 << 16);
  SharedGameSession<Gomoku> one(game, SearchSettings(), 1, 1, 1 << 16);
  SharedGameSession<Gomoku> several(game, SearchSettings(), 3, 4, 1 << 16);
  std::vector<int> moves;
  for (int turn = 0; turn < 6; ++turn) {
    const int num_simulations = turn % 2 == 0 ? 400 : 450;
    alone.begin(moves, request_of(num_simulations), "", true);
    drive(alone);
    one.begin(moves, request_of(num_simulations), "", true);
    drive_all(one, 1);
    several.begin(moves, request_of(num_simulations), "", true);
    drive_all(several, 3);
    for (size_t i = 0; i < alone.result().actions.size(); ++i) {
      const ActionResult& action = alone.result().actions[i];
      TENGEN_CHECK(action.visits == one.result().actions[i].visits);
      TENGEN_CHECK(action.value_to_play == one.result().actions[i].value_to_play);
    }
    uint32_t visits = 0;
    for (const ActionResult& action : several.result().actions) visits += action.visits;
    TENGEN_CHECK(visits == several.result().num_simulations);
    TENGEN_CHECK(visits >= static_cast<uint32_t>(num_simulations));
    // Searches the same position once more, and later continues one or two moves further.
    several.begin(moves, request_of(10), "", true);
    drive_all(several, 3);
    TENGEN_CHECK(several.result().num_simulations == visits);
    for (const int move : alone.variation(alone.result().best_action, turn % 3 == 0 ? 1 : 2)) {
      moves.push_back(move);
    }
  }
  // A search of another line reuses nothing of the tree.
  several.begin({0}, request_of(50), "", true);
  drive_all(several, 3);
  TENGEN_CHECK(several.result().num_simulations == 50);
  // An unvisited move leaves nothing to reuse, and a stopped search keeps its results so far.
  several.begin({0, 1, 2, 3}, request_of(50), "", true);
  drive_all(several, 3);
  TENGEN_CHECK(several.result().num_simulations == 50);
  several.begin({0, 1, 2, 3}, request_of(1 << 20), "", true);
  several.stop();
  drive_all(several, 3);
  TENGEN_CHECK(several.result().num_simulations >= 50);
  several.begin({0, 1, 2, 3}, request_of(200), "", true);
  drive_all(several, 3);
  TENGEN_CHECK(several.result().num_simulations >= 200);
}

// A search that was stopped, or abandoned with waiting rows, does not affect later searches.
void check_given_up() {
  const TicTacToe game;
  SharedGameSession<TicTacToe> session(game, SearchSettings(), 2, 2, 0);
  session.begin({4}, request_of(50), "");
  TENGEN_CHECK(session.port(0).next() == 1);
  session.begin({4}, request_of(50), "");
  drive_all(session, 2);
  TENGEN_CHECK(session.result().num_simulations > 0);
  session.begin({}, request_of(1 << 20), "");
  session.stop();
  drive_all(session, 2);
  TENGEN_CHECK(throws([&] { session.result(); }));
}

}  // namespace

int main() {
  for (const size_t cache_bytes : {size_t{0}, size_t{1} << 16}) {
    check_many(TicTacToe(), cache_bytes);
    check_many(Gomoku(7), cache_bytes);
  }
  check_kept_tree();
  check_given_up();
  return 0;
}
