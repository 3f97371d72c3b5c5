#pragma once
// The columns of a step, and where they lie in a chunk.

#include <cstdint>
#include <string>
#include <vector>

namespace tengen::store::engine {

struct Column {
  std::string name;
  std::string dtype;  // numpy's short form: "u1", "f4", "i8", "b1"
  std::vector<uint32_t> shape;
  uint64_t num_bytes = 0;  // of one step; filled in by Schema
  bool operator==(const Column& other) const = default;
};

// A chunk holds column after column, each the elements of its steps one after another, aligned to
// 64 bytes; so a run of steps is one copy a column.
class Schema {
 public:
  // Throws Error for no columns, a name twice or empty, an unknown dtype, or a step that is empty
  // or above 1 GiB, and for steps_per_chunk of 0 or chunks above 2 GiB.
  Schema(std::vector<Column> columns, uint32_t steps_per_chunk);

  const std::vector<Column>& columns() const { return columns_; }
  uint32_t steps_per_chunk() const { return steps_per_chunk_; }
  // Where column `index` begins in a chunk.
  uint64_t offset(size_t index) const { return offsets_[index]; }
  // Calls `f` with where the bytes of `count` steps from `first` on lie in a chunk, and how many:
  // column after column. So steps travel that belong to no batch.
  template <class Byte, class F>
  void for_each_run(Byte* chunk, uint64_t first, uint64_t count, F&& f) const {
    for (size_t c = 0; c < columns_.size(); ++c) {
      const uint64_t bytes = columns_[c].num_bytes;
      f(chunk + offsets_[c] + first * bytes, count * bytes);
    }
  }
  uint64_t step_bytes() const { return step_bytes_; }    // of data, without padding
  uint64_t chunk_bytes() const { return chunk_bytes_; }  // a multiple of 64
  bool operator==(const Schema& other) const = default;

 private:
  // Makes room for so many bytes a step, and tells where.
  uint64_t add(uint64_t num_bytes);

  std::vector<Column> columns_;
  std::vector<uint64_t> offsets_;
  uint32_t steps_per_chunk_;
  uint64_t step_bytes_ = 0;
  uint64_t chunk_bytes_ = 0;
};

}  // namespace tengen::store::engine
