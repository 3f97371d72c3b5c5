#include "python/columns.h"

#include <nanobind/stl/string.h>

#include <set>
#include <string>

#include "base/error.h"

namespace nb = nanobind;

namespace tengen {
namespace {

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    words.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string text_of(const std::vector<size_t>& shape) {
  std::string text = "[";
  for (const size_t length : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(length);
  return text + "]";
}

// Returns numpy's name of the dtype.
std::string name_of(nb::dlpack::dtype dtype) {
  using Code = nb::dlpack::dtype_code;
  const auto code = static_cast<Code>(dtype.code);
  if (code == Code::Bool) return "bool";
  const char* kind = code == Code::Int       ? "int"
                     : code == Code::UInt    ? "uint"
                     : code == Code::Float   ? "float"
                     : code == Code::Bfloat  ? "bfloat"
                     : code == Code::Complex ? "complex"
                                             : "unknown";
  return kind + std::to_string(dtype.bits);
}

}  // namespace

nb::dlpack::dtype dtype_of(const store::engine::Column& column) {
  const uint8_t bits = static_cast<uint8_t>(8 * (column.dtype[1] - '0'));
  const auto code = column.dtype[0] == 'b'   ? nb::dlpack::dtype_code::Bool
                    : column.dtype[0] == 'i' ? nb::dlpack::dtype_code::Int
                    : column.dtype[0] == 'u' ? nb::dlpack::dtype_code::UInt
                                             : nb::dlpack::dtype_code::Float;
  return {static_cast<uint8_t>(code), bits, 1};
}

ColumnReader::ColumnReader(const store::engine::Schema& schema) : schema_(schema) {
  std::set<std::string> top;
  for (const store::engine::Column& column : schema.columns()) {
    std::vector<nb::object> path;
    for (const std::string& word : words_of(column.name)) path.push_back(nb::str(word.c_str()));
    top.insert(words_of(column.name).front());
    paths_.push_back(std::move(path));
    dtypes_.push_back(dtype_of(column));
  }
  num_top_ = top.size();
  arrays_.resize(paths_.size());
  data_.resize(paths_.size());
}

void ColumnReader::read(const nb::handle& columns) {
  if (!PyDict_Check(columns.ptr())) {
    throw Error("columns (" + nb::cast<std::string>(nb::str(columns.type())) +
                ") must be a dict of arrays; name each array");
  }
  for (size_t c = 0; c < paths_.size(); ++c) {
    arrays_[c] = find(columns, c);
    check(c, arrays_[c]);
    data_[c] = static_cast<const std::byte*>(arrays_[c].data());
  }
  if (static_cast<size_t>(PyDict_Size(columns.ptr())) != num_top_) {
    std::string names;
    for (const auto& item : nb::cast<nb::dict>(columns)) {
      names += (names.empty() ? "" : ", ") + nb::cast<std::string>(nb::str(item.first));
    }
    std::string known;
    for (const auto& column : schema_.columns()) {
      known += (known.empty() ? "" : ", ") + column.name;
    }
    throw Error("columns (" + names + ") must be " + known + "; leave the others out");
  }
}

namespace {

// Converts a Python number into a numpy array with the column's dtype.
nb::object number_of(const nb::handle& number, const store::engine::Column& column) {
  const auto refused = [&](const char* rule) {
    return Error("column (" + column.name + ", " + nb::cast<std::string>(nb::str(number)) +
                 ") must " + rule + " " + name_of(dtype_of(column)));
  };
  if (PyFloat_Check(number.ptr()) && column.dtype[0] != 'f') {
    throw refused("be a whole number; round it, or declare a float instead of");
  }
  try {
    return nb::module_::import_("numpy").attr("asarray")(number, column.dtype.c_str());
  } catch (const nb::python_error&) {
    throw refused("fit; declare a wider one than");
  }
}

// Returns a numpy array in native byte order, or None if `values` cannot be converted.
nb::object native_array(const nb::handle& values) {
  try {
    const nb::object array = nb::module_::import_("numpy").attr("asarray")(values);
    const nb::object dtype = array.attr("dtype").attr("newbyteorder")("=");
    return array.attr("astype")(dtype, nb::arg("copy") = false);
  } catch (const nb::python_error&) {
    return nb::none();
  }
}

}  // namespace

ColumnReader::Array ColumnReader::find(const nb::handle& columns, size_t index) const {
  nb::handle at = columns;
  for (const nb::object& word : paths_[index]) {
    at = PyDict_Check(at.ptr()) ? PyDict_GetItemWithError(at.ptr(), word.ptr()) : nullptr;
    if (!at.is_valid()) {
      throw Error("column (" + schema_.columns()[index].name + ") must be given; add it");
    }
  }
  Array array;
  // Numbers are checked first, because a numpy double is both a number and an array.
  if (PyFloat_Check(at.ptr()) || PyLong_Check(at.ptr())) {
    return nb::cast<Array>(number_of(at, schema_.columns()[index]));
  }
  if (nb::try_cast(at, array)) return array;
  if (nb::hasattr(at, "__array__") && nb::try_cast(native_array(at), array)) return array;
  throw Error("column (" + schema_.columns()[index].name +
              ") must be an array on the CPU; convert it");
}

void ColumnReader::check(size_t index, const Array& array) {
  const store::engine::Column& column = schema_.columns()[index];
  if (array.dtype() != dtypes_[index]) {
    throw Error("column (" + column.name + ", " + name_of(array.dtype()) + ") must be " +
                name_of(dtypes_[index]) + "; convert it");
  }
  const bool has_leading_axis = array.ndim() == column.shape.size() + 1;
  const size_t skipped = has_leading_axis ? 1 : 0;
  bool fits = array.ndim() == column.shape.size() + skipped;
  for (size_t axis = 0; fits && axis < column.shape.size(); ++axis) {
    fits = array.shape(axis + skipped) == column.shape[axis];
  }
  const size_t num_steps = fits && has_leading_axis ? array.shape(0) : 1;
  if (index == 0) {
    has_leading_axis_ = has_leading_axis;
    num_steps_ = static_cast<uint32_t>(num_steps);
  }
  if (!fits || has_leading_axis != has_leading_axis_ || num_steps != num_steps_) {
    std::vector<size_t> shape;
    for (size_t axis = 0; axis < array.ndim(); ++axis) shape.push_back(array.shape(axis));
    const std::vector<size_t> step(column.shape.begin(), column.shape.end());
    throw Error("column (" + column.name + ", shape " + text_of(shape) + ") must be " +
                text_of(step) + " per step, with equally many steps in all columns; reshape it");
  }
}

namespace {

// Stores a column under its nested name.
void put(nb::dict into, const std::string& name, const nb::object& value) {
  const std::vector<std::string> words = words_of(name);
  for (size_t w = 0; w + 1 < words.size(); ++w) {
    if (!into.contains(words[w].c_str())) into[words[w].c_str()] = nb::dict();
    into = nb::cast<nb::dict>(into[words[w].c_str()]);
  }
  into[words.back().c_str()] = value;
}

}  // namespace

nb::dict to_arrays(const store::engine::Schema& schema, const std::vector<uint64_t>& offsets,
                   const std::shared_ptr<std::byte>& data, const std::vector<size_t>& leading) {
  const nb::capsule owner(new std::shared_ptr<std::byte>(data), [](void* held) noexcept {
    delete static_cast<std::shared_ptr<std::byte>*>(held);
  });
  nb::dict out;
  for (size_t c = 0; c < offsets.size(); ++c) {
    const store::engine::Column& column = schema.columns()[c];
    std::vector<size_t> shape = leading;
    shape.insert(shape.end(), column.shape.begin(), column.shape.end());
    put(out, column.name,
        nb::cast(nb::ndarray<nb::numpy>(data.get() + offsets[c], shape.size(), shape.data(), owner,
                                        nullptr, dtype_of(column))));
  }
  return out;
}

}  // namespace tengen
