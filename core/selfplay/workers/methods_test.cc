// The effects of openings, decided games and surprise weighting on complete games.

#include <algorithm>
#include <cmath>
#include <set>

#include "base/testing.h"
#include "games/connect4/connect4.h"
#include "games/gomoku/gomoku.h"
#include "games/tictactoe/tictactoe.h"
#include "records/game_record.h"
#include "selfplay/openings/opening.h"
#include "selfplay/testing.h"

using namespace tengen;

namespace {

SelfplaySettings make_settings() {
  SelfplaySettings settings;
  settings.full_simulations = 24;
  settings.cheap_simulations = 8;
  return settings;
}

float total_weight(const GameRecord& record) {
  float total = 0.0f;
  for (const PlyRecord& ply : record.plies) total += ply.policy_weight;
  return total;
}

// With all methods enabled a game still depends only on its index.
template <Game G>
void check_all_methods(const G& game, RootPolicy policy) {
  SelfplaySettings settings = make_settings();
  settings.search.policy = policy;
  settings.search.forced_playouts = 2.0f;
  settings.search.noise_shaped = true;
  settings.search.cpuct_stdev_scale = 0.85f;
  settings.search.lcb_stdevs = 5.0f;
  settings.full_probability = 0.5f;
  settings.max_opening_plies = 2;
  settings.policy_opening_plies = 1.5f;
  settings.reduce_above = 0.1f;
  settings.resign_above = 0.2f;
  settings.resign_playout_share = 0.2f;
  settings.policy_surprise_share = 0.5f;
  settings.value_surprise_share = 0.1f;
  Setup setup;
  setup.may_resign = true;
  const std::vector<GameRecord> expected = play(game, settings, setup, 16);
  TENGEN_CHECK(expected.size() == 16);
  for (const GameRecord& record : expected) TENGEN_CHECK(decode(encode(record)) == record);
  check_same_games(game, settings, setup, expected);
}

// The number of plies is exponentially distributed, rounded down: P(n >= k) = exp(-k / mean).
void check_num_policy_plies() {
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  int num_zero = 0;
  int num_past_four = 0;
  for (int i = 0; i < 10000; ++i) {
    const uint32_t n = num_policy_plies(2.0f, rng);
    num_zero += n == 0;
    num_past_four += n >= 4;
    TENGEN_CHECK(num_policy_plies(0.0f, rng) == 0);
  }
  // The expected counts are 3935 and 1353, with standard deviations of 49 and 34.
  TENGEN_CHECK(std::abs(num_zero - 3935) < 250 && std::abs(num_past_four - 1353) < 180);
}

void check_policy_openings() {
  const Connect4 game;
  SelfplaySettings settings = make_settings();
  settings.policy_opening_plies = 3.0f;
  std::set<std::vector<uint16_t>> openings;
  size_t longest = 0;
  for (const GameRecord& record : play(game, settings, Setup{}, 60)) {
    auto state = game.initial_state();
    for (const uint16_t action : record.opening) {
      TENGEN_CHECK(game.is_legal(state, action));
      game.apply(state, action);
      TENGEN_CHECK(game.outcome(state) == Outcome::kOngoing);
    }
    TENGEN_CHECK(record.num_opening_plies == record.opening.size());
    TENGEN_CHECK(!record.plies.empty());
    openings.insert(record.opening);
    longest = std::max(longest, record.opening.size());
  }
  TENGEN_CHECK(openings.size() > 30 && longest >= 6);

  // At a low temperature, openings consist of the network's preferred moves.
  settings.policy_opening_temperature = 0.005f;
  std::set<uint16_t> firsts;
  for (const GameRecord& record : play(game, settings, Setup{}, 30)) {
    if (!record.opening.empty()) firsts.insert(record.opening[0]);
  }
  TENGEN_CHECK(firsts.size() == 1);

  // Openings stop before a move that would end the game.
  settings.policy_opening_plies = 1e8f;
  settings.policy_opening_temperature = 1.0f;
  for (const GameRecord& record : play(TicTacToe(), settings, Setup{}, 40)) {
    TENGEN_CHECK(record.opening.size() >= 4 && record.plies.size() >= 1);
  }
}

// Only searches in decided games are reduced, together with the weights of their rows.
void check_reduced_searches() {
  SelfplaySettings settings = make_settings();
  settings.reduce_above = 0.05f;
  settings.reduced_weight = 0.25f;
  int num_reduced = 0;
  for (const GameRecord& record : play(Gomoku(7), settings, Setup{}, 6)) {
    for (size_t i = 0; i < record.plies.size(); ++i) {
      const PlyRecord& ply = record.plies[i];
      const float weight = ply.policy_weight;
      TENGEN_CHECK(ply.value_weight == weight && weight >= 0.25f && weight <= 1.0f);
      const float share = (1.0f - weight) / 0.75f;
      const auto budget = static_cast<uint32_t>(std::lround(24.0f - 16.0f * share));
      const bool may_be_settled = ply.root_value == std::round(ply.root_value);
      TENGEN_CHECK(ply.num_simulations == budget || may_be_settled);
      num_reduced += weight < 1.0f;
      if (weight == 1.0f) continue;
      // The three previous searches agreed on the winner.
      TENGEN_CHECK(i >= 3);
      TENGEN_CHECK((record.plies[i - 1].root_value > 0) != (record.plies[i - 2].root_value > 0));
      TENGEN_CHECK((record.plies[i - 2].root_value > 0) != (record.plies[i - 3].root_value > 0));
    }
  }
  TENGEN_CHECK(num_reduced > 10);
}

// Games are resigned only if that is allowed, except for a share of them. Plies do not change.
void check_resignation() {
  const Gomoku game(7);
  SelfplaySettings settings = make_settings();
  settings.resign_above = 0.02f;
  const auto full = play(game, settings, Setup{}, 40);
  Setup setup;
  setup.may_resign = true;
  for (const float share : {0.25f, 1.0f}) {
    settings.resign_playout_share = share;
    const auto games = play(game, settings, setup, 40);
    int num_resigned = 0;
    for (size_t i = 0; i < games.size(); ++i) {
      const GameRecord& record = games[i];
      TENGEN_CHECK(record.plies.size() <= full[i].plies.size());
      if (record == full[i]) continue;
      ++num_resigned;
      TENGEN_CHECK(record.plies.size() >= kResignPlies);
      TENGEN_CHECK(record.outcome != Outcome::kDraw);
      const float sign = (record.num_opening_plies + record.plies.size() - 1) % 2 == 0 ? 1 : -1;
      const float last = sign * record.plies.back().root_value;
      TENGEN_CHECK((last > 0) == (record.outcome == Outcome::kFirstWins));
      for (size_t k = 0; k < record.plies.size(); ++k) {
        TENGEN_CHECK(record.plies[k] == full[i].plies[k]);
      }
    }
    TENGEN_CHECK(share == 1.0f ? num_resigned == 0 : num_resigned > 8 && num_resigned < 38);
  }
}

// Surprise weighting changes only weights, and turns some cheap searches into rows.
void check_surprise() {
  const Gomoku game(7);
  SelfplaySettings settings = make_settings();
  settings.full_probability = 0.4f;
  const auto plain = play(game, settings, Setup{}, 10);
  settings.policy_surprise_share = 0.5f;
  settings.value_surprise_share = 0.1f;
  const auto weighed = play(game, settings, Setup{}, 10);
  int num_cheap_rows = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    TENGEN_CHECK(plain[i].plies.size() == weighed[i].plies.size());
    const float before = total_weight(plain[i]);
    const auto num_plies = static_cast<float>(plain[i].plies.size());
    TENGEN_CHECK(std::abs(total_weight(weighed[i]) - before) < num_plies / 64.0f);
    std::set<float> weights;
    for (size_t k = 0; k < plain[i].plies.size(); ++k) {
      PlyRecord ply = weighed[i].plies[k];
      const PlyRecord& other = plain[i].plies[k];
      weights.insert(ply.policy_weight);
      TENGEN_CHECK(ply.value_weight == ply.policy_weight);
      TENGEN_CHECK(ply.policy.empty() == (ply.policy_weight == 0.0f));
      if (other.policy_weight == 1.0f) TENGEN_CHECK(ply.policy_weight >= 0.4f);
      num_cheap_rows += other.policy_weight == 0.0f && ply.policy_weight > 0.0f;
      ply.policy_weight = ply.value_weight = other.policy_weight;
      if (other.policy_weight == 0.0f) ply.policy.clear();
      TENGEN_CHECK(ply == other);
    }
    TENGEN_CHECK(weights.size() > 5);
  }
  TENGEN_CHECK(num_cheap_rows > 0);
}

}  // namespace

int main() {
  for (const RootPolicy policy : {RootPolicy::kPuct, RootPolicy::kGumbel}) {
    check_all_methods(Connect4(), policy);
    check_all_methods(Gomoku(7), policy);
  }
  check_num_policy_plies();
  check_policy_openings();
  check_reduced_searches();
  check_resignation();
  check_surprise();
  return 0;
}
