#pragma once
// A store's writer, as Python sees it.

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

// Reads columns, fills chunks, inserts items. For one thread, which holds the GIL; calls with a
// timeout release it while they wait.
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

  // Returns the number of steps passed, or none if the time was over before all were stored:
  // append_rest() then continues.
  std::optional<uint32_t> append(const nanobind::handle& columns,
                                 const std::optional<Flags>& is_first, double timeout_s);
  std::optional<uint32_t> append_rest(double timeout_s);

  // Inserts the last `num_steps` steps as one item, with the next number if none is given. Returns
  // false if the time is over; repeating the call then continues, as for insert_each().
  bool insert(uint32_t table, uint32_t num_steps, double priority, std::optional<uint64_t> sequence,
              uint32_t version, double timeout_s);
  // Inserts `count` items; each starts `stride` steps after the previous one, and the last ends
  // with the last step. Without a count: one for each step of the last append, if the item does not
  // start before this writer's first step; of surplus priorities the last ones are used. Returns
  // the number of items, or none if the time is over.
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
