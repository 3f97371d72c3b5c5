#include "selfplay/openings/opening.h"

#include <set>

#include "base/testing.h"
#include "games/connect4/connect4.h"
#include "selfplay/testing.h"

using namespace tengen;

namespace {

using Moves = std::vector<uint16_t>;

const std::vector<Moves> kBook = {{3}, {3, 3}, {2, 4, 3}, {}};

// About the requested share of games starts with a book opening, and every opening occurs.
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
  check_same_games(game, settings, setup, all);
}

// Openings with illegal moves, or with a move that ends the game, are rejected.
void check_foreign_openings() {
  SelfplaySettings settings;
  settings.book_share = 1.0f;
  for (const Moves& moves : {Moves(7, 3), Moves{9}, Moves{0, 1, 0, 1, 0, 1, 0}}) {
    Generation generation{.seed = 1, .num_games = 2};
    generation.openings = {moves};
    TENGEN_CHECK(throws([&] { play_by(Connect4(), settings, generation, evaluate_row); }));
  }
}

}  // namespace

int main() {
  check_selfplay();
  check_foreign_openings();
  return 0;
}
