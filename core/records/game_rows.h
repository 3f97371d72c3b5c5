#pragma once
// Training rows, stored in memory as games. A row is a searched ply with a policy or value target.
// Rows are numbered from 0 in the order in which their segments are added, and never renumbered.

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

// The columns of a sealed segment from which rows are derived. GameColumns documents them.
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

// Optional value targets in addition to the outcome: weighted averages of the search values from
// the row's ply on. Weights decrease by a factor of 1 - n per ply, with n = 1 / (1 + c * area of
// the game's board), and the outcome has the remaining weight. Source: KataGo.
inline constexpr std::array<float, 3> kHorizons = {0.176f, 0.056f, 0.016f};  // c

// Target arrays of auxiliary heads (tengen.nets.modules.board_net). Either all are set or none.
struct AuxiliaryView {
  float* reply = nullptr;         // [B, A] policy target of the next ply, or its action
  float* reply_weight = nullptr;  // [B]; 0 if the game ends with this ply
  float* horizons = nullptr;      // [B, 3] values for the side to move, in [-1, 1]
  float* ownership = nullptr;     // [B, H, W] final owner, 1: this ply's side to move, -1: other
  float* score = nullptr;         // [B] final score of the side to move, in points
  float* final_weight = nullptr;  // [B]; 0 if score and ownership are unknown (stopped early)
  float* lead = nullptr;          // [B] lead estimated in self-play, in points
  float* lead_weight = nullptr;   // [B]; 0 if no lead was estimated
};

// The output arrays of a batch of B rows, all C-contiguous.
struct BatchView {
  float* planes;         // [B, C, H, W]
  uint8_t* legal;        // [B, A], 1 for legal actions
  float* policy;         // [B, A], sums to 1 over the legal actions
  float* policy_weight;  // [B]
  float* outcome;        // [B, 3]: win, draw, loss of the side to move
  float* search_value;   // [B] value_to_play, in [-1, 1]
  float* value_weight;   // [B]
  AuxiliaryView auxiliary = {};
};

// The columns of a segment in memory, with offsets instead of counts.
struct RowSegment {
  uint64_t first_row = 0;
  std::vector<uint32_t> row_ply;        // the ply of each row
  std::vector<uint32_t> first_ply;      // of each game, then the number of plies
  std::vector<uint32_t> first_opening;  // of each game, then the number of opening plies
  std::vector<uint32_t> first_entry;    // of each ply, then the number of policy entries
  std::vector<uint8_t> outcome;
  std::vector<std::string> variant;  // the variant of each game
  std::vector<uint16_t> opening, action;
  std::vector<float> root_value, policy_weight, value_weight;
  std::vector<int16_t> lead;  // the lead of each ply; empty if no ply has one
  std::vector<uint16_t> policy_action, policy_mass;
  // The columns below are computed by replaying the games.
  std::vector<uint8_t> to_play;    // the side to move at each ply
  std::vector<uint8_t> is_scored;  // of each game: whether the final score and owners are known
  std::vector<float> score;        // the score of each game, for the first player
  std::vector<int8_t> owners;      // [games, H * W], 1: the first player; empty without a score

  size_t num_bytes() const;  // size in memory
};

// Throws Error unless the columns that precede `policy_weight` have the lengths of the same games.
void check_game_columns(const SegmentView& view);
// Returns a copy of the columns of `view`. Throws Error if a length or a value is invalid.
RowSegment make_row_segment(const SegmentView& view);

// The training rows of all segments of a game. fill() may run concurrently with every method.
class GameRows {
 public:
  virtual ~GameRows() = default;

  virtual int num_planes() const = 0;
  virtual int height() const = 0;
  virtual int width() const = 0;
  virtual int num_actions() const = 0;
  virtual int num_symmetries() const = 0;
  virtual int max_score() const = 0;  // 0 in games without a score

  // Appends a segment and returns its number of rows. Replays every game, and throws an Error that
  // names the game if a move is illegal or the outcome is not the recorded one.
  uint64_t add_segment(const SegmentView& view);
  // Skips the next `num_rows` row numbers. Throws Error if a segment has been added.
  void skip_rows(uint64_t num_rows);
  // Frees the segments whose rows are all below `row`.
  void drop_before(uint64_t row);

  uint64_t num_rows() const;   // number of rows ever added, including skipped rows
  uint64_t first_row() const;  // the oldest row that can be requested
  size_t num_bytes() const;    // memory used by the stored games

  // Writes training row rows[i], transformed by symmetries[i], to index i of `out`. Throws Error if
  // a row is not available or a symmetry is out of range. Deterministic.
  void fill(std::span<const int64_t> rows, std::span<const uint8_t> symmetries,
            const BatchView& out) const;

 protected:
  // Replays the games of `segment` to check them, and sets its computed columns.
  virtual void replay_games(RowSegment& segment) const = 0;
  // Writes the row of `ply` to index `at` of `out`. `scratch` has num_actions() entries.
  virtual void fill_row(const RowSegment& segment, uint32_t ply, int symmetry, size_t at,
                        const BatchView& out, uint16_t* scratch) const = 0;

 private:
  mutable std::shared_mutex mutex_;
  std::deque<std::shared_ptr<const RowSegment>> segments_;
  uint64_t num_rows_ = 0;
};

// Creates an empty GameRows for the registered game `name`. Throws Error if `name` is unknown.
std::unique_ptr<GameRows> make_game_rows(const std::string& name);
// Creates an empty GameRows for a game that is played outside the core.
std::unique_ptr<GameRows> make_game_rows(const ExternalGame& game);

}  // namespace tengen
