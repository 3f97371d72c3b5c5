// Leads in whole games: evaluators that know the answer, and games that leads do not change.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/testing.h"
#include "games/connect4/connect4.h"
#include "games/go/testing.h"
#include "games/testing.h"
#include "selfplay/testing.h"
#include "selfplay/workers/worker.h"

using namespace tengen;

namespace {

SelfplaySettings make_settings(float lead_share) {
  SelfplaySettings settings;
  settings.full_simulations = 12;
  settings.cheap_simulations = 4;
  settings.full_probability = 0.5f;
  settings.max_opening_plies = 3;
  settings.lead_share = lead_share;
  return settings;
}

// The number of points by which an evaluator expects the side to move to win, including komi.
using Score = float (*)(const float* planes, int num_cells);

float komi_of(const float* planes, int num_cells) {
  return std::round(2.0f * kGoKomiScale * planes[kGoKomiPlane * num_cells]) / 2.0f;
}

// Games in which a position has the value score / scale. Everybody passes once the board is
// settled, and nobody does before.
std::vector<GameRecord> play_by(const Go& game, const SelfplaySettings& settings, Score score,
                                float scale) {
  const Generation generation{.seed = 7, .num_games = 30};
  const int num_cells = game.height() * game.width();
  return play_by(game, settings, generation, [&](BatchBuffers& buffers, int row) {
    evaluate_row(buffers, row);
    const float* planes = buffers.planes_row(row);
    const float num_alive = sum_of(planes, kGoPassAlivePlane, num_cells) +
                            sum_of(planes, kGoPassAlivePlane + 1, num_cells);
    const bool is_settled = num_alive == static_cast<float>(num_cells);
    buffers.policy_row(row)[num_cells] = is_settled ? 40.0f : -40.0f;
    buffers.value[static_cast<size_t>(row)] =
        std::clamp(score(planes, num_cells) / scale, -1.0f, 1.0f);
  });
}

float points(const PlyRecord& ply) { return static_cast<float>(ply.lead) / kLeadsPerPoint; }

// With a network that counts stones and searches of only the root, the lead equals the count, for
// both sides.
void check_counted_stones() {
  const Go game = go_game("go/5/komi=2.5");
  const Score count = [](const float* planes, int num_cells) {
    return sum_of(planes, kOwnPlane, num_cells) - sum_of(planes, kOpponentPlane, num_cells) +
           komi_of(planes, num_cells);
  };
  SelfplaySettings settings = make_settings(1.0f);
  settings.lead_simulations = 0;
  int num_checked[2] = {0, 0};
  for (const GameRecord& record : play_by(game, settings, count, 60.0f)) {
    GoState state = game.initial_state();
    for (const uint16_t action : record.opening) game.apply(state, action);
    for (const PlyRecord& ply : record.plies) {
      TENGEN_CHECK((ply.lead != kNoLead) == (ply.policy_weight > 0.0f));
      const std::vector<float> planes = encoded(game, state, 0);
      const float counted = count(planes.data(), 25);
      // The ply's own search looks ahead and may disagree.
      const bool agrees = ply.root_value * counted > 0.0f && std::abs(counted) > 0.5f;
      if (ply.lead != kNoLead && agrees) {
        TENGEN_CHECK(std::abs(points(ply) - counted) < 0.13f);
        ++num_checked[game.to_play(state)];
      }
      game.apply(state, ply.action);
    }
  }
  TENGEN_CHECK(num_checked[0] > 50 && num_checked[1] > 50);
}

// If everything is settled and the network knows the winner, the lead equals the final score.
void check_ends_of_games() {
  SelfplaySettings settings = make_settings(1.0f);
  settings.settled_playout_share = 1.0f;
  const Score alive = [](const float* planes, int num_cells) {
    return sum_of(planes, kGoPassAlivePlane, num_cells) -
           sum_of(planes, kGoPassAlivePlane + 1, num_cells) + komi_of(planes, num_cells);
  };
  for (const std::string komi : {"/komi=0.5", "/komi=2", "/komi=-3.5"}) {
    const Go game = go_game("go/4" + komi);
    int num_checked = 0;
    for (const GameRecord& record : play_by(game, settings, alive, 0.25f)) {
      GoState state = game.initial_state();
      for (const uint16_t action : record.opening) game.apply(state, action);
      for (const PlyRecord& ply : record.plies) {
        // Dead stones still on the board would count for their side.
        const GoAreas area = game.area(state);
        const GoAreas kept = game.pass_alive(state);
        // The maximum length, at which the board is scored as it stands, must not be near either.
        const bool is_near_end = state.ply + 6 > game.max_plies();
        if (ply.lead != kNoLead && game.is_settled(state) && area == kept && !is_near_end) {
          const float score = game.score(state);
          const float to_play = game.to_play(state) == 0 ? score : -score;
          TENGEN_CHECK(std::abs(points(ply) - to_play) <= 0.5f);
          ++num_checked;
        }
        game.apply(state, ply.action);
      }
    }
    TENGEN_CHECK(num_checked > 5);
  }
}

// Estimating leads changes nothing else, and leads depend only on the game.
void check_same_games(RootPolicy policy) {
  const Go game = go_game("go/5");
  Setup setup;
  setup.variants = {{"", 1.0}, {"go/4/komi=0.5", 1.0}, {"go/5x4/simple", 1.0}};
  SelfplaySettings settings = make_settings(0.0f);
  settings.search.policy = policy;
  settings.policy_surprise_share = 0.5f;
  const std::vector<GameRecord> without = play(game, settings, setup, 24);
  settings.lead_share = 0.3f;
  const std::vector<GameRecord> games = play(game, settings, setup, 24);
  int num_leads = 0;
  int num_full = 0;
  for (size_t i = 0; i < games.size(); ++i) {
    TENGEN_CHECK(decode(encode(games[i])) == games[i]);
    GameRecord bare = games[i];
    for (PlyRecord& ply : bare.plies) {
      Rng cap(7, 3, bare.game_index,
              static_cast<uint32_t>(bare.opening.size() + size_t(&ply - bare.plies.data())),
              Purpose::kPlayoutCap);
      const bool is_full = cap.uniform() < settings.full_probability;
      TENGEN_CHECK(is_full || ply.lead == kNoLead);
      num_full += is_full;
      num_leads += ply.lead != kNoLead;
      ply.lead = kNoLead;
    }
    TENGEN_CHECK(bare == without[i]);
  }
  TENGEN_CHECK(std::abs(num_leads - 0.3 * num_full) < 0.1 * num_full);
  for (const int num_threads : {1, 3}) {
    for (const int num_slots : {1, 16}) {
      Setup other = setup;
      other.num_threads = num_threads;
      other.num_slots = num_slots;
      other.cache_bytes = 1 << 10;
      TENGEN_CHECK(play(game, settings, other, 24) == games);
    }
  }
}

void check_without_komi() {
  const std::vector<GameRecord> without = play(Connect4{}, make_settings(0.0f), Setup{}, 8);
  TENGEN_CHECK(play(Connect4{}, make_settings(1.0f), Setup{}, 8) == without);
}

}  // namespace

int main() {
  check_counted_stones();
  check_ends_of_games();
  check_same_games(RootPolicy::kPuct);
  check_same_games(RootPolicy::kGumbel);
  check_without_komi();
  return 0;
}
