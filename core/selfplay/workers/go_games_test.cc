// Self-play features that only Go has: settled games, variants and scores.

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "base/testing.h"
#include "games/go/testing.h"
#include "selfplay/testing.h"
#include "selfplay/workers/worker.h"

using namespace tengen;

namespace {

SelfplaySettings make_settings(float settled_playout_share) {
  SelfplaySettings settings;
  settings.full_simulations = 12;
  settings.cheap_simulations = 4;
  settings.full_probability = 0.5f;
  settings.settled_playout_share = settled_playout_share;
  return settings;
}

// How a game ended (by its rules, or because it was settled), and whether it was already settled
// before its last move.
struct End {
  bool by_rules = false;
  bool is_settled = false;
  bool was_settled = false;
};

End replay(const Go& game, const GameRecord& record) {
  End end;
  GoState state = initial_state_of(game, record.variant);
  for (const uint16_t action : record.opening) game.apply(state, action);
  for (const PlyRecord& ply : record.plies) {
    end.was_settled = end.was_settled || game.is_settled(state);
    TENGEN_CHECK(game.is_legal(state, ply.action));
    game.apply(state, ply.action);
  }
  end.by_rules = game.outcome(state) != Outcome::kOngoing;
  end.is_settled = game.is_settled(state);
  if (end.by_rules) {
    TENGEN_CHECK(record.outcome == game.outcome(state));
  } else {
    // From here on, a side that always passes loses no stone, whatever the other side plays.
    Rng rng(1, 0, record.game_index, 0, Purpose::kTest);
    std::vector<uint16_t> actions(static_cast<size_t>(game.num_actions()));
    const int player = game.to_play(state);
    const auto kept = static_cast<size_t>(1 - player);
    const PointSet stones = state.stones[kept] & game.pass_alive(state)[kept];
    while (game.outcome(state) == Outcome::kOngoing) {
      const int num_legal = game.legal_actions(state, actions.data());
      const bool may_move = game.to_play(state) == player && num_legal > 1;
      const uint32_t drawn = may_move ? rng.below(static_cast<uint32_t>(num_legal - 1)) : 0;
      game.apply(state, may_move ? actions[drawn] : actions[static_cast<size_t>(num_legal) - 1]);
    }
    TENGEN_CHECK((stones - state.stones[kept]).count() == 0);
  }
  return end;
}

void check_settled_games() {
  const Go game = go_game("go/4");
  int num_settled = 0;
  for (const GameRecord& record : play(game, make_settings(0.0f), Setup{}, 60)) {
    const End end = replay(game, record);
    // The game ends at the first settled position.
    TENGEN_CHECK(!end.was_settled);
    num_settled += !end.by_rules;
  }
  TENGEN_CHECK(num_settled > 5);
  // Games that continue after they are settled end only by their rules.
  int num_played_on = 0;
  for (const GameRecord& record : play(game, make_settings(1.0f), Setup{}, 60)) {
    const End end = replay(game, record);
    TENGEN_CHECK(end.by_rules);
    num_played_on += end.was_settled;
  }
  TENGEN_CHECK(num_played_on > 5);
  int num_of_half = 0;
  for (const GameRecord& record : play(game, make_settings(0.5f), Setup{}, 60)) {
    num_of_half += replay(game, record).was_settled;
  }
  TENGEN_CHECK(num_of_half > 0 && num_of_half < num_played_on);
}

void check_variants() {
  const Go game = go_game("go/5");
  Setup setup;
  setup.variants = {{"", 1.0}, {"go/3/komi=0.5", 1.0}, {"go/5x4/simple", 1.0}};
  const auto games = play(game, make_settings(0.02f), setup, 30);
  std::set<std::string> seen;
  for (const GameRecord& record : games) {
    replay(game, record);
    seen.insert(record.variant);
    TENGEN_CHECK(decode(encode(record)) == record);
  }
  TENGEN_CHECK(seen.size() == 3);
  check_same_games(game, make_settings(0.02f), setup, games);
}

// Plays games with a network that counts stones, on a board of any size.
std::vector<GameRecord> play_by_count(const Go& game, const SelfplaySettings& settings,
                                      const std::string& variant) {
  const Generation generation{.seed = 5, .num_games = 20, .variants = {{variant, 1.0}}};
  const int num_cells = game.height() * game.width();
  return play_by(game, settings, generation, [&](BatchBuffers& buffers, int row) {
    const float* planes = buffers.planes_row(row);
    std::fill_n(buffers.policy_row(row), num_cells + 1, 0.0f);
    const float lead =
        sum_of(planes, kOwnPlane, num_cells) - sum_of(planes, kOpponentPlane, num_cells);
    buffers.value[static_cast<size_t>(row)] = std::clamp(lead / 4.0f, -0.9f, 0.9f);
  });
}

// The moves and row weights of a variant do not depend on the larger board around it.
void check_variants_are_games_of_their_own() {
  SelfplaySettings settings = make_settings(0.02f);
  settings.policy_surprise_share = 0.5f;
  settings.value_surprise_share = 0.3f;
  const auto own = play_by_count(go_game("go/4"), settings, "");
  const auto framed = play_by_count(go_game("go/7"), settings, "go/4");
  const auto in_frame = [](int action) { return action == 16 ? 49 : action / 4 * 7 + action % 4; };
  bool is_weighed = false;
  TENGEN_CHECK(own.size() == 20 && framed.size() == 20);
  for (size_t i = 0; i < own.size(); ++i) {
    TENGEN_CHECK(own[i].outcome == framed[i].outcome);
    TENGEN_CHECK(own[i].plies.size() == framed[i].plies.size());
    for (size_t j = 0; j < own[i].plies.size(); ++j) {
      const PlyRecord &a = own[i].plies[j], &b = framed[i].plies[j];
      TENGEN_CHECK(in_frame(a.action) == b.action);
      TENGEN_CHECK(a.policy_weight == b.policy_weight && a.value_weight == b.value_weight);
      is_weighed = is_weighed || (a.policy_weight != 0.0f && a.policy_weight != 1.0f);
    }
  }
  TENGEN_CHECK(is_weighed);
}

// If the score counts, games change, but they depend neither on cache hits nor on threads.
void check_scores() {
  const Go game = go_game("go/5");
  SelfplaySettings settings = make_settings(0.02f);
  const auto without = play(game, settings, Setup{}, 12);
  settings.search.score_weight = 0.4f;
  Setup setup;
  setup.cache_bytes = 0;
  const auto games = play(game, settings, setup, 12);
  TENGEN_CHECK(games != without);
  for (const GameRecord& record : games) {
    replay(game, record);
    for (const PlyRecord& ply : record.plies) TENGEN_CHECK(std::abs(ply.root_value) <= 1.0f);
  }
  check_same_games(game, settings, setup, games);
}

}  // namespace

int main() {
  check_settled_games();
  check_variants();
  check_variants_are_games_of_their_own();
  check_scores();
  return 0;
}
