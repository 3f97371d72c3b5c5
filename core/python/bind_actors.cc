// The operations of an environment actor between inference and a step.

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "actors/choice_draws.h"
#include "actors/episode_counts.h"
#include "actors/step_columns.h"
#include "base/error.h"
#include "base/philox64.h"
#include "python/arrays.h"
#include "python/bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tengen {
namespace {

template <class T, int Axes>
using In = nb::ndarray<const T, nb::ndim<Axes>, nb::c_contig, nb::device::cpu>;
template <class T>
using AnyShape = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T, int Axes>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<Axes>>;
using Rows = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Block = nb::ndarray<nb::c_contig, nb::device::cpu>;

Out<double, 2> uniforms(const std::array<uint64_t, 2>& key, const std::array<uint64_t, 4>& counter,
                        size_t num_rows, size_t row_size) {
  auto array = make_array<double>(std::array{num_rows, row_size});
  fill_uniforms(key, counter, row_size, {array.data(), array.size()});
  return array;
}

// Returns the index of the first array with an infinite number or NaN, or the number of arrays.
size_t first_not_finite(const std::vector<AnyShape<float>>& arrays) {
  for (size_t place = 0; place < arrays.size(); ++place) {
    const float* const values = arrays[place].data();
    for (size_t i = 0; i < arrays[place].size(); ++i)
      if (!std::isfinite(values[i])) return place;
  }
  return arrays.size();
}

std::tuple<Out<int64_t, 2>, Out<float, 1>> draw(const ChoiceDraws& draws,
                                                const In<float, 2>& logits,
                                                const In<double, 2>& uniform_rows) {
  const size_t num_rows = logits.shape(0);
  check(logits.shape(1) == draws.num_logits(), "logits", logits.shape(1),
        "must be one per choice; correct the network");
  check(uniform_rows.shape(0) == num_rows && uniform_rows.shape(1) >= draws.num_parts(), "uniforms",
        uniform_rows.shape(1), "must be one per part in each row; correct the caller");
  auto choices = make_array<int64_t>(std::array{num_rows, draws.num_parts()});
  auto log_prob = make_array<float>(std::array{num_rows});
  draws.draw({logits.data(), logits.size()}, {uniform_rows.data(), uniform_rows.size()},
             uniform_rows.shape(1), {choices.data(), choices.size()}, {log_prob.data(), num_rows});
  return {choices, log_prob};
}

// A block of steps that keeps the arrays of its columns alive.
class PyStepColumns {
 public:
  PyStepColumns(const std::vector<std::string>& names, std::vector<Block> columns)
      : names_(names), arrays_(std::move(columns)) {
    check(!arrays_.empty() && names_.size() == arrays_.size(), "columns", arrays_.size(),
          "must be one per name; correct the caller");
    for (const Block& array : arrays_) {
      check(array.ndim() >= 2 && array.shape(0) == arrays_[0].shape(0) &&
                array.shape(1) == arrays_[0].shape(1),
            "columns", array.ndim(), "must have copies and steps as axes; correct the caller");
      const size_t num_rows = array.shape(0) * array.shape(1);
      columns_.emplace_back(static_cast<std::byte*>(array.data()), array.shape(1),
                            num_rows == 0 ? 0 : array.nbytes() / num_rows);
    }
  }

  // Writes step `t`. `rows` has an array with a row per copy, or one integer, for each column.
  void put(size_t t, const nb::list& rows) {
    const size_t num_copies = arrays_[0].shape(0);
    check(t < arrays_[0].shape(1), "step", t, "must be in the block; correct the caller");
    check(rows.size() == columns_.size(), "rows", rows.size(),
          "must be one per column; correct the caller");
    for (size_t c = 0; c < columns_.size(); ++c) {
      const nb::handle row = rows[c];
      if (nb::isinstance<nb::int_>(row)) {
        const int64_t value = nb::cast<int64_t>(row);
        check(columns_[c].row_bytes() == sizeof(value), names_[c].c_str(), value,
              "must be for an int64 column; correct the caller");
        columns_[c].fill(t, reinterpret_cast<const std::byte*>(&value), num_copies);
        continue;
      }
      const Rows array = nb::cast<Rows>(row);
      const bool fits = array.ndim() >= 1 && array.shape(0) == num_copies &&
                        array.nbytes() == num_copies * columns_[c].row_bytes() &&
                        is_same(array.dtype(), arrays_[c].dtype());
      check(fits, names_[c].c_str(), array.nbytes(),
            "must have the dtype and shape of its column; correct the environment or the agent");
      columns_[c].put(t, static_cast<const std::byte*>(array.data()), num_copies);
    }
  }

