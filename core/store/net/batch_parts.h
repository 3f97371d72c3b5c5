#pragma once
// Lists where the bytes of a batch lie, in the order of the gathered batch.

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "store/clients/batch_layout.h"
#include "store/steps/gather.h"
#include "transport/shared_memory.h"

namespace tengen::store {

// A batch that is sent part by part needs no copy: large pieces are sent from the slabs where they
// lie. Small pieces are gathered first, as a part costs more than the copy of a few bytes. Not
// thread-safe.
class BatchParts {
 public:
  BatchParts(engine::Schema schema, uint32_t num_samples, uint32_t num_steps)
      : schema_(std::move(schema)),
        layout_(schema_, num_samples, num_steps),
        gathered_(transport::SharedMemory::anonymous(layout_.num_bytes)) {}

  // Appends the parts of a batch, layout.num_bytes together. They are valid while the pieces' slots
  // are held, and until the next call.
  void list(const engine::Slabs& slabs, std::span<const engine::Piece> pieces,
            std::vector<iovec>* parts);

 private:
  const engine::Schema schema_;
  const BatchLayout layout_;
  const transport::SharedMemory gathered_;  // as large as a batch; used where pieces are small
};

}  // namespace tengen::store
