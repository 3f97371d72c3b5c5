#pragma once
// Fills chunks with a writer's steps, and names runs of them as items.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "store/service/ports.h"
#include "store/service/slab_map.h"

namespace tengen::store {

// For one thread. Items may have the steps that were appended since the last insert, and
// `max_item_steps` before them.
class Writer {
 public:
  Writer(std::unique_ptr<WriterPort> port, engine::Schema schema, SlabMap slabs,
         uint32_t max_item_steps)
      : port_(std::move(port)),
        schema_(std::move(schema)),
        slabs_(std::move(slabs)),
        max_item_steps_(max_item_steps),
        next_sequence_(port_->next_sequence()) {}

  const engine::Schema& schema() const { return schema_; }
  // Steps appended so far by this writer.
  uint64_t num_steps() const { return num_steps_; }
  // The sequence number of the next item; items with smaller numbers were inserted.
  uint64_t next_sequence() const { return next_sequence_; }
  WriterPort& port() { return *port_; }

  // Copies steps, column c from columns[c] in C order. Where columns are stacked, is_first[i] tells
  // whether step i is the first of its episode. Blocks while there is no memory. Returns how many
  // steps were taken: fewer than `count` where the deadline passes. Throws Error where the writer's
  // very first step is not the first of an episode, as frames before it would be missing.
  uint32_t append(std::span<const std::byte* const> columns, const bool* is_first, uint32_t count,
                  Deadline deadline);
  // Inserts a run. Items whose sequence numbers were inserted before are left out. False where the
  // deadline passes; then insert the same run again, which goes on.
  bool insert(const InsertRun& run, Deadline deadline);

 private:
  // Fills ages_ with the ages of the next steps.
  void count_ages(const bool* is_first, uint32_t count);

  const std::unique_ptr<WriterPort> port_;
  const engine::Schema schema_;
  SlabMap slabs_;
  const uint32_t max_item_steps_;
  uint64_t next_sequence_;
  uint64_t num_steps_ = 0;
  uint64_t num_released_ = 0;
  uint32_t slot_ = 0;  // of the chunk that is being filled
  uint32_t age_ = 0;   // of the last step
  std::vector<uint8_t> ages_;
  std::vector<const std::byte*> from_;
};

}  // namespace tengen::store
