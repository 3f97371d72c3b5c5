#pragma once
// The columns of a block of steps, written one step of all copies at a time.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tengen {

// A view of a column of K steps of N copies: `[N, K, ...]`, with `row_bytes` bytes per step.
class StepColumn {
 public:
  StepColumn(std::byte* data, size_t num_steps, size_t row_bytes)
      : data_(data), num_steps_(num_steps), row_bytes_(row_bytes) {}

  size_t row_bytes() const { return row_bytes_; }

  // Writes step t of every copy from `rows`, `[N, ...]`. Precondition: t < K.
  void put(size_t t, const std::byte* rows, size_t num_copies) const {
    for (size_t i = 0; i < num_copies; ++i)
      std::memcpy(at(i, t), rows + i * row_bytes_, row_bytes_);
  }
  // Writes `row` as step t of every copy. Precondition: t < K.
  void fill(size_t t, const std::byte* row, size_t num_copies) const {
    for (size_t i = 0; i < num_copies; ++i) std::memcpy(at(i, t), row, row_bytes_);
  }

 private:
  std::byte* at(size_t copy, size_t t) const {
    return data_ + (copy * num_steps_ + t) * row_bytes_;
  }

  std::byte* data_;
  size_t num_steps_;
  size_t row_bytes_;
};

}  // namespace tengen
