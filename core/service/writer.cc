#include "service/writer.h"

#include <algorithm>

namespace tengen::service {

uint32_t Writer::append(std::span<const std::byte* const> columns, uint32_t count,
                        Deadline deadline) {
  const uint32_t length = schema_.steps_per_chunk();
  from_.assign(columns.begin(), columns.end());
  for (uint32_t done = 0; done < count;) {
    const uint32_t offset = static_cast<uint32_t>(num_steps_ % length);
    if (offset == 0) {
      const std::optional<uint32_t> slot = port_->begin_chunk(deadline);
      if (!slot) return done;
      slot_ = *slot;
    }
    const uint32_t taken = std::min(count - done, length - offset);
    scatter(schema_, from_, taken, slabs_.up_to(slot_).at(slot_), offset);
    for (size_t c = 0; c < from_.size(); ++c) from_[c] += taken * schema_.columns()[c].num_bytes;
    num_steps_ += taken;
    done += taken;
  }
  return count;
}

bool Writer::insert(const InsertRun& run, Deadline deadline) {
  if (!port_->insert(run, deadline)) return false;
  next_sequence_ = std::max(next_sequence_, run.sequence + run.count);
  // Told once a chunk, as a release is of whole chunks.
  const uint32_t length = schema_.steps_per_chunk();
  const uint64_t kept = num_steps_ - std::min<uint64_t>(num_steps_, max_item_steps_);
  if (kept / length > num_released_ / length) {
    port_->release_before(kept);
    num_released_ = kept;
  }
  return true;
}

}  // namespace tengen::service
