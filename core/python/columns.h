#pragma once
// Converts Python arrays to the columns of a schema, and batches to arrays.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "store/state/schema.h"

namespace tengen {

// Reads nested dicts of arrays that match a schema. Column `a/b` is entry `b` of the dict `a`.
class ColumnReader {
 public:
  explicit ColumnReader(const store::engine::Schema& schema);

  // Reads `columns`. Either all of them have one step, or all have a leading axis of steps. The
  // pointers of data() are valid until the next call. Throws Error if a column is missing or
  // unknown, or has the wrong dtype or shape.
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
  size_t num_top_ = 0;  // number of distinct first words of the paths
  std::vector<Array> arrays_;
  std::vector<const std::byte*> data_;
  uint32_t num_steps_ = 1;
  bool has_leading_axis_ = false;
};

// Returns the dtype of a column. Precondition: the column is part of a Schema.
nanobind::dlpack::dtype dtype_of(const store::engine::Column& column);

// Returns nested dicts of numpy arrays that share `data` and keep it alive. Column c begins at data
// + offsets[c], and has the shape `leading` followed by the column's shape.
nanobind::dict to_arrays(const store::engine::Schema& schema, const std::vector<uint64_t>& offsets,
                         const std::shared_ptr<std::byte>& data,
                         const std::vector<size_t>& leading);

}  // namespace tengen
