#pragma once
// The Python interface of a store's writer.

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

// Reads columns, fills chunks and inserts items. For one thread, which holds the GIL; calls with a
// timeout release the GIL while they wait.
class ReplayWriter {
 public:
  // One priority for all items, or one for each item.
  using Priorities = std::variant<double, Doubles>;

  explicit ReplayWriter(std::unique_ptr<store::Writer> writer)
      : writer_(std::move(writer)), reader_(writer_->schema()) {}
  ReplayWriter(const ReplayWriter&) = delete;
  ReplayWriter& operator=(const ReplayWriter&) = delete;

  // Appends steps and returns their number. Returns nullopt if the timeout expires before all are
  // appended; append_rest() then continues.
  std::optional<uint32_t> append(const nanobind::handle& columns, double timeout_s);
  std::optional<uint32_t> append_rest(double timeout_s);

  // Inserts the last `num_steps` steps as one item. Its number is `sequence`, by default the next
  // one. Returns false on timeout; the same call then continues, as in insert_each().
  bool insert(uint32_t table, uint32_t num_steps, double priority, std::optional<uint64_t> sequence,
              double timeout_s);
  // Inserts `count` items of `num_steps` steps. Each begins `stride` steps after the previous one,
  // and the last item ends with the last step. Without `count`, inserts all items that end within
  // the last append; items that would begin before the writer's first step are skipped, and so are
  // their priorities. Returns the number of inserted items, or nullopt on timeout.
  std::optional<uint32_t> insert_each(uint32_t table, uint32_t num_steps,
                                      const Priorities& priorities, std::optional<uint32_t> count,
                                      uint32_t stride, std::optional<uint64_t> sequence,
                                      double timeout_s);

  store::Writer& writer() { return *writer_; }
  uint64_t num_steps() const { return writer_->num_steps(); }
  uint64_t next_sequence() const { return writer_->next_sequence(); }

 private:
  const std::unique_ptr<store::Writer> writer_;
  ColumnReader reader_;
  uint32_t num_taken_ = 0;  // appended steps of the last append()
  std::vector<const std::byte*> from_;
};

}  // namespace tengen
