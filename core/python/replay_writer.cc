#include "python/replay_writer.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/error.h"
#include "python/gil.h"

namespace nb = nanobind;

namespace tengen {

std::optional<uint32_t> ReplayWriter::append(const nb::handle& columns, double timeout_s) {
  num_taken_ = 0;  // also if read() throws
  reader_.read(columns);
  return append_rest(timeout_s);
}

std::optional<uint32_t> ReplayWriter::append_rest(double timeout_s) {
  from_ = reader_.data();
  for (size_t c = 0; c < from_.size(); ++c) {
    from_[c] += num_taken_ * writer_->schema().columns()[c].num_bytes;
  }
  const GilReleased release;
  num_taken_ += writer_->append(from_, reader_.num_steps() - num_taken_, after(timeout_s));
  if (num_taken_ < reader_.num_steps()) return std::nullopt;
  return num_taken_;
}

bool ReplayWriter::insert(uint32_t table, uint32_t num_steps, double priority,
                          std::optional<uint64_t> sequence, double timeout_s) {
  return insert_each(table, num_steps, priority, 1, 1, sequence, timeout_s).has_value();
}

std::optional<uint32_t> ReplayWriter::insert_each(uint32_t table, uint32_t num_steps,
                                                  const Priorities& priorities,
                                                  std::optional<uint32_t> count, uint32_t stride,
                                                  std::optional<uint64_t> sequence,
                                                  double timeout_s) {
  check(stride >= 1, "stride", stride, "must be at least 1; raise it");
  const uint64_t end = writer_->num_steps();
  const uint32_t wished = count.value_or((num_taken_ + stride - 1) / stride);
  // The number of items that begin at or after the writer's first step.
  const uint64_t possible = end < num_steps ? 0 : (end - num_steps) / stride + 1;
  const uint32_t num_items = static_cast<uint32_t>(std::min<uint64_t>(wished, possible));
  if (count && possible == 0) {
    throw Error("num_steps (" + std::to_string(num_steps) + ") must be at most the " +
                std::to_string(end) + " steps appended; append more first");
  }
  if (count && (num_items < wished || wished == 0)) {
    throw Error("count (" + std::to_string(wished) + ") must be 1 to the " +
                std::to_string(possible) + " items that the " + std::to_string(end) +
                " steps appended have; append more first");
  }
  std::span<const double> given;
  if (const double* one = std::get_if<double>(&priorities)) {
    given = {one, 1};
  } else {
    given = span_of(std::get<Doubles>(priorities));
    if (given.size() != wished) {
      throw Error("priorities (" + std::to_string(given.size()) + ") must be " +
                  std::to_string(wished) + ", one for each item, or one for all; pass as many");
    }
    given = given.last(num_items);
  }
  check_priorities(given);
  if (num_items == 0) return 0;
  const uint64_t first = end - num_steps - uint64_t{num_items - 1} * stride;
  const GilReleased release;
  if (!writer_->insert({table, sequence.value_or(writer_->next_sequence()), first, num_items,
                        stride, num_steps, given},
                       after(timeout_s))) {
    return std::nullopt;
  }
  return num_items;
}

}  // namespace tengen
