#pragma once
// The columns of a step, and their positions in a chunk.

#include <cstdint>
#include <string>
#include <vector>

namespace tengen::store::engine {

struct Column {
  std::string name;
  std::string dtype;  // numpy's short form: "u1", "f4", "i8", "b1"
  std::vector<uint32_t> shape;
  uint64_t num_bytes = 0;  // bytes per step; filled in by Schema
  bool operator==(const Column& other) const = default;
};

// The columns of a step, and the layout of a chunk. A chunk stores one column after another,
// aligned to 64 bytes, with the elements of consecutive steps. So a range of steps can be copied
// with one copy per column.
class Schema {
 public:
  // Throws Error if there are no columns, a name is empty or repeated, a dtype is unknown, a step
  // is empty or larger than 1 GiB, steps_per_chunk is 0, or a chunk is larger than 2 GiB.
  Schema(std::vector<Column> columns, uint32_t steps_per_chunk);

  const std::vector<Column>& columns() const { return columns_; }
  uint32_t steps_per_chunk() const { return steps_per_chunk_; }
  // The offset of column `index` in a chunk.
  uint64_t offset(size_t index) const { return offsets_[index]; }
  // Calls `f` once per column, with the address and size of the bytes that `count` steps from
  // `first` on have in the chunk.
  template <class Byte, class F>
  void for_each_run(Byte* chunk, uint64_t first, uint64_t count, F&& f) const {
    for (size_t c = 0; c < columns_.size(); ++c) {
      const uint64_t bytes = columns_[c].num_bytes;
      f(chunk + offsets_[c] + first * bytes, count * bytes);
    }
  }
  uint64_t step_bytes() const { return step_bytes_; }    // bytes of data, without padding
  uint64_t chunk_bytes() const { return chunk_bytes_; }  // a multiple of 64
  bool operator==(const Schema& other) const = default;

 private:
  // Reserves `num_bytes` per step in the layout of a chunk, and returns their offset.
  uint64_t add(uint64_t num_bytes);

  std::vector<Column> columns_;
  std::vector<uint64_t> offsets_;
  uint32_t steps_per_chunk_;
  uint64_t step_bytes_ = 0;
  uint64_t chunk_bytes_ = 0;
};

}  // namespace tengen::store::engine