 private:
  // Treats bool as uint8, because a numpy bool is a byte with value 0 or 1.
  static bool is_same(nb::dlpack::dtype a, nb::dlpack::dtype b) {
    const auto code = [](nb::dlpack::dtype d) {
      const auto boolean = static_cast<uint8_t>(nb::dlpack::dtype_code::Bool);
      return d.code == boolean ? static_cast<uint8_t>(nb::dlpack::dtype_code::UInt) : d.code;
    };
    return code(a) == code(b) && a.bits == b.bits;
  }

  std::vector<std::string> names_;
  std::vector<Block> arrays_;
  std::vector<StepColumn> columns_;
};

std::tuple<size_t, std::vector<std::tuple<double, int64_t>>> count(EpisodeCounts& counts,
                                                                   const In<float, 1>& reward,
                                                                   const In<bool, 1>& terminated,
                                                                   const In<bool, 1>& truncated,
                                                                   const In<bool, 1>& is_reset) {
  for (const size_t size : {reward.size(), terminated.size(), truncated.size(), is_reset.size()})
    check(size == counts.num_copies(), "step", size,
          "must have a row per copy; correct the caller");
  counts.add(reward.data(), terminated.data(), truncated.data(), is_reset.data());
  std::vector<std::tuple<double, int64_t>> finished;
  for (const FinishedEpisode& episode : counts.finished())
    finished.emplace_back(episode.episode_return, episode.length);
  return {counts.num_resets(), std::move(finished)};
}

}  // namespace

void bind_actors(nb::module_& m) {
  m.def(
      "uniforms", &uniforms, "key"_a, "counter"_a, "num_rows"_a, "row_size"_a,
      "Returns numpy's Philox(key, counter) numbers in [0, 1), [num_rows, row_size] float64. Each "
      "row starts at a new block; see core/base/philox64.h.");
  m.def("first_not_finite", &first_not_finite, "arrays"_a,
        "Returns the index of the first array with an infinite number or NaN, or their number.");
  nb::class_<ChoiceDraws>(m, "ChoiceDraws",
                          "Samples choices from logits; see core/actors/choice_draws.h.")
      .def(nb::init<std::vector<uint32_t>>(), "num_choices"_a)
      .def("draw", &draw, "logits"_a, "uniforms"_a,
           "Returns sampled choices [N, K] int64 and their log-probabilities [N] float32.")
      .def(
          "first_out_of_range",
          [](const ChoiceDraws& self,
             const nb::ndarray<const int64_t, nb::c_contig, nb::device::cpu>& choices) {
            return self.first_out_of_range({choices.data(), choices.size()});
          },
          "choices"_a, "Returns the first row with a choice out of range, or the number of rows.");
  nb::class_<PyStepColumns>(m, "StepColumns", "Columns of steps; see core/actors/step_columns.h.")
      .def(nb::init<const std::vector<std::string>&, std::vector<Block>>(), "names"_a, "columns"_a)
      .def("put", &PyStepColumns::put, "t"_a, "rows"_a,
           "Writes step t of all copies. An integer in rows applies to all copies.");
  nb::class_<EpisodeCounts>(m, "EpisodeCounts",
                            "Returns and lengths of episodes; see core/actors/episode_counts.h.")
      .def(nb::init<size_t>(), "num_copies"_a)
      .def("count", &count, "reward"_a, "terminated"_a, "truncated"_a, "is_reset"_a,
           "Adds a step. Returns its number of resets, and (return, length) of ended episodes.");
}

}  // namespace tengen
