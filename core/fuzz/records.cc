// Fuzz targets that read games from files: journals, game records, and rows derived from records.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/rng.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "games/registry/registry.h"
#include "records/game_columns.h"
#include "records/game_record.h"
#include "records/game_rows.h"
#include "records/journal.h"
#include "records/little_endian.h"
#include "selfplay/queue/unfinished.h"

namespace tengen::fuzz {
namespace {

constexpr std::array<const char*, 5> kGames = {"tictactoe", "connect4", "gomoku/5", "go/5",
                                               "go/3x7"};
constexpr uint32_t kGeneration = 1;

// Returns a game of random moves. The first two moves are its opening.
GameRecord random_game(const std::string& name, uint32_t seed, bool is_finished = true) {
  return with_game(name, [&](const auto& game) {
    Rng rng(seed, 0, 0, 0, Purpose::kTest);
    GameRecord record;
    record.generation = kGeneration;
    record.game_index = seed;
    record.model = 3;
    auto state = game.initial_state();
    std::vector<uint16_t> legal(static_cast<size_t>(game.num_actions()));
    while (game.outcome(state) == Outcome::kOngoing && (is_finished || game.ply(state) < 5)) {
      const int num_legal = game.legal_actions(state, legal.data());
      const uint16_t action = legal[rng.below(static_cast<uint32_t>(num_legal))];
      if (record.opening.size() < 2) {
        record.opening.push_back(action);
      } else {
        PlyRecord ply;
        ply.action = action;
        ply.root_value = 0.25f;
        ply.policy_weight = record.plies.size() % 2 == 0 ? 1.0f : 0.0f;
        ply.value_weight = 1.0f;
        ply.num_simulations = 16;
        if (ply.policy_weight > 0) ply.policy = {{action, 9}};
        ply.lead = 4;
        record.plies.push_back(ply);
      }
      game.apply(state, action);
    }
    record.num_opening_plies = static_cast<uint16_t>(record.opening.size());
    record.outcome = game.outcome(state);
    if (record.plies.size() > 1) record.switches = {{1, 4}};
    return record;
  });
}

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

std::string written(const GameRecord& record, bool is_finished) {
  return is_finished ? encode(record) : encode_unfinished(record);
}

// Checks that a decoded record can be encoded and decoded again unchanged. It contains no NaN.
void read_record(std::string_view bytes) {
  const bool is_finished = take_byte(&bytes) % 2 == 0;
  try {
    const GameRecord record = is_finished ? decode(bytes) : decode_unfinished(bytes);
    const std::string again = written(record, is_finished);
    const GameRecord other = is_finished ? decode(again) : decode_unfinished(again);
    expect(other == record, "a record that was read is read again as the same");
  } catch (const Error&) {
  }
}

void read_unfinished(std::string_view bytes) {
  try {
    const UnfinishedGame game = decode_unfinished_game(bytes);
    const UnfinishedGame again = decode_unfinished_game(encode(game));
    expect(again.record == game.record, "a game that goes on is read again as the same");
  } catch (const Error&) {
  }
}

void read_journal_file(std::string_view bytes) {
  const MemoryFile file(bytes);
  try {
    const JournalContents contents = read_journal(file.path());
    uint64_t num_bytes = 20 + contents.meta.size();
    for (const std::string& frame : contents.frames) num_bytes += 12 + frame.size();
    for (const JournalGap& gap : contents.gaps) num_bytes += gap.num_bytes;
    expect(num_bytes == bytes.size(), "each byte of a journal is of a frame or of a gap");
  } catch (const Error&) {
  }
}

// Splits the bytes into frames. Each begins with its length in two bytes, least significant first.
std::vector<std::string_view> frames_in(std::string_view bytes) {
  std::vector<std::string_view> frames;
  while (bytes.size() >= 2) {
    const size_t low = take_byte(&bytes);
    const size_t high = take_byte(&bytes);
    const size_t length = std::min(low + 256 * high, bytes.size());
    frames.push_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return frames;
}

// Derives rows from the games of a segment, as a learner does, under varying symmetries.
void derive_rows(std::string_view bytes) {
  const std::string name = kGames[take_byte(&bytes) % kGames.size()];
  try {
    const GameColumns columns = merge_games(frames_in(bytes), kGeneration);
    const auto rows = make_game_rows(name);
    const uint64_t num_rows = std::min<uint64_t>(rows->add_segment(view_of(columns)), 64);
    std::vector<int64_t> which;
    std::vector<uint8_t> symmetries;
    for (uint64_t row = 0; row < num_rows; ++row) {
      which.push_back(static_cast<int64_t>(row));
      symmetries.push_back(
          static_cast<uint8_t>(row % static_cast<uint64_t>(rows->num_symmetries())));
    }
    const auto of = [&](int a) { return std::vector<float>(num_rows * static_cast<size_t>(a)); };
    const int cells = rows->height() * rows->width();
    std::vector<float> planes = of(rows->num_planes() * cells), policy = of(rows->num_actions()),
                       policy_weight = of(1), outcome = of(3), search_value = of(1),
                       value_weight = of(1);
    std::vector<uint8_t> legal(policy.size());
    rows->fill(which, symmetries,
               {planes.data(),
                legal.data(),
                policy.data(),
                policy_weight.data(),
                outcome.data(),
                search_value.data(),
                value_weight.data(),
                {}});
    for (const float value : policy) {
      expect(std::isfinite(value) && value >= 0, "a policy target is a distribution");
    }
  } catch (const Error&) {
  }
}

// Plays the named game. Names are untrusted: they come from run.json and from game records.
void play_named(std::string_view bytes) {
  const unsigned seed = take_byte(&bytes);
  try {
    (void)with_game(std::string(bytes), [&](const auto& game) {
      Rng rng(seed, 0, 0, 0, Purpose::kTest);
      std::vector<uint16_t> legal(static_cast<size_t>(game.num_actions()));
      std::vector<float> planes(
          static_cast<size_t>(game.num_planes() * game.height() * game.width()));
      auto state = game.initial_state();
      for (int ply = 0; ply < 40 && game.outcome(state) == Outcome::kOngoing; ++ply) {
        const int num_legal = game.legal_actions(state, legal.data());
        game.apply(state, legal[rng.below(static_cast<uint32_t>(num_legal))]);
      }
      game.encode(state, static_cast<int>(seed) % game.num_symmetries(), planes.data());
      return game.to_string(state).size();
    });
  } catch (const Error&) {
  }
}

void append_frame(std::string* to, const std::string& frame) {
  ByteWriter(to).u16(static_cast<uint16_t>(frame.size()));
  to->append(frame);
}

std::vector<std::string> record_seeds() {
  std::vector<std::string> seeds;
  for (const char* name : {"tictactoe", "go/5"}) {
    seeds.push_back(std::string(1, '\0') + encode(random_game(name, 1)));
    seeds.push_back("\1" + encode_unfinished(random_game(name, 2, false)));
  }
  return seeds;
}

std::vector<std::string> unfinished_seeds() {
  std::vector<std::string> seeds;
  for (const uint32_t num_extra : {0u, 7u}) {
    UnfinishedGame game{random_game("connect4", 3, false), {}, num_extra};
    game.notes.resize(game.record.plies.size(), {0.5f, -0.5f, 0.1f});
    seeds.push_back(encode(game));
  }
  return seeds;
}

std::vector<std::string> journal_seeds() {
  std::string file = "TENGENJL";
  const std::string meta = R"({"game": "tictactoe"})";
  ByteWriter out(&file);
  out.u32(kJournalSchema);
  out.u32(static_cast<uint32_t>(meta.size()));
  out.u32(crc32c(meta, crc32c(file)));
  file += meta;
  std::vector<std::string> seeds = {file};
  for (uint32_t seed = 0; seed < 3; ++seed) {
    const std::string frame = encode(random_game("tictactoe", seed));
    std::string length;
    ByteWriter(&length).u32(static_cast<uint32_t>(frame.size()));
    file += "TNGF" + length;
    ByteWriter(&file).u32(crc32c(frame, crc32c(length)));
    file += frame;
  }
  seeds.push_back(file);
  return seeds;
}

std::vector<std::string> row_seeds() {
  std::vector<std::string> seeds;
  for (size_t game = 0; game < kGames.size(); ++game) {
    std::string& seed = seeds.emplace_back(1, static_cast<char>(game));
    for (uint32_t i = 0; i < 2; ++i) append_frame(&seed, encode(random_game(kGames[game], i)));
  }
  GameRecord smaller = random_game("go/3", 5);
  smaller.variant = "go/3";
  append_frame(&seeds.emplace_back(1, '\3'), encode(smaller));
  return seeds;
}

std::vector<std::string> name_seeds() {
  std::vector<std::string> seeds;
  for (const std::string& name : known_games()) seeds.push_back("\2" + name);
  for (const char* name : {"go/7x9", "gomoku/15/exact", "go/9/komi=5.5", "go/9/japanese"}) {
    seeds.push_back(std::string("\1") + name);
  }
  return seeds;
}

}  // namespace

std::vector<Target> record_targets() {
  return {{"game_record", read_record, record_seeds},
          {"unfinished_game", read_unfinished, unfinished_seeds},
          {"journal", read_journal_file, journal_seeds},
          {"game_rows", derive_rows, row_seeds},
          {"game_name", play_named, name_seeds}};
}

}  // namespace tengen::fuzz
