#pragma once
// A store's writer as Python has it.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "python/columns.h"
#include "python/store_values.h"
#include "store/clients/writer.h"

namespace tengen {

// Reads columns, fills chunks, names items. For one thread, which has the interpreter's lock;
// calls with a timeout wait without it.
class ReplayWriter {
 public:
  using Flags =
      nanobind::ndarray<const bool, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
  // One for all items, or one for each.
  using Priorities = std::variant<double, Doubles>;

  explicit ReplayWriter(std::unique_ptr<store::Writer> writer)
      : writer_(std::move(writer)), reader_(writer_->schema()) {}
  ReplayWriter(const ReplayWriter&) = delete;
  ReplayWriter& operator=(const ReplayWriter&) = delete;

  // How many steps were passed; none where not all were taken in time: append_rest() goes on.
  std::optional<uint32_t> append(const nanobind::handle& columns,
                                 const std::optional<Flags>& is_first, double timeout_s);
  std::optional<uint32_t> append_rest(double timeout_s);

  // The last `num_steps` steps as one item, whose number is the next where none is given. False
  // where the time is over; the same call again then goes on, as for insert_each().
  bool insert(uint32_t table, uint32_t num_steps, double priority, std::optional<uint64_t> sequence,
              uint32_t version, double timeout_s);
  // `count` items, of which each begins `stride` steps behind the one before and the last ends
  // with the last step. Without a count: as many as end at steps of the last append and begin at
  // steps of this writer; of priorities that are more the last ones. How many; none where the time
  // is over.
  std::optional<uint32_t> insert_each(uint32_t table, uint32_t num_steps,
                                      const Priorities& priorities, std::optional<uint32_t> count,
                                      uint32_t stride, std::optional<uint64_t> sequence,
                                      uint32_t version, double timeout_s);

  store::Writer& writer() { return *writer_; }
  uint64_t num_steps() const { return writer_->num_steps(); }
  uint64_t next_sequence() const { return writer_->next_sequence(); }

 private:
  void read_flags(const std::optional<Flags>& is_first);

  const std::unique_ptr<store::Writer> writer_;
  ColumnReader reader_;
  Flags is_first_;
  uint32_t num_taken_ = 0;  // of the steps that were read last
  std::vector<const std::byte*> from_;
};

}  // namespace tengen
