// Damaged bytes of another process: every reader of games rejects them or returns valid games.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "games/connect4/connect4.h"
#include "records/game_columns.h"
#include "records/game_rows.h"
#include "records/journal.h"

using namespace tengen;

namespace {

constexpr int kNumTries = 3000;

uint32_t below(Rng& rng, size_t bound) { return rng.below(static_cast<uint32_t>(bound)); }

// A game of random moves of Connect Four, with targets.
GameRecord random_game(uint32_t index) {
  Rng rng(1, 0, index, 0, Purpose::kTest);
  const Connect4 game;
  auto state = game.initial_state();
  GameRecord record;
  record.game_index = index;
  record.num_opening_plies = 2;
  for (int ply = 0; game.outcome(state) == Outcome::kOngoing; ++ply) {
    uint16_t legal[7];
    const auto num_legal = static_cast<size_t>(game.legal_actions(state, legal));
    const uint16_t action = legal[below(rng, num_legal)];
    if (ply < 2) {
      record.opening.push_back(action);
    } else {
      PlyRecord made;
      made.action = action;
      made.root_value = 0.5f;
      made.value_weight = 1.0f;
      made.policy_weight = ply % 2 == 0 ? 1.0f : 0.0f;
      if (ply % 2 == 0) made.policy = {{action, 7}, {legal[0], 1}};
      record.plies.push_back(made);
    }
    game.apply(state, action);
  }
  record.outcome = game.outcome(state);
  return record;
}

// Applies one to three damages: a byte changed, removed or inserted, the end cut off, or a range
// overwritten with one value.
std::string damaged(Rng& rng, std::string bytes) {
  for (uint32_t left = 1 + rng.below(3); left > 0 && !bytes.empty(); --left) {
    const uint32_t at = below(rng, bytes.size());
    const char byte = static_cast<char>(rng.below(4) == 0 ? 255 * rng.below(2) : rng.below(256));
    switch (rng.below(5)) {
      case 0:
        bytes[at] = byte;
        break;
      case 1:
        bytes.erase(at, 1 + rng.below(9));
        break;
      case 2:
        bytes.insert(at, 1 + rng.below(9), byte);
        break;
      case 3:
        bytes.resize(at);
        break;
      default:
        std::fill_n(bytes.begin() + at, std::min<size_t>(8, bytes.size() - at), byte);
    }
  }
  return bytes;
}

// Bytes that are not rejected with an Error give a record that can be written again.
void check_records() {
  Rng rng(2, 0, 0, 0, Purpose::kTest);
  int num_read = 0;
  for (int i = 0; i < kNumTries; ++i) {
    const GameRecord game = random_game(i % 20);
    try {
      const GameRecord read = decode(damaged(rng, encode(game)));
      TENGEN_CHECK(decode(encode(read)) == read);
      ++num_read;
    } catch (const Error&) {
    }
    GameRecord unfinished = game;
    unfinished.outcome = Outcome::kOngoing;
    try {
      const GameRecord read = decode_unfinished(damaged(rng, encode_unfinished(unfinished)));
      TENGEN_CHECK(decode_unfinished(encode_unfinished(read)) == read);
    } catch (const Error&) {
    }
  }
  TENGEN_CHECK(num_read > 0 && num_read < kNumTries);
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

// Every frame read from a journal is one that was written, and gaps are within the file.
void check_journals(const std::string& folder) {
  const std::string path = folder + "/a.journal";
  std::vector<std::string> written;
  {
    Journal journal(path, R"({"game": "connect4"})");
    for (uint32_t index = 0; index < 8; ++index) {
      written.push_back(encode(random_game(index)));
      journal.append(written.back());
    }
    journal.close();
  }
  const std::string bytes = text_of(path);
  Rng rng(3, 0, 0, 0, Purpose::kTest);
  for (int i = 0; i < kNumTries / 10; ++i) {
    const std::string changed = damaged(rng, bytes);
    const std::string other = folder + "/b.journal";
    write_file(other, changed);
    try {
      const JournalContents contents = read_journal(other);
      for (const std::string& frame : contents.frames) {
        TENGEN_CHECK(std::ranges::find(written, frame) != written.end());
      }
      for (const JournalGap& gap : contents.gaps) {
        TENGEN_CHECK(gap.num_bytes > 0 && gap.offset + gap.num_bytes <= changed.size());
      }
    } catch (const Error&) {
    }
  }
}

// Frame marks that each claim half of the file: checking all claims would take many passes.
void check_marks(const std::string& folder) {
  const std::string path = folder + "/c.journal";
  {
    Journal journal(path, "{}");
    journal.append("frame");
    journal.close();
  }
  std::string bytes = text_of(path);
  constexpr uint32_t kNumMarks = 1 << 17;
  for (uint32_t i = 0; i < kNumMarks; ++i) {
    bytes += std::string("TNGF\0\0\x08\0", 8) + std::string(4, '\1');
  }
  write_file(path, bytes);
  bool is_refused = false;
  try {
    read_journal(path);
  } catch (const Error&) {
    is_refused = true;
  }
  TENGEN_CHECK(is_refused);
}

// Changes a number of a column, or lengthens or shortens the column.
template <class T>
void damage(Rng& rng, std::vector<T>& column) {
  if (rng.below(13) != 0) return;
  const uint32_t how = rng.below(4);
  if (how == 0) column.push_back(static_cast<T>(rng.below(1 << 16)));
  if (column.empty()) return;
  T& entry = column[below(rng, column.size())];
  if (how == 1) entry = static_cast<T>(rng.below(1 << 16));
  if (how == 2) entry = static_cast<T>(entry + 1);
  if (how == 3) column.pop_back();
}

void damage(Rng& rng, std::vector<float>& column) {
  if (rng.below(13) != 0 || column.empty()) return;
  constexpr float kNumbers[] = {-1.0f, 2.0f, 0.0f, std::numeric_limits<float>::quiet_NaN(),
                                std::numeric_limits<float>::infinity()};
  column[below(rng, column.size())] = kNumbers[rng.below(5)];
}

// Rows can be derived from every segment that is accepted, and contain only finite numbers.
void check_segments() {
  std::vector<std::string> frames;
  for (uint32_t index = 0; index < 3; ++index) frames.push_back(encode(random_game(index)));
  const GameColumns whole = merge_games({frames.begin(), frames.end()}, 0);
  Rng rng(4, 0, 0, 0, Purpose::kTest);
  int num_taken = 0;
  for (int i = 0; i < kNumTries; ++i) {
    GameColumns c = whole;
    damage(rng, c.outcome);
    damage(rng, c.num_variant_bytes);
    damage(rng, c.num_opening_plies);
    damage(rng, c.num_plies);
    damage(rng, c.variant);
    damage(rng, c.opening);
    damage(rng, c.action);
    damage(rng, c.root_value);
    damage(rng, c.policy_weight);
    damage(rng, c.value_weight);
    damage(rng, c.lead);
    damage(rng, c.num_policy_entries);
    damage(rng, c.policy_action);
    damage(rng, c.policy_mass);
    const auto rows = make_game_rows("connect4");
    try {
      rows->add_segment({c.outcome, c.num_variant_bytes, c.num_opening_plies, c.num_plies,
                         c.variant, c.opening, c.action, c.root_value, c.policy_weight,
                         c.value_weight, c.lead, c.num_policy_entries, c.policy_action,
                         c.policy_mass});
    } catch (const Error&) {
      continue;
    }
    ++num_taken;
    for (uint64_t row = 0; row < rows->num_rows(); ++row) {
      std::vector<float> planes(static_cast<size_t>(rows->num_planes()) * 42);
      std::vector<uint8_t> legal(7);
      std::vector<float> policy(7), weights(2), outcome(3);
      float value = 0.0f;
      const int64_t rows_asked[] = {static_cast<int64_t>(row)};
      const uint8_t symmetries[] = {0};
      rows->fill(rows_asked, symmetries,
                 {planes.data(), legal.data(), policy.data(), &weights[0], outcome.data(), &value,
                  &weights[1]});
      for (const float entry : policy) TENGEN_CHECK(entry >= 0.0f && entry <= 1.001f);
      TENGEN_CHECK(value >= -1.0f && value <= 1.0f);
      for (const float weight : weights) TENGEN_CHECK(weight >= 0.0f && weight < 1e9f);
    }
  }
  TENGEN_CHECK(num_taken > 0 && num_taken < kNumTries);
}

}  // namespace

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "tengen-XXXXXX").string();
  TENGEN_CHECK(mkdtemp(folder.data()) != nullptr);
  check_records();
  check_journals(folder);
  check_marks(folder);
  check_segments();
  std::filesystem::remove_all(folder);
  return 0;
}
