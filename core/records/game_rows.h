#pragma once
// Training rows held as games. A row is a searched ply with a policy or a value target; rows
// are numbered from 0 in the order their segments were added and keep their numbers for ever.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "games/external/external_game.h"

namespace tengen {

// The columns of one sealed segment that rows need; see GameColumns for what they hold.
struct SegmentView {
  std::span<const uint8_t> outcome;
  std::span<const uint8_t> num_variant_bytes;
  std::span<const uint16_t> num_opening_plies;
  std::span<const uint16_t> num_plies;
  std::span<const uint8_t> variant;
  std::span<const uint16_t> opening;
  std::span<const uint16_t> action;
  std::span<const float> root_value;
  std::span<const float> policy_weight;
  std::span<const float> value_weight;
  std::span<const int16_t> lead;
  std::span<const uint16_t> num_policy_entries;
  std::span<const uint16_t> policy_action;
  std::span<const uint16_t> policy_mass;
};

// Values that a row may be asked for besides the outcome: means of what the search says from this
// ply on, each ply weighing less than the one before it by a factor of 1 - n, n = 1 / (1 + c *
// area of the game's own board), and the outcome taking the rest. Source: KataGo
// (lightvector/KataGo).
inline constexpr std::array<float, 3> kHorizons = {0.176f, 0.056f, 0.016f};  // c

// Targets of auxiliary heads; see tengen.nets.modules.auxiliary. All or none.
struct AuxiliaryView {
  float* reply = nullptr;         // [B, A] the next search's policy, or the move played there
  float* reply_weight = nullptr;  // [B]; 0 where the game ends with this ply
  float* horizons = nullptr;      // [B, 3] values in [-1, 1], to play
  float* ownership = nullptr;     // [B, H, W] in [-1, 1], 1 the side to move's at the end
  float* score = nullptr;         // [B] points at the end, to play
  float* final_weight = nullptr;  // [B]; 0 where a game stopped early and has no last two
  float* lead = nullptr;          // [B] points, to play, as estimated in self-play
  float* lead_weight = nullptr;   // [B]; 0 where it was not
};

// Where a batch of B rows goes: C-contiguous arrays.
struct BatchView {
  float* planes;         // [B, C, H, W]
  uint8_t* legal;        // [B, A], 1 where legal
  float* policy;         // [B, A], sums to 1 over the legal actions
  float* policy_weight;  // [B]
  float* outcome;        // [B, 3]: win, draw, loss, to play
  float* search_value;   // [B] in [-1, 1], to play
  float* value_weight;   // [B]
  AuxiliaryView auxiliary = {};
};

// A segment in memory: its columns, with offsets in place of counts.
struct RowSegment {
  uint64_t first_row = 0;
  std::vector<uint32_t> row_ply;        // the ply of each row
  std::vector<uint32_t> first_ply;      // of each game, and the end
  std::vector<uint32_t> first_opening;  // of each game, and the end
  std::vector<uint32_t> first_entry;    // of each ply, and the end
  std::vector<uint8_t> outcome;
  std::vector<std::string> variant;  // of each game
  std::vector<uint16_t> opening, action;
  std::vector<float> root_value, policy_weight, value_weight;
  std::vector<int16_t> lead;  // of each ply; empty where none has one
  std::vector<uint16_t> policy_action, policy_mass;
  // Found when the games were replayed.
  std::vector<uint8_t> to_play;    // of each ply
  std::vector<uint8_t> is_scored;  // of each game: it ended, and its score and owners are known
  std::vector<float> score;        // of each game, to the first player
  std::vector<int8_t> owners;      // [games, H * W], to the first player; empty without a score

  size_t num_bytes() const;  // of memory
};

// Copies and checks the lengths of a segment's columns. Throws Error where they disagree.
RowSegment make_row_segment(const SegmentView& view);

// The rows of one game's segments. fill() may run in several threads, beside the others.
class GameRows {
 public:
  virtual ~GameRows() = default;

  virtual int num_planes() const = 0;
  virtual int height() const = 0;
  virtual int width() const = 0;
  virtual int num_actions() const = 0;
  virtual int num_symmetries() const = 0;
  virtual int max_score() const = 0;  // 0 in games without a score

  // Adds a segment after the others and returns how many rows it has. Replays every game:
  // throws Error naming game and ply where a move is illegal or a result differs.
  uint64_t add_segment(const SegmentView& view);
  // Counts `num_rows` rows that will never be asked for, as those before a restored window.
  void skip_rows(uint64_t num_rows);
  // Frees the segments whose rows are all below `row`.
  void drop_before(uint64_t row);

  uint64_t num_rows() const;   // added and skipped
  uint64_t first_row() const;  // the oldest that can be asked for
  size_t num_bytes() const;    // of memory, of the games that are held

  // Derives `rows`, row i seen under symmetries[i]. Throws Error for a row that is not held or
  // a symmetry that the game lacks. Deterministic.
  void fill(std::span<const int64_t> rows, std::span<const uint8_t> symmetries,
            const BatchView& out) const;

 protected:
  // Checks the games by replaying them, and notes what is found on the way.
  virtual void replay_games(RowSegment& segment) const = 0;
  // Derives one row into index `at` of `out`; `scratch` holds num_actions() entries.
  virtual void fill_row(const RowSegment& segment, uint32_t ply, int symmetry, size_t at,
                        const BatchView& out, uint16_t* scratch) const = 0;

 private:
  mutable std::shared_mutex mutex_;
  std::deque<std::shared_ptr<const RowSegment>> segments_;
  uint64_t num_rows_ = 0;
};

// For a game by its registered name. Throws Error for an unknown name.
std::unique_ptr<GameRows> make_game_rows(const std::string& name);
// For a game that is played outside the core.
std::unique_ptr<GameRows> make_game_rows(const ExternalGame& game);

}  // namespace tengen
