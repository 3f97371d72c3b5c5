#include "selfplay/decided/decided.h"

#include <cmath>
#include <initializer_list>

#include "base/testing.h"
#include "games/tictactoe/tictactoe.h"
#include "selfplay/decided/resignation.h"

using namespace tengen;

namespace {

std::vector<PlyNote> notes_of(std::initializer_list<float> values) {
  std::vector<PlyNote> notes;
  for (const float value : values) notes.push_back({value, 0.0f, 0.0f});
  return notes;
}

void check_agreed_value() {
  TENGEN_CHECK(agreed_value(notes_of({0.9f, 0.95f}), 3) == 0.0f);
  TENGEN_CHECK(agreed_value(notes_of({0.0f, 0.9f, 0.95f, 0.92f}), 3) == 0.9f);
  TENGEN_CHECK(agreed_value(notes_of({-0.9f, -0.95f, -0.92f}), 3) == -0.9f);
  TENGEN_CHECK(agreed_value(notes_of({0.9f, -0.95f, 0.92f}), 3) == 0.0f);
}

void check_full_effort() {
  SelfplaySettings settings;
  settings.full_simulations = 64;
  settings.cheap_simulations = 16;
  const auto effort_is = [&](std::initializer_list<float> values, int simulations, float weight) {
    const Effort effort = full_effort(settings, notes_of(values));
    return effort.num_simulations == simulations && std::abs(effort.weight - weight) < 1e-5f;
  };
  TENGEN_CHECK(effort_is({1.0f, 1.0f, 1.0f}, 64, 1.0f));  // searches are not reduced by default
  settings.reduce_above = 0.9f;
  TENGEN_CHECK(effort_is({0.9f, 1.0f, 1.0f}, 64, 1.0f));
  TENGEN_CHECK(effort_is({0.9f, 1.0f}, 64, 1.0f));
  // Halfway to certainty, a quarter of the reduction applies.
  TENGEN_CHECK(effort_is({1.0f, 0.95f, 1.0f}, 52, 1.0f - 0.25f * 0.9f));
  TENGEN_CHECK(effort_is({-1.0f, -1.0f, -1.0f}, 16, 0.1f));
  settings.cheap_simulations = 100;  // does not make searches of a decided game longer
  TENGEN_CHECK(effort_is({-1.0f, -1.0f, -1.0f}, 64, 0.1f));
}

void check_resigned_outcome() {
  SelfplaySettings settings;
  const auto sure = notes_of({1.0f, 1.0f, 1.0f, 1.0f, 1.0f});
  TENGEN_CHECK(resigned_outcome(settings, sure) == Outcome::kOngoing);
  settings.resign_above = 0.9f;
  TENGEN_CHECK(resigned_outcome(settings, sure) == Outcome::kFirstWins);
  TENGEN_CHECK(resigned_outcome(settings, notes_of({-1.0f, -0.95f, -1.0f, -1.0f, -1.0f})) ==
               Outcome::kSecondWins);
  TENGEN_CHECK(resigned_outcome(settings, notes_of({1.0f, 1.0f, 1.0f, 1.0f})) == Outcome::kOngoing);
  TENGEN_CHECK(resigned_outcome(settings, notes_of({1.0f, 0.9f, 1.0f, 1.0f, 1.0f})) ==
               Outcome::kOngoing);
}

// In the first four games of tic-tac-toe, values (to play) predict a win of the first player from
// the first search on. In fact the first player wins, loses, draws, and wins by resignation. In the
// fifth game no value is certain.
void check_false_resignations() {
  const std::vector<uint16_t> wins = {0, 3, 1, 4, 8, 5};      // the second player wins
  const std::vector<uint16_t> first = {0, 3, 1, 4, 7, 8, 2};  // the first player wins
  const std::vector<uint16_t> draw = {0, 1, 2, 4, 3, 5, 7, 6, 8};
  const std::vector<uint16_t> resigned = {0, 3, 1, 4, 7};
  std::vector<uint8_t> outcome;
  std::vector<uint16_t> num_opening_plies, num_plies, opening, action;
  std::vector<float> root_value;
  const auto add = [&](const std::vector<uint16_t>& moves, int result, size_t num_opening,
                       float value) {
    outcome.push_back(static_cast<uint8_t>(result));
    num_opening_plies.push_back(static_cast<uint16_t>(num_opening));
    num_plies.push_back(static_cast<uint16_t>(moves.size() - num_opening));
    for (size_t i = 0; i < moves.size(); ++i) {
      if (i < num_opening) {
        opening.push_back(moves[i]);
      } else {
        action.push_back(moves[i]);
        root_value.push_back(i % 2 == 0 ? value : -value);
      }
    }
  };
  add(first, 1, 1, 0.95f);
  add(wins, 2, 0, 0.95f);
  add(draw, 3, 2, 0.95f);
  add(resigned, 1, 0, 0.95f);
  add(first, 1, 0, 0.5f);
  SelfplaySettings settings;
  settings.resign_above = 0.9f;
  const std::vector<uint8_t> no_names(outcome.size(), 0);
  SegmentView games;
  games.outcome = outcome;
  games.num_variant_bytes = no_names;
  games.num_opening_plies = num_opening_plies;
  games.num_plies = num_plies;
  games.opening = opening;
  games.action = action;
  games.root_value = root_value;
  const ResignationCheck check = check_resignation(TicTacToe(), settings, games);
  TENGEN_CHECK(check.num_checked == 3);
  TENGEN_CHECK(check.num_false == 2);
  settings.resign_above = 0.4f;
  TENGEN_CHECK(check_resignation(TicTacToe(), settings, games).num_checked == 4);
  settings.resign_above = 1.0f;
  TENGEN_CHECK(check_resignation(TicTacToe(), settings, games).num_checked == 0);
  const auto refused = [&](const SegmentView& damaged, const char* what) {
    try {
      (void)check_resignation(TicTacToe(), settings, damaged);
    } catch (const Error& error) {
      return std::string(error.what()).find(what) != std::string::npos;
    }
    return false;
  };
  SegmentView damaged = games;
  damaged.root_value = damaged.root_value.first(3);
  TENGEN_CHECK(refused(damaged, "column root_value (3 entries)"));
  damaged = games;
  damaged.num_plies = damaged.num_plies.first(2);
  TENGEN_CHECK(refused(damaged, "column num_plies (2 entries)"));
  damaged = games;
  damaged.opening = damaged.opening.first(1);
  TENGEN_CHECK(refused(damaged, "column opening (1 entries)"));
  action.back() = 9;
  TENGEN_CHECK(refused(games, "move (9)"));
}

}  // namespace

int main() {
  check_agreed_value();
  check_full_effort();
  check_resigned_outcome();
  check_false_resignations();
  return 0;
}
