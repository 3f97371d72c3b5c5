// Compares the decisive actions of each game with those that playing all pairs of moves finds, in
// random games.

#include "games/decisive.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "games/connect4/connect4.h"
#include "games/gomoku/gomoku.h"
#include "games/registry/registry.h"

using namespace tengen;

namespace {

constexpr int kMost = 19 * 19 + 1;
int num_won = 0;
int num_lost = 0;
int num_forced = 0;
int num_by_force = 0;

// Plays the decisive action of a won position, and then each reply. Returns the number of own moves
// until the last one of these games is won.
template <Game G>
int check_forced_win(const G& game, const typename G::State& state) {
  std::vector<uint16_t> actions(kMost);
  TENGEN_CHECK(game.decisive_actions(state, actions.data()).is_won);
  typename G::State next = state;
  game.apply(next, actions[0]);
  const bool is_first = game.to_play(state) == 0;
  if (game.outcome(next) != Outcome::kOngoing) {
    TENGEN_CHECK(game.outcome(next) == (is_first ? Outcome::kFirstWins : Outcome::kSecondWins));
    return 1;
  }
  int most = 0;
  const int count = game.legal_actions(next, actions.data());
  TENGEN_CHECK(count > 0);
  for (int i = 0; i < count; ++i) {
    typename G::State reply = next;
    game.apply(reply, actions[static_cast<size_t>(i)]);
    TENGEN_CHECK(game.outcome(reply) == Outcome::kOngoing);
    most = std::max(most, check_forced_win(game, reply));
  }
  return most + 1;
}

// Whether a game in which each move threatens to win at once is won, found with all legal moves.
// Counts the threats that can be parried.
template <Game G>
bool wins_by_force(const G& game, const typename G::State& state, int& num_threats) {
  std::vector<uint16_t> near(kMost), far(kMost);
  const Decisive now = find_decisive<kMost>(game, state, near.data());
  if (now.is_won) return true;
  if (now.is_lost) return false;
  for (int i = 0; i < now.count; ++i) {
    typename G::State next = state;
    game.apply(next, near[static_cast<size_t>(i)]);
    if (game.outcome(next) != Outcome::kOngoing) continue;
    const Decisive then = find_decisive<kMost>(game, next, far.data());
    if (then.is_lost) return true;
    if (then.count != 1) continue;  // no threat
    ++num_threats;
    typename G::State reply = next;
    game.apply(reply, far[0]);
    if (game.outcome(reply) != Outcome::kOngoing) continue;
    if (wins_by_force(game, reply, num_threats)) return true;
  }
  return false;
}

template <Game G>
void check_position(const G& game, const typename G::State& state) {
  std::vector<uint16_t> actions(kMost, 0xfefe);
  std::vector<uint16_t> expected(kMost, 0xfefe);
  const Decisive found = game.decisive_actions(state, actions.data());
  const Decisive slow = find_decisive<kMost>(game, state, expected.data());
  if (found.is_won && !slow.is_won) {
    // It has no further move if it is lost otherwise.
    TENGEN_CHECK(found.count == 1 && check_forced_win(game, state) > 1);
    ++num_by_force;
    return;
  }
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

// What is found around the last moves is equal to what is found on the complete board.
// Returns the number of threats found.
template <HasForcingAfter G>
int check_after(const G& game, uint64_t index) {
  Rng rng(3, 0, index, 0, Purpose::kTest);
  int num_after = 0;
  auto state = game.initial_state();
  std::vector<uint16_t> actions(kMost), forcing(kMost), found(kMost), expected(kMost);
  const auto play_any = [&](auto& from) {
    const int count = game.legal_actions(from, actions.data());
    const int most = std::min(count, 14);
    game.apply(from, actions[rng.below(static_cast<uint32_t>(most))]);
  };
  // Plays a move that the rules do not refute at once. Returns false if there is none.
  const auto play = [&](auto& from) {
    const Near before = game.near_actions(from, actions.data());
    if (before.is_won || before.is_lost || (before.count == 0 && !before.is_open)) return false;
    if (before.is_open) {
      play_any(from);
    } else {
      game.apply(from, actions[0]);
    }
    const Near after = game.near_after(from, found.data());
    const Near wanted = game.near_actions(from, expected.data());
    TENGEN_CHECK(after.is_open == wanted.is_open && after.count == wanted.count);
    TENGEN_CHECK(after.is_won == wanted.is_won && after.is_lost == wanted.is_lost);
    TENGEN_CHECK(std::equal(found.begin(), found.begin() + after.count, expected.begin()));
    num_after += after.count;
    return true;
  };
  while (game.outcome(state) == Outcome::kOngoing) {
    const int num_forcing = game.forcing_actions(state, forcing.data());
    auto next = state;
    if (!play(next)) break;
    const int action = next.last_move;
    if (game.outcome(next) != Outcome::kOngoing || !play(next)) break;
    const int num_found =
        game.forcing_after(next, forcing.data(), num_forcing, action, found.data());
    const int num_wanted = game.forcing_actions(next, expected.data());
    TENGEN_CHECK(std::is_sorted(found.begin(), found.begin() + num_found));
    TENGEN_CHECK(std::includes(found.begin(), found.begin() + num_found, expected.begin(),
                               expected.begin() + num_wanted));
    for (int i = 0; i < num_found; ++i) {
      TENGEN_CHECK(game.is_legal(next, found[static_cast<size_t>(i)]));
    }
    game.apply(state, action);
  }
  return num_after;
}

// The wins by force are those that playing all moves finds, unless they need many threats.
template <HasForcing G>
void check_wins_by_force(const G& game, int num_plies) {
  std::vector<uint16_t> actions(kMost);
  int num_found = 0;
  int num_complete = 0;
  for (uint64_t index = 0; index < 60; ++index) {
    Rng rng(2, 0, index, 0, Purpose::kTest);
    auto state = game.initial_state();
    for (int ply = 0; ply < num_plies && game.outcome(state) == Outcome::kOngoing; ++ply) {
      if (ply > 6) {
        int num_threats = 0;
        const bool is_won = wins_by_force(game, state, num_threats);
        const bool is_found = game.decisive_actions(state, actions.data()).is_won;
        TENGEN_CHECK(is_won || !is_found);
        if (num_threats <= kMostThreats) {
          TENGEN_CHECK(is_found == is_won);
          num_complete += is_won;
        }
        num_found += is_found;
      }
      const int count = game.legal_actions(state, actions.data());
      game.apply(state, actions[rng.below(static_cast<uint32_t>(std::min(count, 20)))]);
    }
  }
  TENGEN_CHECK(num_found > 20 && num_complete > 20);
}

int main() {
  int num_after = 0;
  for (uint64_t index = 0; index < 200; ++index) {
    num_after += check_after(Gomoku(6), index);
    num_after += check_after(Gomoku(9), index);
    num_after += check_after(Gomoku(15), index);
    num_after += check_after(Gomoku(8, true), index);
  }
  TENGEN_CHECK(num_after > 1000);
  check_wins_by_force(Gomoku(7), 16);
  check_wins_by_force(Connect4(), 42);
  for (const std::string name : {"tictactoe", "connect4", "gomoku/5", "gomoku/6/exact", "gomoku/9",
                                 "gomoku/9/exact", "gomoku/15", "gomoku/19/exact"}) {
    num_won = num_lost = num_forced = num_by_force = 0;
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
    TENGEN_CHECK(num_by_force > 0 || !name.starts_with("gomoku/9"));
  }
  return 0;
}
