#include "selfplay/plies/surprise.h"

#include <cmath>

#include "base/rng.h"
#include "base/testing.h"

using namespace tengen;

namespace {

bool near(double a, double b) { return std::abs(a - b) < 1e-5; }

PlyRecord ply_of(float weight) {
  PlyRecord ply;
  ply.policy_weight = ply.value_weight = weight;
  ply.policy = {{0, 65535}};
  return ply;
}

SelfplaySettings shares(float policy, float value) {
  SelfplaySettings settings;
  settings.policy_surprise_share = policy;
  settings.value_surprise_share = value;
  return settings;
}

void check_policy_surprise() {
  SearchResult result;
  result.actions = {{0, 0.5f, 8, 0.0f, 0.8f, Proof::kUnknown},
                    {1, 0.25f, 2, 0.0f, 0.2f, Proof::kUnknown},
                    {2, 0.25f, 0, 0.0f, 0.0f, Proof::kUnknown}};
  TENGEN_CHECK(near(policy_surprise(result), 0.8 * std::log(1.6) + 0.2 * std::log(0.8)));
  for (ActionResult& a : result.actions) a.policy = a.prior;
  TENGEN_CHECK(policy_surprise(result) == 0.0f);
  result.actions[0].prior = 0.0f;  // the prior has underflowed
  TENGEN_CHECK(std::isfinite(policy_surprise(result)));
}

void check_value_surprises() {
  // Backwards from a win, the targets are 0.6 and 0.2, and the network's values were 0 and -1: the
  // KL divergence of (0.8, 0.2) from even odds, and of (0.6, 0.4) from a sure loss, clipped to 1.
  const std::vector<PlyNote> notes = {{-0.2f, -1.0f, 0.0f}, {0.2f, 0.0f, 0.0f}};
  const std::vector<double> surprises = value_surprises(notes, 1.0f, 0.5);
  TENGEN_CHECK(near(surprises[1], 0.8 * std::log(1.6) + 0.2 * std::log(0.4)));
  TENGEN_CHECK(surprises[0] == 1.0);
  // The target equals the network's value, so there is no surprise.
  TENGEN_CHECK(near(value_surprises({{0.5f, 0.75f, 0.0f}}, 1.0f, 0.5)[0], 0.0));
}

void check_policy_weights() {
  GameRecord record;
  record.outcome = Outcome::kDraw;
  // Two full searches, a cheap one below 1.5 times the rows' mean of 0.6, and a cheap one above.
  record.plies = {ply_of(1.0f), ply_of(1.0f), ply_of(0.0f), ply_of(0.0f)};
  const std::vector<PlyNote> notes = {
      {0.0f, 0.0f, 0.2f}, {0.0f, 0.0f, 1.0f}, {0.0f, 0.0f, 0.8f}, {0.0f, 0.0f, 1.3f}};
  weigh_by_surprise(shares(0.5f, 0.0f), notes, 42, record);
  // Surprises 0.2, 1, 0 and 0.4 share half of the total weight of 2 in proportion to their size.
  const double expected[] = {0.5 + 0.125, 0.5 + 0.625, 0.0, 0.25};
  for (size_t i = 0; i < 4; ++i) {
    TENGEN_CHECK(near(record.plies[i].policy_weight, expected[i]));
    TENGEN_CHECK(record.plies[i].value_weight == record.plies[i].policy_weight);
  }
}

void check_value_weights() {
  GameRecord record;
  record.outcome = Outcome::kFirstWins;
  record.plies = {ply_of(1.0f), ply_of(0.5f)};
  // On a board without cells only the last search counts. The surprises of (0.75, 0.25) and of a
  // sure win, from even odds, are 0.130812 and ln 2.
  const std::vector<PlyNote> notes = {{0.5f, 0.0f, 0.0f}, {1.0f, 0.0f, 0.0f}};
  weigh_by_surprise(shares(0.0f, 0.4f), notes, 0, record);
  const double total = 0.130812 + 0.5 * std::log(2.0);
  TENGEN_CHECK(near(record.plies[0].value_weight, 0.6 + 0.4 * 1.5 * 0.130812 / total));
  TENGEN_CHECK(near(record.plies[1].value_weight, 0.3 + 0.4 * 1.5 * 0.5 * std::log(2.0) / total));
}

// The total weight of a game's rows is unchanged, except for rows that are dropped.
void check_total_is_kept() {
  for (uint32_t game = 0; game < 300; ++game) {
    Rng rng(1, 0, game, 0, Purpose::kTest);
    GameRecord record;
    record.outcome = static_cast<Outcome>(1 + rng.below(3));
    std::vector<PlyNote> notes;
    double before = 0.0;
    const uint32_t num_plies = rng.below(40);
    for (uint32_t i = 0; i < num_plies; ++i) {
      const bool is_full = rng.uniform() < 0.6;
      record.plies.push_back(ply_of(is_full ? 0.1f + 0.9f * static_cast<float>(rng.uniform()) : 0));
      before += record.plies.back().policy_weight;
      notes.push_back({static_cast<float>(2.0 * rng.uniform() - 1.0),
                       static_cast<float>(2.0 * rng.uniform() - 1.0),
                       static_cast<float>(3.0 * rng.uniform() * rng.uniform())});
    }
    const std::vector<PlyRecord> plies = record.plies;
    weigh_by_surprise(shares(0.5f, 0.1f), notes, 81, record);
    double after = 0.0;
    for (const PlyRecord& ply : record.plies) after += ply.policy_weight;
    TENGEN_CHECK(after <= before * 1.00001 && after >= before - num_plies / 64.0 - 1e-5);
    if (before < 1.0) TENGEN_CHECK(record.plies == plies);
  }
}

// Without surprise nothing changes, and there is no division by zero.
void check_no_surprise() {
  GameRecord record;
  record.outcome = Outcome::kFirstWins;
  record.plies = {ply_of(1.0f), ply_of(0.0f), ply_of(0.5f)};
  const std::vector<PlyNote> notes(3, PlyNote{1.0f, 1.0f, 0.0f});
  weigh_by_surprise(shares(0.5f, 0.1f), notes, 9, record);
  const double expected[] = {1.0, 0.0, 0.5};
  for (size_t i = 0; i < 3; ++i) TENGEN_CHECK(near(record.plies[i].policy_weight, expected[i]));
}

}  // namespace

int main() {
  check_policy_surprise();
  check_value_surprises();
  check_policy_weights();
  check_value_weights();
  check_total_is_kept();
  check_no_surprise();
  return 0;
}
