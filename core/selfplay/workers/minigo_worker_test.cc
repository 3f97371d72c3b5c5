// Self-play with the search of the MLPerf benchmark minigo: games depend only on their index.

#include "selfplay/workers/minigo_worker.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/testing.h"
#include "games/connect4/connect4.h"
#include "games/go/testing.h"
#include "games/gomoku/gomoku.h"
#include "games/tictactoe/tictactoe.h"
#include "selfplay/testing.h"

using namespace tengen;

namespace {

SelfplaySettings make_settings() {
  SelfplaySettings settings;
  settings.search.policy = RootPolicy::kMinigo;
  settings.search.noise_weight = 0.3f;
  settings.full_simulations = 20;
  settings.cheap_simulations = 5;
  settings.full_probability = 0.4f;
  settings.soft_pick_plies = 6;
  settings.settled_playout_share = 0.0f;
  return settings;
}

// The record is a legal game and its targets match its positions. Returns how many full plies made
// additional simulations.
template <Game G>
int check_record(const G& game, const SelfplaySettings& settings, const GameRecord& record) {
  auto state = game.initial_state();
  for (const uint16_t action : record.opening) game.apply(state, action);
  const int most = settings.search.minigo_virtual_losses - 1;  // beyond the requested number
  int most_kept = 0;                                           // visits of the root before a search
  int num_made_up = 0;
  bool is_first = true;
  for (const PlyRecord& ply : record.plies) {
    const bool is_full = ply.policy_weight > 0.0f;
    TENGEN_CHECK(!is_first || is_full);
    is_first = false;
    TENGEN_CHECK(ply.policy.empty() != is_full);
    for (const auto& [action, weight] : ply.policy) {
      TENGEN_CHECK(weight > 0 && game.is_legal(state, action));
    }
    const int budget = is_full ? settings.full_simulations : settings.cheap_simulations;
    const int made = static_cast<int>(ply.num_simulations);
    // A full ply without a tree makes up for the visits; the previous root had one more.
    const bool makes_up = is_full && settings.full_probability < 1.0f;
    TENGEN_CHECK(made >= budget && made <= budget + most + (makes_up ? most_kept : 0));
    num_made_up += made > budget + most;
    most_kept = std::max((makes_up ? made : most_kept + made) - 1, 0);
    TENGEN_CHECK(std::abs(ply.root_value) <= 1.0f && game.is_legal(state, ply.action));
    game.apply(state, ply.action);
  }
  TENGEN_CHECK(decode(encode(record)) == record);
  return num_made_up;
}

// Threads, slots, batches and the cache do not affect a game.
template <Game G>
void check_same_games(const G& game, const SelfplaySettings& settings, uint32_t num_games) {
  const std::vector<GameRecord> expected = play(game, settings, Setup{}, num_games);
  TENGEN_CHECK(expected.size() == num_games);
  int num_made_up = 0;
  for (const GameRecord& record : expected) num_made_up += check_record(game, settings, record);
  TENGEN_CHECK((num_made_up > 0) == (settings.full_probability < 1.0f));
  TENGEN_CHECK(expected[0].plies != expected[1].plies);
  const Setup setups[] = {{1, 1, 1 << 20, {}}, {2, 3, 1 << 14, {}}, {3, 8, 0, {}}};
  for (const Setup& setup : setups)
    TENGEN_CHECK(play(game, settings, setup, num_games) == expected);
}

// A batch has several leaves of each game, and each is counted once.
void check_counts() {
  SelfplaySettings settings = make_settings();
  settings.num_slots = 3;
  settings.cache_bytes = 0;
  const auto queue = std::make_shared<GameQueue>(Generation{7, 3, 2, 6, {}});
  const auto sink = std::make_shared<MemorySink>();
  const auto worker = make_selfplay_worker(Connect4(), settings, queue, sink);
  TENGEN_CHECK(worker->buffers().capacity == 12);
  int most_rows = 0;
  uint64_t num_rows = 0;
  TENGEN_CHECK(worker->next() == 3);  // roots
  TENGEN_CHECK(throws([&] { worker->next(); }));
  for (int rows = 3; rows > 0; rows = worker->next()) {
    most_rows = std::max(most_rows, rows);
    num_rows += static_cast<uint64_t>(rows);
    for (int row = 0; row < rows; ++row) evaluate_row(worker->buffers(), row);
    worker->done();
  }
  TENGEN_CHECK(most_rows > 6 && worker->stats().num_evaluations == num_rows);
  uint64_t num_simulations = 0;
  uint64_t num_full = 0;
  uint64_t num_plies = 0;
  for (const GameRecord& record : sink->sorted()) {
    for (const PlyRecord& ply : record.plies) {
      num_simulations += ply.num_simulations;
      num_full += ply.policy_weight > 0.0f;
      ++num_plies;
    }
  }
  const WorkerStats stats = worker->stats();
  TENGEN_CHECK(stats.num_rows == num_full && stats.num_games == 6);
  // A side may have resigned after a search without a recorded ply.
  TENGEN_CHECK(stats.num_plies >= num_plies && stats.num_plies <= num_plies + 6);
  TENGEN_CHECK(stats.num_simulations >= num_simulations);
}

// If passing is not allowed, a pass is played only if nothing else is legal.
void check_may_not_pass() {
  const Go game = go_game("go/3/nosuicide");
  SelfplaySettings settings = make_settings();
  settings.full_probability = 1.0f;
  settings.resign_from = 1.0f;
  settings.soft_pick_plies = 0;
  int num_passes[2] = {0, 0};
  for (const bool may_pass : {false, true}) {
    settings.may_pass = may_pass;
    for (const GameRecord& record : play(game, settings, Setup{}, 6)) {
      auto state = game.initial_state();
      for (const PlyRecord& ply : record.plies) {
        uint16_t legal[10];
        const bool has_other = game.legal_actions(state, legal) > 1;
        num_passes[may_pass] += ply.action == 9 && has_other;
        game.apply(state, ply.action);
      }
    }
  }
  TENGEN_CHECK(num_passes[0] == 0 && num_passes[1] > 0);
}

// A side resigns if its root value is below the game's threshold, and then loses.
void check_resignation() {
  SelfplaySettings settings = make_settings();
  settings.resign_from = 0.0f;
  int num_resigned = 0;
  for (const GameRecord& record : play(Gomoku(7), settings, Setup{}, 12)) {
    const Gomoku game(7);
    auto state = game.initial_state();
    const float bound =
        resignation_value(settings, Rng(7, 3, record.game_index, 0, Purpose::kResignation));
    for (const PlyRecord& ply : record.plies) {
      TENGEN_CHECK(ply.root_value >= bound);
      game.apply(state, ply.action);
    }
    if (game.outcome(state) != Outcome::kOngoing) continue;
    ++num_resigned;
    TENGEN_CHECK(value_to_first(record.outcome) == (game.to_play(state) == 0 ? -1.0f : 1.0f));
  }
  TENGEN_CHECK(num_resigned > 0);
}

// A target without pruning has every visit; the games do not change.
void check_pruning() {
  SelfplaySettings settings = make_settings();
  settings.full_probability = 1.0f;
  settings.soft_pick_plies = 0;
  const std::vector<GameRecord> pruned = play(Gomoku(7), settings, Setup{}, 4);
  settings.prunes_target = false;
  const std::vector<GameRecord> whole = play(Gomoku(7), settings, Setup{}, 4);
  size_t num_more = 0;
  for (size_t game = 0; game < 4; ++game) {
    TENGEN_CHECK(pruned[game].plies.size() == whole[game].plies.size());
    for (size_t ply = 0; ply < whole[game].plies.size(); ++ply) {
      TENGEN_CHECK(pruned[game].plies[ply].action == whole[game].plies[ply].action);
      TENGEN_CHECK(pruned[game].plies[ply].policy.size() <= whole[game].plies[ply].policy.size());
      num_more += pruned[game].plies[ply].policy.size() < whole[game].plies[ply].policy.size();
    }
  }
  TENGEN_CHECK(num_more > 10);
}

}  // namespace

int main() {
  SelfplaySettings settings = make_settings();
  check_same_games(TicTacToe(), settings, 12);
  check_same_games(Gomoku(7), settings, 6);
  settings.max_opening_plies = 3;
  check_same_games(go_game("go/5/nosuicide"), settings, 6);
  settings.full_probability = 1.0f;
  settings.search.minigo_virtual_losses = 1;
  check_same_games(Connect4(), settings, 6);
  check_counts();
  check_may_not_pass();
  check_resignation();
  check_pruning();
  return 0;
}
