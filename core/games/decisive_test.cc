// Compares the decisive actions of each game with those that playing all pairs of moves finds, in
// random games.

#include "games/decisive.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "games/gomoku/gomoku.h"
#include "games/registry/registry.h"

using namespace tengen;

namespace {

constexpr int kMost = 19 * 19 + 1;
int num_won = 0;
int num_lost = 0;
int num_forced = 0;

template <Game G>
void check_position(const G& game, const typename G::State& state) {
  std::vector<uint16_t> actions(kMost, 0xfefe);
  std::vector<uint16_t> expected(kMost, 0xfefe);
  const Decisive found = game.decisive_actions(state, actions.data());
  const Decisive slow = find_decisive<kMost>(game, state, expected.data());
  TENGEN_CHECK(found.is_won == slow.is_won && found.is_lost == slow.is_lost);
  if (found.is_lost) {
    TENGEN_CHECK(found.count > 0);
    for (int i = 0; i < found.count; ++i) {
      TENGEN_CHECK(game.is_legal(state, actions[static_cast<size_t>(i)]));
    }
  } else {
    TENGEN_CHECK(found.count == slow.count);
    TENGEN_CHECK(std::equal(actions.begin(), actions.begin() + found.count, expected.begin()));
  }
  const bool is_forced =
      found.count == 1 && !found.is_won && game.legal_actions(state, expected.data()) > 1;
  num_won += found.is_won;
  num_lost += found.is_lost;
  num_forced += is_forced;
}

// Plays a random game on few lines, so that rows occur, and avoids most moves that win.
template <Game G>
void check_game(const G& game, uint64_t index, int num_cells_used, int every) {
  Rng rng(1, 0, index, 0, Purpose::kTest);
  typename G::State state = game.initial_state();
  std::vector<uint16_t> legal(kMost);
  for (int ply = 0; game.outcome(state) == Outcome::kOngoing; ++ply) {
    if (ply % every == 0) check_position(game, state);
    const int count = game.legal_actions(state, legal.data());
    const int most = std::min(count, num_cells_used);
    int action = legal[rng.below(static_cast<uint32_t>(most))];
    if (wins_at_once(game, state, action) && rng.below(8) != 0) {
      action = legal[rng.below(static_cast<uint32_t>(count))];
    }
    game.apply(state, action);
  }
  check_position(game, state);  // no actions after the end
}

}  // namespace

int main() {
  for (const std::string name : {"tictactoe", "connect4", "gomoku/5", "gomoku/6/exact", "gomoku/9",
                                 "gomoku/9/exact", "gomoku/15", "gomoku/19/exact"}) {
    num_won = num_lost = num_forced = 0;
    const bool is_large = name.starts_with("gomoku/1");
    with_game(name, [&](const auto& game) {
      if constexpr (HasDecisive<std::remove_cvref_t<decltype(game)>>) {
        for (uint64_t index = 0; index < (is_large ? 6 : 60); ++index) {
          check_game(game, index, is_large ? 40 : 25, is_large ? 7 : 1);
        }
      } else {
        TENGEN_CHECK(false);
      }
    });
    TENGEN_CHECK(num_won > 0);
    TENGEN_CHECK(num_forced > 0);
    if (name == "connect4" || name == "gomoku/9") TENGEN_CHECK(num_lost > 0);
  }
  return 0;
}
