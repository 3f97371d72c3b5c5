#pragma once
// Training rows, stored as games. A row is a searched ply with a policy or a value target. Rows are
// numbered from 0 in the order in which their segments were added, and never renumbered.

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

// The columns of one sealed segment that are needed for rows; GameColumns documents them.
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

// Optional value targets besides the outcome: weighted means of the values of the searches from
// this ply on. The weight decreases with each ply by a factor of 1 - n, n = 1 / (1 + c * area of
// the game's own board); the outcome has the remaining weight. Source: KataGo.
inline constexpr std::array<float, 3> kHorizons = {0.176f, 0.056f, 0.016f};  // c

// Targets of auxiliary heads; see tengen.nets.modules.board_net. Either all are set or none.
struct AuxiliaryView {
  float* reply = nullptr;         // [B, A] the next search's policy, or the move played there
  float* reply_weight = nullptr;  // [B]; 0 if the game ends with this ply
  float* horizons = nullptr;      // [B, 3] values in [-1, 1], to play
  float* ownership = nullptr;     // [B, H, W] in [-1, 1]; 1 if owned by the side to move at the end
  float* score = nullptr;         // [B] points at the end, to play
  float* final_weight = nullptr;  // [B]; 0 if the game stopped early, without ownership and score
  float* lead = nullptr;          // [B] points, to play, as estimated in self-play
  float* lead_weight = nullptr;   // [B]; 0 if no lead was estimated
};

// The output arrays of a batch of B rows, all C-contiguous.
struct BatchView {
  float* planes;         // [B, C, H, W]
  uint8_t* legal;        // [B, A], 1 for legal actions
  float* policy;         // [B, A], sums to 1 over the legal actions
  float* policy_weight;  // [B]
  float* outcome;        // [B, 3]: win, draw, loss, to play
  float* search_value;   // [B] in [-1, 1], to play
  float* value_weight;   // [B]
  AuxiliaryView auxiliary = {};
};

// A segment in memory: its columns, with offsets instead of counts.
struct RowSegment {
  uint64_t first_row = 0;
  std::vector<uint32_t> row_ply;        // the ply of each row
  std::vector<uint32_t> first_ply;      // of each game, and an end mark
  std::vector<uint32_t> first_opening;  // of each game, and an end mark
  std::vector<uint32_t> first_entry;    // of each ply, and an end mark
  std::vector<uint8_t> outcome;
  std::vector<std::string> variant;  // the game's variant
  std::vector<uint16_t> opening, action;
  std::vector<float> root_value, policy_weight, value_weight;
  std::vector<int16_t> lead;  // of each ply; empty if no ply has one
  std::vector<uint16_t> policy_action, policy_mass;
  // Computed when the games were replayed.
  std::vector<uint8_t> to_play;    // the side to move at each ply
  std::vector<uint8_t> is_scored;  // of each game: whether it ended, with known score and ownership
  std::vector<float> score;        // of each game, for the first player
  std::vector<int8_t> owners;      // [games, H * W], for the first player; empty without a score

  size_t num_bytes() const;  // memory used
};

// Copies a segment's columns and checks their lengths. Throws Error if these are inconsistent.
RowSegment make_row_segment(const SegmentView& view);

// The rows of all segments of one game. fill() may run concurrently with all methods.
class GameRows {
 public:
  virtual ~GameRows() = default;

  virtual int num_planes() const = 0;
  virtual int height() const = 0;
  virtual int width() const = 0;
  virtual int num_actions() const = 0;
  virtual int num_symmetries() const = 0;
  virtual int max_score() const = 0;  // 0 in games without a score

  // Appends a segment and returns its number of rows. Replays every game: throws an Error that
  // names game and ply if a move is illegal or a result differs.
  uint64_t add_segment(const SegmentView& view);
  // Skips `num_rows` row numbers that will never be requested.
  void skip_rows(uint64_t num_rows);
  // Frees the segments whose rows are all below `row`.
  void drop_before(uint64_t row);

  uint64_t num_rows() const;   // including skipped rows
  uint64_t first_row() const;  // the oldest row that can be requested
  size_t num_bytes() const;    // memory used by the stored games

  // Derives `rows`; row i is transformed by symmetries[i]. Throws Error if a row is not available
  // or the game does not have the symmetry. Deterministic.
  void fill(std::span<const int64_t> rows, std::span<const uint8_t> symmetries,
            const BatchView& out) const;

 protected:
  // Checks the games by replaying them, and stores what the replay computes.
  virtual void replay_games(RowSegment& segment) const = 0;
  // Derives one row into index `at` of `out`; `scratch` has num_actions() entries.
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
