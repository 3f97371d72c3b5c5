#include "inference/packed_rows.h"

#include <string>
#include <vector>

#include "base/testing.h"
#include "games/registry/registry.h"
#include "games/testing.h"
#include "inference/testing.h"

using namespace tengen;

namespace {

std::vector<float> there_and_back(const RowLayout& layout, const std::vector<float>& planes) {
  // A guard byte detects writes beyond the end of the row.
  std::vector<uint8_t> row(layout.num_bytes() + 1, 0xa5);
  write_row(layout, planes.data(), row.data());
  TENGEN_CHECK(row.back() == 0xa5);
  return read_row(layout, row.data());
}

// Packing and unpacking preserves the planes of every position of a native game.
template <Game G>
void check_game(const G& game) {
  const RowLayout layout{{static_cast<size_t>(game.num_planes()),
                          static_cast<size_t>(game.height()), static_cast<size_t>(game.width())},
                         true};
  std::vector<uint16_t> actions(static_cast<size_t>(game.num_actions()));
  for (uint64_t index = 0; index < 1; ++index) {
    Rng rng(1, 0, index, 0, Purpose::kTest);
    auto state = game.initial_state();
    while (const int num_legal = game.legal_actions(state, actions.data())) {
      for (int symmetry = 0; symmetry < game.num_symmetries(); ++symmetry) {
        const std::vector<float> planes = encoded(game, state, symmetry);
        TENGEN_CHECK(there_and_back(layout, planes) == planes);
      }
      game.apply(state, actions[rng.below(static_cast<uint32_t>(num_legal))]);
    }
  }
}

void check_layout() {
  // Two planes of 3 x 3 are 18 bits; bit i of the stream is entry i.
  const RowLayout layout{{2, 3, 3}, true};
  TENGEN_CHECK(layout.num_bytes() == 2 * 4 + 4);
  std::vector<float> planes(18, 0.0f);
  planes[0] = 1.0f;
  planes[8] = 1.0f;
  planes[17] = -7.5f;  // a plane with a value other than one
  std::vector<uint8_t> row(layout.num_bytes(), 0xff);
  write_row(layout, planes.data(), row.data());
  float scales[2];
  std::memcpy(scales, row.data(), sizeof(scales));
  TENGEN_CHECK(scales[0] == 1.0f && scales[1] == -7.5f);
  TENGEN_CHECK(row[8] == 0x01 && row[9] == 0x01 && row[10] == 0x02 && row[11] == 0x00);
  TENGEN_CHECK(there_and_back(layout, planes) == planes);
  // A plane of zeros has scale 0 and unpacks to zeros.
  planes.assign(18, 0.0f);
  TENGEN_CHECK(there_and_back(layout, planes) == planes);
}

void check_dense() {
  const RowLayout layout{{2, 2, 2}, false};
  TENGEN_CHECK(layout.num_bytes() == 32);
  const std::vector<float> planes = {0.5f, -1.0f, 0.25f, 3.0f, 0.0f, 1.0f, 2.0f, 4.0f};
  TENGEN_CHECK(there_and_back(layout, planes) == planes);
}

}  // namespace

int main() {
  check_layout();
  check_dense();
  for (const std::string& name : known_games()) {
    with_game(name, [](const auto& game) { check_game(game); });
  }
  return 0;
}
