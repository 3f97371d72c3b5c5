#pragma once
// The arrays of some rows, one after the other in one piece of memory.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "transport/shared_memory.h"

namespace tengen {

// What an array is to inference.
enum class RowPart : uint8_t { kFirst, kInput, kOutput, kState };

// One array: a row of it has so many bytes.
struct RowColumn {
  RowPart part;
  size_t row_bytes;
};

// The arrays of a network, in the order of its signature: whether an episode begins, inputs,
// outputs, state. They lie as tengen.inference.RowArrays lays them out, each from a multiple of 64.
class RowColumns {
 public:
  explicit RowColumns(std::vector<RowColumn> columns) : columns_(std::move(columns)) {
    check(!columns_.empty() && columns_[0].part == RowPart::kFirst && columns_[0].row_bytes == 1,
          "columns", columns_.size(), "must begin with a byte a row; make them of a signature");
  }

  size_t size() const { return columns_.size(); }
  const RowColumn& operator[](size_t i) const { return columns_[i]; }

  // Where each array of N rows begins; the last number is where all end.
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

// The arrays of N rows. Movable, not thread-safe.
class RowMemory {
 public:
  // Takes the memory that another process has too, or with -1 new memory of zeros. Throws Error
  // where there is none.
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
