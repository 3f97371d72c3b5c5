#include "store/state/schema.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace tengen::store::engine {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kMaxStepBytes = uint64_t{1} << 30;
// The maximum size of a chunk, below the limit of a log record, which may contain a chunk.
constexpr uint64_t kMaxChunkBytes = uint64_t{1} << 31;

uint64_t element_bytes(const std::string& dtype) {
  static const std::set<std::string> known = {"b1", "u1", "u2", "u4", "u8", "i1",
                                              "i2", "i4", "i8", "f2", "f4", "f8"};
  if (known.count(dtype) == 0) {
    throw Error("dtype (" + dtype + ") must be a bool, integer or float type; convert the column");
  }
  return static_cast<uint64_t>(dtype[1] - '0');
}

}  // namespace

Schema::Schema(std::vector<Column> columns, uint32_t steps_per_chunk)
    : columns_(std::move(columns)), steps_per_chunk_(steps_per_chunk) {
  if (columns_.empty()) throw Error("columns (none) must be at least one; declare them");
  if (steps_per_chunk == 0) throw Error("steps_per_chunk (0) must be at least 1; raise it");
  std::set<std::string> names;
  for (Column& column : columns_) {
    if (column.name.empty() || !names.insert(column.name).second) {
      throw Error("column (" + column.name + ") must have a unique name; rename it");
    }
    uint64_t num_bytes = element_bytes(column.dtype);
    for (const uint32_t length : column.shape) {
      num_bytes = length == 0 || num_bytes > kMaxStepBytes / length ? 0 : num_bytes * length;
      if (num_bytes == 0) break;
    }
    if (num_bytes == 0 || num_bytes > kMaxStepBytes) {
      throw Error("column " + column.name +
                  " (shape) must have 1 byte to 1 GiB per step; reshape it");
    }
    column.num_bytes = num_bytes;
    step_bytes_ += num_bytes;
    offsets_.push_back(add(num_bytes));
  }
}

uint64_t Schema::add(uint64_t num_bytes) {
  const uint64_t offset = chunk_bytes_;
  chunk_bytes_ += (num_bytes * steps_per_chunk_ + kAlignment - 1) / kAlignment * kAlignment;
  if (chunk_bytes_ > kMaxChunkBytes) {
    throw Error("steps_per_chunk (" + std::to_string(steps_per_chunk_) +
                ") must make chunks of at most 2 GiB; lower it");
  }
  return offset;
}

}  // namespace tengen::store::engine
