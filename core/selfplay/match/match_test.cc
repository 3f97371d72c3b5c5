#include "selfplay/match/match.h"

#include <algorithm>
#include <thread>

#include "base/testing.h"
#include "games/connect4/connect4.h"
#include "games/tictactoe/tictactoe.h"
#include "selfplay/testing.h"

using namespace tengen;

namespace {

MatchPlayer player_of(MatchPlayer::Kind kind, int num_simulations) {
  MatchPlayer player;
  player.kind = kind;
  player.num_simulations = num_simulations;
  return player;
}

MatchSettings settings_of(MatchPlayer player0, MatchPlayer player1) {
  MatchSettings settings;
  settings.players[0] = player0;
  settings.players[1] = player1;
  settings.cache_bytes = 1 << 16;
  return settings;
}

std::shared_ptr<GameQueue> queue_of(uint32_t num_games, std::vector<uint32_t> finished = {}) {
  return std::make_shared<GameQueue>(Generation{5, 0, 0, num_games, std::move(finished)});
}

// Plays until the match or `num_wanted` games are finished. Returns the games sorted by index.
template <Game G>
std::vector<MatchGame> play(const G& game, const MatchSettings& settings,
                            const std::shared_ptr<GameQueue>& queue, size_t num_wanted = SIZE_MAX) {
  Match<G> match(game, settings, queue);
  while (!match.finished()) {
    for (const int player : {0, 1}) {
      Port& port = match.port(player);
      const int num_rows = port.next();
      for (int row = 0; row < num_rows; ++row) evaluate_row(port.buffers(), row);
      if (num_rows > 0) port.done();
    }
    if (match.games().size() >= num_wanted) queue->stop();
  }
  TENGEN_CHECK(match.port(0).next() == 0 && match.port(1).next() == 0);
  std::vector<MatchGame> games = match.games();
  std::sort(games.begin(), games.end(),
            [](const MatchGame& a, const MatchGame& b) { return a.index < b.index; });
  return games;
}

void check_same(const MatchGame& a, const MatchGame& b) {
  TENGEN_CHECK(a.index == b.index && a.first_player == b.first_player);
  TENGEN_CHECK(a.outcome == b.outcome && a.moves == b.moves);
  TENGEN_CHECK(a.num_opening_plies == b.num_opening_plies);
}

// A player resigns at the third own search in a row below its limit, and never at -1.
void check_resignation() {
  const Connect4 game;
  MatchPlayer whole = player_of(MatchPlayer::Kind::kNetwork, 4);
  MatchPlayer timid = whole;
  timid.resign_below = 0.999f;
  for (const MatchGame& one : play(game, settings_of(timid, whole), queue_of(20))) {
    const size_t num_own = one.first_player == 0 ? 4u : 5u;
    TENGEN_CHECK(one.value_of_player0() == -1.0f);
    TENGEN_CHECK(one.moves.size() <= one.num_opening_plies + num_own);
  }
  MatchPlayer stubborn = whole;
  stubborn.resign_below = -1.0f;
  const auto played = play(game, settings_of(stubborn, whole), queue_of(20));
  const auto expected = play(game, settings_of(whole, whole), queue_of(20));
  for (size_t i = 0; i < played.size(); ++i) check_same(played[i], expected[i]);
}

template <Game G>
void check_match(const G& game, MatchSettings settings) {
  settings.num_slots = 4;
  const std::vector<MatchGame> expected = play(game, settings, queue_of(12));
  TENGEN_CHECK(expected.size() == 12);
  for (const int num_slots : {1, 16, 64}) {
    settings.num_slots = num_slots;
    const std::vector<MatchGame> games = play(game, settings, queue_of(12));
    TENGEN_CHECK(games.size() == expected.size());
    for (size_t i = 0; i < games.size(); ++i) check_same(games[i], expected[i]);
  }
  // Games that were played before are skipped, and the other games do not change.
  const std::vector<MatchGame> part = play(game, settings, queue_of(12, {0, 1, 4, 11}));
  TENGEN_CHECK(part.size() == 8);
  for (const MatchGame& played : part) check_same(played, expected[played.index]);
  TENGEN_CHECK(part[0].index == 2 && part[2].index == 5 && part[7].index == 10);
  TENGEN_CHECK(play(game, settings, queue_of(2, {0, 1})).empty());
}

// Two threads share the games of a match. Each game is played once; the lowest indices start first.
void check_shared_queue(const MatchSettings& settings) {
  const Connect4 game;
  const std::vector<MatchGame> expected = play(game, settings, queue_of(40));
  const auto queue = queue_of(40);
  std::vector<MatchGame> parts[2];
  std::thread other([&] { parts[1] = play(game, settings, queue); });
  parts[0] = play(game, settings, queue);
  other.join();
  TENGEN_CHECK(parts[0].size() + parts[1].size() == expected.size());
  std::vector<MatchGame> games = parts[0];
  games.insert(games.end(), parts[1].begin(), parts[1].end());
  std::sort(games.begin(), games.end(),
            [](const MatchGame& a, const MatchGame& b) { return a.index < b.index; });
  for (size_t i = 0; i < games.size(); ++i) check_same(games[i], expected[i]);
  // When a game ends, all lower indices have started, so at most the other slots are unfinished.
  Match<Connect4> match(game, settings, queue_of(40));
  while (!match.finished()) {
    for (const int player : {0, 1}) {
      Port& port = match.port(player);
      const int num_rows = port.next();
      for (int row = 0; row < num_rows; ++row) evaluate_row(port.buffers(), row);
      if (num_rows > 0) port.done();
    }
    for (const MatchGame& played : match.games()) {
      TENGEN_CHECK(played.index < match.games().size() + static_cast<size_t>(settings.num_slots));
    }
  }
}

}  // namespace

int main() {
  using Kind = MatchPlayer::Kind;
  const MatchPlayer random = player_of(Kind::kRandom, 0);
  const MatchPlayer mcts = player_of(Kind::kMcts, 30);
  const MatchPlayer weak = player_of(Kind::kNetwork, 4);
  MatchPlayer gumbel = player_of(Kind::kNetwork, 20);
  gumbel.search.policy = RootPolicy::kGumbel;
  const Connect4 connect4;
  for (const MatchPlayer& player : {random, mcts, weak, gumbel}) {
    check_match(connect4, settings_of(player, mcts));
    check_match(connect4, settings_of(weak, player));
  }
  check_match(TicTacToe(), settings_of(gumbel, random));
  check_resignation();

  // Stopping a queue keeps finished games.
  MatchSettings settings = settings_of(weak, gumbel);
  const std::vector<MatchGame> all = play(connect4, settings, queue_of(200));
  const std::vector<MatchGame> some = play(connect4, settings, queue_of(200), 5);
  TENGEN_CHECK(some.size() >= 5 && some.size() < 100);
  for (const MatchGame& game : some) check_same(game, all[game.index]);

  // Two equal players score the same with either colour in every pair.
  const std::vector<MatchGame> mirror = play(connect4, settings_of(gumbel, gumbel), queue_of(20));
  for (size_t i = 0; i < mirror.size(); i += 2) {
    TENGEN_CHECK(mirror[i].moves == mirror[i + 1].moves);
  }

  // mcts beats random.
  float total = 0.0f;
  for (const MatchGame& game : play(connect4, settings_of(mcts, random), queue_of(60))) {
    total += game.value_of_player0();
  }
  TENGEN_CHECK(total > 40.0f);
  settings.num_slots = 3;
  check_shared_queue(settings);
  return 0;
}
