#pragma once
// Arrays from Python as the columns of a schema, and batches as arrays.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "store/state/schema.h"

namespace tengen {

// Reads mappings of arrays that follow a schema; a column `a/b` is the entry b of the entry a.
class ColumnReader {
 public:
  explicit ColumnReader(const store::engine::Schema& schema);

  // Takes `columns`, each of one step or each with a leading axis of steps. What data() names
  // lives until the next call. Throws Error for a column that is missing, unknown, or of another
  // dtype or shape.
  void read(const nanobind::handle& columns);

  uint32_t num_steps() const { return num_steps_; }
  bool has_leading_axis() const { return has_leading_axis_; }
  const std::vector<const std::byte*>& data() const { return data_; }

 private:
  using Array = nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;

  Array find(const nanobind::handle& columns, size_t index) const;
  void check(size_t index, const Array& array);

  const store::engine::Schema& schema_;
  std::vector<std::vector<nanobind::object>> paths_;
  std::vector<nanobind::dlpack::dtype> dtypes_;
  size_t num_top_ = 0;  // different first words of the paths
  std::vector<Array> arrays_;
  std::vector<const std::byte*> data_;
  uint32_t num_steps_ = 1;
  bool has_leading_axis_ = false;
};

// The dtype of a column. Precondition: a Schema took it.
nanobind::dlpack::dtype dtype_of(const store::engine::Column& column);

// numpy arrays over a buffer that they keep alive: column c at data + offsets[c], its frames, if
// they are stacked, and its step's shape behind `leading`; nested as the names are.
nanobind::dict to_arrays(const store::engine::Schema& schema, const std::vector<uint64_t>& offsets,
                         const std::shared_ptr<std::byte>& data,
                         const std::vector<size_t>& leading);

// Lists of read-only arrays that keep `owner` alive: of sample i of column c at
// data[c * num_samples + i], its step's shape behind `leading`; nested as the names are.
nanobind::dict to_views(const store::engine::Schema& schema, const std::vector<std::byte*>& data,
                        const nanobind::object& owner, const std::vector<size_t>& leading);

}  // namespace tengen
