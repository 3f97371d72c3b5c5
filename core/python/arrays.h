#pragma once
// numpy arrays and bytes of the bindings, and the columns of a segment that Python passes by name.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "records/game_rows.h"

namespace tengen {

template <class T>
using Column =
    nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

template <class T>
std::span<const T> span_of(const Column<T>& column) {
  return {column.data(), column.size()};
}

inline nanobind::bytes bytes_of(const std::string& text) {
  return nanobind::bytes(text.data(), text.size());
}
inline std::vector<nanobind::bytes> bytes_of(const std::vector<std::string>& texts) {
  std::vector<nanobind::bytes> all;
  for (const std::string& text : texts) all.push_back(bytes_of(text));
  return all;
}

// Returns a new array with unspecified contents, whose memory Python frees.
template <class T, size_t Axes>
auto make_array(const std::array<size_t, Axes>& shape) {
  size_t size = 1;
  for (const size_t extent : shape) size *= extent;
  T* const data = new T[size];
  const nanobind::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<static_cast<int>(Axes)>>(
      data, Axes, shape.data(), owner);
}

template <class T>
using NumpyVector = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>;

// Returns a numpy array that owns the vector.
template <class T>
NumpyVector<T> to_numpy(std::vector<T> values) {
  auto* const owned = new std::vector<T>(std::move(values));
  const nanobind::capsule owner(owned,
                                [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return NumpyVector<T>(owned->data(), {owned->size()}, owner);
}

// The columns of a segment by name. Columns that are not given are empty. Keeps the arrays alive.
class SegmentColumns {
 public:
  explicit SegmentColumns(const nanobind::kwargs& columns) {
    read(columns, "outcome", &view_.outcome);
    read(columns, "num_variant_bytes", &view_.num_variant_bytes);
    read(columns, "num_opening_plies", &view_.num_opening_plies);
    read(columns, "num_plies", &view_.num_plies);
    read(columns, "variant", &view_.variant);
    read(columns, "opening", &view_.opening);
    read(columns, "action", &view_.action);
    read(columns, "root_value", &view_.root_value);
    read(columns, "policy_weight", &view_.policy_weight);
    read(columns, "value_weight", &view_.value_weight);
    read(columns, "lead", &view_.lead);
    read(columns, "num_policy_entries", &view_.num_policy_entries);
    read(columns, "policy_action", &view_.policy_action);
    read(columns, "policy_mass", &view_.policy_mass);
  }

  const SegmentView& view() const { return view_; }

 private:
  template <class T>
  void read(const nanobind::kwargs& columns, const char* name, std::span<const T>* to) {
    if (!columns.contains(name)) return;
    const auto array = std::make_shared<Column<T>>();
    check(nanobind::try_cast(columns[name], *array), "column", name,
          "must be an array of the segment's dtype; convert it");
    *to = span_of(*array);
    arrays_.push_back(array);
  }

  SegmentView view_;
  std::vector<std::shared_ptr<void>> arrays_;
};

}  // namespace tengen
