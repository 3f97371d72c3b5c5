#include "selfplay/plies/lead.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "base/hash.h"
#include "base/testing.h"

using namespace tengen;

namespace {

using Value = std::function<float(int)>;  // takes the half points given away

struct Found {
  float points = 0.0f;
  int num_asked = 0;
};

Found find_lead(const Value& value, int lowest, int highest) {
  LeadBisection lead;
  lead.begin(value(0), lowest, highest);
  std::set<int> asked = {0};
  while (lead.is_waiting()) {
    const int given = lead.given_half_points();
    TENGEN_CHECK(given > std::min(lowest, 0) && given < std::max(highest, 0));
    TENGEN_CHECK(asked.insert(given).second);
    lead.accept(value(given));
  }
  return {lead.points(), static_cast<int>(asked.size()) - 1};
}

// The sign of the value changes at `score` half points, for every score that a game can have.
void check_steps() {
  int most = 0;
  for (int score = -177; score <= 147; ++score) {
    // `drawn` has a draw at a difference of 0, and `decided` has no draws.
    const auto drawn = [score](int given) {
      return score > given ? 1.0f : score < given ? -1.0f : 0.0f;
    };
    const Found found = find_lead(drawn, -178, 148);
    TENGEN_CHECK(found.points == static_cast<float>(score) / 2.0f);
    const auto decided = [score](int given) { return score > given ? 1.0f : -1.0f; };
    const Found between = find_lead(decided, -178, 148);
    TENGEN_CHECK(between.points == static_cast<float>(score) / 2.0f - 0.25f);
    most = std::max(most, between.num_asked);
    // The search takes steps of 4, 8, 16 half points and so on, followed by a bisection.
    const int distance = score > 0 ? score - 1 : -score;
    int end = 4;
    int num_steps = 1;
    while (end <= distance) end += 4 << num_steps++;
    TENGEN_CHECK(between.num_asked <= 2 * num_steps + 1);
  }
  TENGEN_CHECK(most == 11);
}

// If the value does not depend on komi, as with an untrained network, the lead is the whole board.
void check_flat() {
  const Found ahead = find_lead([](int) { return 0.2f; }, -178, 148);
  TENGEN_CHECK(ahead.points > 73.5f && ahead.points < 74.0f);
  const Found behind = find_lead([](int) { return -0.2f; }, -178, 148);
  TENGEN_CHECK(behind.points > -89.0f && behind.points < -88.5f);
  const Found even = find_lead([](int) { return 0.0f; }, -178, 148);
  TENGEN_CHECK(even.points == 0.0f && even.num_asked == 0);
  // The position is even from 5 to 9 points.
  const auto wide = [](int given) { return given < 10 ? 0.5f : given > 18 ? -0.5f : 0.0f; };
  const Found first = find_lead(wide, -178, 148);
  TENGEN_CHECK(first.points == 6.0f && first.num_asked == 2);
}

// If komi is larger than the board, only one side can be ahead.
void check_far_komi() {
  const auto lost = [](int given) { return given < -150 ? 1.0f : -1.0f; };
  TENGEN_CHECK(find_lead(lost, -250, -148).points == -75.25f);
  TENGEN_CHECK(find_lead([](int) { return 0.3f; }, -250, -148).points == 0.0f);
  TENGEN_CHECK(find_lead([](int) { return -0.3f; }, 148, 250).points == 0.0f);
}

// For any values, the lead is at a sign change, interpolated linearly between the two values.
void check_noise() {
  for (uint64_t index = 0; index < 2000; ++index) {
    const auto value = [index](int given) {
      const uint64_t hash = mix64(1000 * index + static_cast<uint64_t>(given + 500));
      const float noise = static_cast<float>(hash >> 40) * 0x1.0p-23f - 1.0f;
      return std::clamp(0.02f * static_cast<float>(int(index % 60) - 30 - given) + 0.5f * noise,
                        -1.0f, 1.0f);
    };
    const float points = find_lead(value, -178, 148).points;
    const int low = static_cast<int>(std::floor(2.0f * points));
    const float before = value(low);
    const float after = value(low + 1);
    TENGEN_CHECK(before > 0.0f && after < 0.0f);
    const float crossing = static_cast<float>(low) + before / (before - after);
    TENGEN_CHECK(std::abs(2.0f * points - crossing) < 1e-3f);
  }
}

}  // namespace

int main() {
  check_steps();
  check_flat();
  check_far_komi();
  check_noise();
  return 0;
}
