#include "store/service/writer.h"

#include <algorithm>

#include "base/error.h"

namespace tengen::store {

uint32_t Writer::append(std::span<const std::byte* const> columns, const bool* is_first,
                        uint32_t count, Deadline deadline) {
  const uint32_t length = schema_.steps_per_chunk();
  const bool is_stacked = schema_.num_context() > 0;
  if (is_stacked && num_steps_ == 0 && count > 0 && !is_first[0]) {
    throw Error("is_first (False) must be True at a writer's first step; begin with an episode");
  }
  from_.assign(columns.begin(), columns.end());
  for (uint32_t done = 0; done < count;) {
    const uint32_t offset = static_cast<uint32_t>(num_steps_ % length);
    if (offset == 0) {
      const std::optional<uint32_t> slot = port_->begin_chunk(deadline);
      if (!slot) return done;
      slot_ = *slot;
    }
    const uint32_t taken = std::min(count - done, length - offset);
    if (is_stacked) count_ages(is_first + done, taken);
    scatter(schema_, from_, ages_.data(), taken, slabs_.up_to(slot_).at(slot_), offset);
    for (size_t c = 0; c < from_.size(); ++c) from_[c] += taken * schema_.columns()[c].num_bytes;
    num_steps_ += taken;
    done += taken;
  }
  return count;
}

void Writer::count_ages(const bool* is_first, uint32_t count) {
  ages_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    age_ = is_first[i] ? 0 : std::min(age_ + 1, engine::Schema::kMaxAge);
    ages_[i] = static_cast<uint8_t>(age_);
  }
}

bool Writer::insert(const InsertRun& run, Deadline deadline) {
  if (!port_->insert(run, deadline)) return false;
  next_sequence_ = std::max(next_sequence_, run.sequence + run.count);
  // Sent once a chunk, as only whole chunks are released.
  const uint32_t length = schema_.steps_per_chunk();
  const uint64_t reach = uint64_t{max_item_steps_} + schema_.num_context();
  const uint64_t kept = num_steps_ - std::min(num_steps_, reach);
  if (kept / length > num_released_ / length) {
    port_->release_before(kept);
    num_released_ = kept;
  }
  return true;
}

}  // namespace tengen::store
