#pragma once
// The parts of a store's state as plain values, from which a store in another process can resume.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/state/rate_limiter.h"

namespace tengen::store::engine {

// The key of an item: the last bits of its serial, and its slot in the table; 56 bits in total.
// Serials count all items that the table has ever had.
constexpr int kSlotBits = 28;
constexpr uint64_t kMaxItems = (uint64_t{1} << kSlotBits) - 1;
constexpr int64_t kSerialMask = (int64_t{1} << 28) - 1;
constexpr int64_t key_of(int64_t serial, uint32_t slot) {
  return (serial & kSerialMask) << kSlotBits | slot;
}
// Returns the last bits of the serial in `key`.
constexpr int64_t serial_of(int64_t key) { return key >> kSlotBits & kSerialMask; }
// Returns the newest serial below `end` whose last bits are in `key`.
constexpr int64_t serial_before(int64_t end, int64_t key) {
  return end - 1 - ((end - 1 - serial_of(key)) & kSerialMask);
}
constexpr uint32_t slot_of(int64_t key) {
  return static_cast<uint32_t>(key & static_cast<int64_t>(kMaxItems));
}

// Consecutive steps of one stream, which holds the steps of one writer.
struct StepRange {
  uint64_t first = 0;  // index in the stream
  uint32_t stream = 0;
  uint32_t num_steps = 0;
};

// Returns the float that a table and its log store for `priority`. Only 0 becomes 0: any other
// priority below 1.18e-38, the smallest normal float, is rounded up to that value. Throws Error if
// a priority is negative, not a number, or too large for a float.
inline float kept_priority(double priority) {
  if (!(priority >= 0 && priority <= std::numeric_limits<float>::max())) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", priority);
    check(false, "priority", text,
          "must be 0 to 3.4e38, the range of float32; correct the loss that gave it");
  }
  if (priority == 0) return 0.0f;
  return std::max(static_cast<float>(priority), std::numeric_limits<float>::min());
}

struct SavedItem {
  int64_t key = -1;  // -1: the slot is free
  StepRange steps;
  float priority = 0.0f;
  uint32_t times_sampled = 0;
};

struct SavedTable {
  uint32_t pool = 0;
  std::vector<SavedItem> items;  // by slot index
  uint64_t num_inserts = 0;
  uint64_t num_samples = 0;
  int64_t num_serials = 0;
  // Settings that were changed while the table was in use; none if they equal the config.
  std::optional<RateLimits> limits;
  std::optional<std::pair<uint64_t, uint64_t>> capacity;  // maximum items and steps
};

struct SavedStream {
  bool is_open = false;
  uint64_t first_chunk = 0;      // index of slots[0] in the stream
  uint64_t first_of_writer = 0;  // index of the first chunk that the writer holds
  std::deque<uint32_t> slots;    // slots of the stream's chunks, including dead chunks
};

constexpr uint32_t kNowhere = UINT32_MAX;

// The locations of a chunk, in pools with a disk.
struct SavedChunk {
  uint32_t slot = kNowhere;
  uint32_t place = kNowhere;
  uint32_t checksum = 0;  // CRC-32C of the row on disk
};

// Steps of an incomplete chunk, column by column.
struct SavedSteps {
  uint32_t first = 0;  // index in the chunk
  uint32_t count = 0;
  std::vector<std::byte> bytes;
};

struct SavedWriter {
  std::string name;  // empty if there is no writer with this index
  uint32_t session = 0;
  uint32_t pool = 0;
  uint32_t stream = 0;
  std::vector<uint32_t> granted;  // granted chunks that are not appended yet
};

struct SavedLoan {
  uint32_t session = 0;
  uint32_t table = 0;
  std::vector<int64_t> keys;
  std::vector<StepRange> steps;
};

// The progress of a session, for a client and a server that resume it.
struct SessionProgress {
  uint64_t num_applied = 0;   // requests that have taken effect
  uint64_t request_tail = 0;  // bytes consumed from the ring of requests
  uint64_t reply_head = 0;    // bytes sent over the ring of replies
  uint64_t num_wanted = 0;    // batches or slots that were requested and not sent yet
};

struct SavedSession {
  std::vector<std::byte>
      description;  // for the next server; empty if the session ends with its server
  SessionProgress progress;
};

}  // namespace tengen::store::engine
