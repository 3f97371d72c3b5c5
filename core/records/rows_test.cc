// Reads rows while segments are added, for sanitizers, in a game defined here.
// tests/unit/experience compares the rows of native games with a slow replay.

#include "records/rows.h"

#include <thread>

#include "base/testing.h"
#include "records/game_columns.h"

using namespace tengen;

namespace {

// Players alternately add 1 or 2; the player who reaches 5 wins. The only plane is the count.
class Counting {
 public:
  struct State {
    int count = 0;
    int num_moves = 0;
  };
  std::string name() const { return "counting"; }
  int num_actions() const { return 2; }
  int num_planes() const { return 1; }
  int height() const { return 1; }
  int width() const { return 2; }
  int max_plies() const { return 5; }
  PolicyLayout policy_layout() const { return PolicyLayout::kColumns; }
  int num_symmetries() const { return 1; }
  State initial_state() const { return {}; }
  int to_play(const State& state) const { return state.num_moves % 2; }
  int ply(const State& state) const { return state.num_moves; }
  Outcome outcome(const State& state) const {
    if (state.count < 5) return Outcome::kOngoing;
    return to_play(state) == 1 ? Outcome::kFirstWins : Outcome::kSecondWins;
  }
  int legal_actions(const State& state, uint16_t* actions) const {
    int num_legal = 0;
    for (uint16_t action = 0; action < 2; ++action) {
      if (is_legal(state, action)) actions[num_legal++] = action;
    }
    return num_legal;
  }
  bool is_legal(const State& state, int action) const {
    return action >= 0 && action < 2 && state.count + action + 1 <= 5;
  }
  void apply(State& state, int action) const {
    state.count += action + 1;
    ++state.num_moves;
  }
  Key128 key(const State& state) const { return zobrist_key(1, uint64_t(state.count)); }
  void encode(const State& state, int, float* planes) const {
    planes[0] = planes[1] = static_cast<float>(state.count);
  }
  const uint16_t* images(const State&, int) const {
    static constexpr uint16_t kImages[] = {0, 1};
    return kImages;
  }
  std::string to_string(const State& state) const { return std::to_string(state.count); }
};
static_assert(Game<Counting>);

SegmentView view_of(const GameColumns& c) {
  return {c.outcome,
          c.num_variant_bytes,
          c.num_opening_plies,
          c.num_plies,
          c.variant,
          c.opening,
          c.action,
          c.root_value,
          c.policy_weight,
          c.value_weight,
          c.lead,
          c.num_policy_entries,
          c.policy_action,
          c.policy_mass};
}

// The opening is 1; then the players add 2 and 2, so that the first player reaches 5.
GameColumns segment() {
  GameRecord record;
  record.outcome = Outcome::kFirstWins;
  record.num_opening_plies = 1;
  record.opening = {0};
  record.plies.resize(2);
  record.plies[0] = {1, -0.5f, 1.0f, 1.0f, 8, {{0, 1}, {1, 3}}};
  record.plies[1] = {1, 1.0f, 0.0f, 1.0f, 2, {}};
  const std::string frame = encode(record);
  return merge_games({frame}, 0);
}

struct Batch {
  explicit Batch(size_t n)
      : planes(2 * n),
        policy(2 * n),
        policy_weight(n),
        outcome(3 * n),
        search_value(n),
        value_weight(n),
        legal(2 * n) {}
  BatchView view() {
    return {planes.data(),  legal.data(),        policy.data(),       policy_weight.data(),
            outcome.data(), search_value.data(), value_weight.data(), {}};
  }
  std::vector<float> planes, policy, policy_weight, outcome, search_value, value_weight;
  std::vector<uint8_t> legal;
};

void test_fill_beside_add_and_drop() {
  RowsOf<Counting> rows{Counting()};
  const GameColumns columns = segment();
  rows.add_segment(view_of(columns));
  std::thread writer([&] {
    for (int i = 0; i < 500; ++i) {
      rows.add_segment(view_of(columns));
      if (rows.num_rows() > 200) rows.drop_before(rows.num_rows() - 200);
    }
  });
  for (int i = 0; i < 500; ++i) {
    Batch batch(1);
    const std::vector<int64_t> number = {static_cast<int64_t>(rows.num_rows()) - 1};
    const std::vector<uint8_t> symmetry = {0};
    try {
      rows.fill(number, symmetry, batch.view());
      TENGEN_CHECK(batch.planes[0] == 3.0f);
    } catch (const Error&) {  // the segment was dropped in the meantime
    }
  }
  writer.join();
  TENGEN_CHECK(rows.num_rows() == 2 * 501);
}

}  // namespace

int main() {
  test_fill_beside_add_and_drop();
  return 0;
}
