#pragma once
// The input, output and state arrays of several rows, in one block of memory.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "transport/shared_memory.h"

namespace tengen {

// The role of an array in inference: kFirst is a byte that is set if the row starts an episode.
enum class RowPart : uint8_t { kFirst, kInput, kOutput, kState };

// The role of one array, and its size in bytes per row.
struct RowColumn {
  RowPart part;
  size_t row_bytes;
};

// The arrays of a network in the order of its signature: episode starts, inputs, outputs, state.
// The layout is the same as in tengen.inference.RowArrays. Every array is aligned to 64 bytes.
class RowColumns {
 public:
  explicit RowColumns(std::vector<RowColumn> columns) : columns_(std::move(columns)) {
    check(!columns_.empty() && columns_[0].part == RowPart::kFirst && columns_[0].row_bytes == 1,
          "columns", columns_.size(), "must start with a byte per row; use a signature's");
  }

  size_t size() const { return columns_.size(); }
  const RowColumn& operator[](size_t i) const { return columns_[i]; }

  // Returns the offset in bytes of each array for `num_rows` rows, followed by the total size.
  std::vector<size_t> offsets(size_t num_rows) const {
    std::vector<size_t> offsets;
    size_t end = 0;
    for (const RowColumn& column : columns_) {
      offsets.push_back((end + kAlignment - 1) / kAlignment * kAlignment);
      end = offsets.back() + column.row_bytes * num_rows;
    }
    offsets.push_back(end);
    return offsets;
  }

 private:
  static constexpr size_t kAlignment = 64;
  std::vector<RowColumn> columns_;
};

// The memory of all arrays for `num_rows` rows. Movable, not thread-safe.
class RowMemory {
 public:
  // Maps the shared memory of `descriptor`, or allocates zeroed memory if it is -1. Throws Error on
  // failure.
  RowMemory(const RowColumns& columns, size_t num_rows, int descriptor)
      : num_rows_(num_rows),
        offsets_(columns.offsets(num_rows)),
        memory_(descriptor < 0 ? transport::SharedMemory::anonymous(offsets_.back())
                               : transport::SharedMemory::unnamed(descriptor, offsets_.back())) {}

  size_t num_rows() const { return num_rows_; }
  std::byte* column(size_t i) const { return memory_.data() + offsets_[i]; }

 private:
  size_t num_rows_;
  std::vector<size_t> offsets_;
  transport::SharedMemory memory_;
};

}  // namespace tengen
