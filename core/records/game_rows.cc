#include "records/game_rows.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "games/registry/registry.h"
#include "records/game_record.h"
#include "records/rows.h"

namespace tengen {
namespace {

template <class T>
std::vector<T> copy(std::span<const T> span) {
  return std::vector<T>(span.begin(), span.end());
}

std::vector<uint32_t> offsets(std::span<const uint16_t> counts) {
  std::vector<uint32_t> result{0};
  result.reserve(counts.size() + 1);
  uint64_t total = 0;
  for (const uint16_t count : counts) {
    total += count;
    if (total > std::numeric_limits<uint32_t>::max()) {
      throw Error("segment (" + std::to_string(total) +
                  " entries) must have fewer than 2^32; seal smaller generations");
    }
    result.push_back(static_cast<uint32_t>(total));
  }
  return result;
}

template <class T>
size_t bytes_of(const std::vector<T>& vector) {
  return vector.capacity() * sizeof(T);
}

void check_length(const char* name, size_t length, size_t wanted) {
  if (length == wanted) return;
  throw Error("column " + std::string(name) + " (" + std::to_string(length) +
              " entries) must have " + std::to_string(wanted) + "; the segment is damaged");
}

// Throws Error if a value is out of range, as encode() does. NaN is out of every range.
void check_range(const char* name, std::span<const float> column, float least, float most) {
  const char* const rule = "must be in its range; the segment is damaged";
  for (const float value : column) check(value >= least && value <= most, name, value, rule);
}

std::vector<std::string> names(std::span<const uint8_t> lengths, std::span<const uint8_t> bytes) {
  std::vector<std::string> result;
  for (const uint8_t length : lengths) {
    result.emplace_back(bytes.begin(), bytes.begin() + length);
    bytes = bytes.subspan(length);
  }
  return result;
}

}  // namespace

void check_game_columns(const SegmentView& view) {
  const auto total = [](auto n) { return std::accumulate(n.begin(), n.end(), size_t{0}); };
  check_length("num_variant_bytes", view.num_variant_bytes.size(), view.outcome.size());
  check_length("num_opening_plies", view.num_opening_plies.size(), view.outcome.size());
  check_length("num_plies", view.num_plies.size(), view.outcome.size());
  check_length("variant", view.variant.size(), total(view.num_variant_bytes));
  check_length("opening", view.opening.size(), total(view.num_opening_plies));
  check_length("action", view.action.size(), total(view.num_plies));
  check_length("root_value", view.root_value.size(), view.action.size());
}

RowSegment make_row_segment(const SegmentView& view) {
  check_game_columns(view);
  RowSegment segment;
  segment.first_opening = offsets(view.num_opening_plies);
  segment.first_ply = offsets(view.num_plies);
  const size_t num_plies = segment.first_ply.back();
  check_length("policy_weight", view.policy_weight.size(), num_plies);
  check_length("value_weight", view.value_weight.size(), num_plies);
  check_length("lead", view.lead.size(), num_plies);
  check_length("num_policy_entries", view.num_policy_entries.size(), num_plies);
  segment.first_entry = offsets(view.num_policy_entries);
  check_length("policy_action", view.policy_action.size(), segment.first_entry.back());
  check_length("policy_mass", view.policy_mass.size(), segment.first_entry.back());
  check_range("root_value", view.root_value, -1.0f, 1.0f);
  check_range("policy_weight", view.policy_weight, 0.0f, std::numeric_limits<float>::max());
  check_range("value_weight", view.value_weight, 0.0f, std::numeric_limits<float>::max());
  segment.outcome = copy(view.outcome);
  segment.variant = names(view.num_variant_bytes, view.variant);
  segment.opening = copy(view.opening);
  segment.action = copy(view.action);
  segment.root_value = copy(view.root_value);
  segment.policy_weight = copy(view.policy_weight);
  segment.value_weight = copy(view.value_weight);
  const bool has_leads =
      std::ranges::any_of(view.lead, [](int16_t lead) { return lead != kNoLead; });
  if (has_leads) segment.lead = copy(view.lead);
  segment.policy_action = copy(view.policy_action);
  segment.policy_mass = copy(view.policy_mass);
  const bool has_empty = std::ranges::find(segment.policy_mass, 0) != segment.policy_mass.end();
  check(!has_empty, "policy_mass", 0, "must be above 0; the segment is damaged");
  for (uint32_t ply = 0; ply < num_plies; ++ply) {
    if (segment.policy_weight[ply] > 0.0f || segment.value_weight[ply] > 0.0f) {
      segment.row_ply.push_back(ply);
    }
  }
  segment.row_ply.shrink_to_fit();
  return segment;
}

size_t RowSegment::num_bytes() const {
  // Excludes the heap memory of long variant names, which are rare.
  return sizeof(*this) + bytes_of(row_ply) + bytes_of(first_ply) + bytes_of(first_opening) +
         bytes_of(first_entry) + bytes_of(outcome) + bytes_of(variant) + bytes_of(opening) +
         bytes_of(action) + bytes_of(root_value) + bytes_of(policy_weight) +
         bytes_of(value_weight) + bytes_of(lead) + bytes_of(policy_action) + bytes_of(policy_mass) +
         bytes_of(to_play) + bytes_of(is_scored) + bytes_of(score) + bytes_of(owners);
}

uint64_t GameRows::add_segment(const SegmentView& view) {
  RowSegment segment = make_row_segment(view);
  replay_games(segment);
  segment.is_scored.shrink_to_fit();
  segment.score.shrink_to_fit();
  segment.owners.shrink_to_fit();
  const uint64_t num_new = segment.row_ply.size();
  const std::unique_lock lock(mutex_);
  segment.first_row = num_rows_;
  num_rows_ += num_new;
  if (num_new > 0) segments_.push_back(std::make_shared<const RowSegment>(std::move(segment)));
  return num_new;
}

void GameRows::skip_rows(uint64_t num_rows) {
  const std::unique_lock lock(mutex_);
  if (!segments_.empty()) {
    throw Error("skip_rows (" + std::to_string(num_rows) +
                ") must come before the first segment; skip first");
  }
  num_rows_ += num_rows;
}

void GameRows::drop_before(uint64_t row) {
  const std::unique_lock lock(mutex_);
  while (!segments_.empty() &&
         segments_.front()->first_row + segments_.front()->row_ply.size() <= row) {
    segments_.pop_front();
  }
}

uint64_t GameRows::num_rows() const {
  const std::shared_lock lock(mutex_);
  return num_rows_;
}

uint64_t GameRows::first_row() const {
  const std::shared_lock lock(mutex_);
  return segments_.empty() ? num_rows_ : segments_.front()->first_row;
}

size_t GameRows::num_bytes() const {
  const std::shared_lock lock(mutex_);
  size_t total = 0;
  for (const auto& segment : segments_) total += segment->num_bytes();
  return total;
}

void GameRows::fill(std::span<const int64_t> rows, std::span<const uint8_t> symmetries,
                    const BatchView& out) const {
  check_length("symmetries", symmetries.size(), rows.size());
  std::vector<uint16_t> scratch(static_cast<size_t>(num_actions()));
  std::vector<std::shared_ptr<const RowSegment>> segments;
  {
    const std::shared_lock lock(mutex_);
    segments.assign(segments_.begin(), segments_.end());
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint64_t row = static_cast<uint64_t>(rows[i]);
    const auto after = std::upper_bound(
        segments.begin(), segments.end(), row,
        [](uint64_t value, const auto& segment) { return value < segment->first_row; });
    const RowSegment* segment = after == segments.begin() ? nullptr : std::prev(after)->get();
    if (segment == nullptr || row - segment->first_row >= segment->row_ply.size()) {
      throw Error("row (" + std::to_string(rows[i]) +
                  ") is not available; request first_row up to num_rows");
    }
    if (symmetries[i] >= num_symmetries()) {
      throw Error("symmetry (" + std::to_string(symmetries[i]) + ") must be below " +
                  std::to_string(num_symmetries()) + "; draw it from the game's");
    }
    const uint32_t ply = segment->row_ply[row - segment->first_row];
    fill_row(*segment, ply, symmetries[i], i, out, scratch.data());
  }
}

std::unique_ptr<GameRows> make_game_rows(const std::string& name) {
  return with_game(name, [](auto game) -> std::unique_ptr<GameRows> {
    return std::make_unique<RowsOf<decltype(game)>>(std::move(game));
  });
}

std::unique_ptr<GameRows> make_game_rows(const ExternalGame& game) {
  return std::make_unique<RowsOf<ExternalGame>>(game);
}

}  // namespace tengen
