#include "selfplay/openings/opening.h"

#include <set>

#include "base/testing.h"
#include "games/connect4/connect4.h"
#include "selfplay/match/match.h"
#include "selfplay/testing.h"

using namespace tengen;

namespace {

using Moves = std::vector<uint16_t>;

const std::vector<Moves> kBook = {{3}, {3, 3}, {2, 4, 3}, {}};

bool starts_with(const Moves& moves, const Moves& opening) {
  return moves.size() >= opening.size() &&
         std::equal(opening.begin(), opening.end(), moves.begin());
}

// About the requested share of games starts with an opening of the book, and each opening occurs.
void check_selfplay() {
  const Connect4 game;
  SelfplaySettings settings;
  settings.full_simulations = 4;
  settings.max_opening_plies = 6;
  Setup setup;
  const std::vector<GameRecord> without = play(game, settings, setup, 200);
  setup.openings = kBook;
  // An unused book changes nothing.
  TENGEN_CHECK(play(game, settings, setup, 200) == without);
  settings.book_share = 0.5f;
  const std::vector<GameRecord> records = play(game, settings, setup, 200);
  int num_same = 0;
  for (const GameRecord& record : records) num_same += record == without[record.game_index];
  TENGEN_CHECK(num_same > 70 && num_same < 130);
  settings.book_share = 1.0f;
  std::set<Moves> seen;
  const std::vector<GameRecord> all = play(game, settings, setup, 60);
  for (const GameRecord& record : all) {
    TENGEN_CHECK(std::count(kBook.begin(), kBook.end(), record.opening) == 1);
    TENGEN_CHECK(record.num_opening_plies == record.opening.size());
    seen.insert(record.opening);
  }
  TENGEN_CHECK(seen.size() == kBook.size());
  setup.num_threads = 3;
  setup.num_slots = 16;
  TENGEN_CHECK(play(game, settings, setup, 60) == all);
}

std::vector<MatchGame> play_match(uint64_t seed, uint32_t num_games,
                                  const std::vector<Moves>& openings, int num_random) {
  const Connect4 game;
  MatchSettings settings;
  settings.players[0].kind = settings.players[1].kind = MatchPlayer::Kind::kRandom;
  settings.num_opening_plies = num_random;
  Generation generation{seed, 0, 0, num_games, {}};
  generation.openings = openings;
  Match<Connect4> match(game, settings, std::make_shared<GameQueue>(generation));
  while (!match.finished()) {
    for (const int player : {0, 1}) match.port(player).next();
  }
  std::vector<MatchGame> games = match.games();
  std::sort(games.begin(), games.end(),
            [](const MatchGame& a, const MatchGame& b) { return a.index < b.index; });
  return games;
}

// Both games of a pair share an opening; every opening is used before one repeats, in an order
// given by the seed.
void check_match() {
  std::set<std::vector<size_t>> orders;
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    const std::vector<MatchGame> games = play_match(seed, 16, kBook, 0);
    std::vector<size_t> order;
    for (const MatchGame& played : games) {
      const MatchGame& twin = games[played.index ^ 1];
      TENGEN_CHECK(played.num_opening_plies == twin.num_opening_plies);
      const Moves opening(played.moves.begin(), played.moves.begin() + played.num_opening_plies);
      TENGEN_CHECK(starts_with(twin.moves, opening));
      const auto found = std::find(kBook.begin(), kBook.end(), opening);
      TENGEN_CHECK(found != kBook.end());
      if (played.index % 2 == 0) order.push_back(static_cast<size_t>(found - kBook.begin()));
    }
    for (const size_t first : {0, 4}) {
      const auto begin = order.begin() + static_cast<ptrdiff_t>(first);
      TENGEN_CHECK(std::set<size_t>(begin, begin + 4).size() == 4);
    }
    orders.insert(order);
  }
  TENGEN_CHECK(orders.size() > 2);
  // Random plies follow the opening.
  for (const MatchGame& played : play_match(1, 8, {{3, 3}}, 2)) {
    TENGEN_CHECK(played.num_opening_plies == 4 && starts_with(played.moves, {3, 3}));
  }
}

// Moves that are illegal or end the game.
void check_foreign_openings() {
  for (const Moves& moves : {Moves(7, 3), Moves{9}, Moves{0, 1, 0, 1, 0, 1, 0}}) {
    bool threw = false;
    try {
      play_match(1, 2, {moves}, 0);
    } catch (const Error& error) {
      threw = std::string(error.what()).find("must be legal in connect4 and go on") !=
              std::string::npos;
    }
    TENGEN_CHECK(threw);
  }
}

}  // namespace

int main() {
  check_selfplay();
  check_match();
  check_foreign_openings();
  return 0;
}
