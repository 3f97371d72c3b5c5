#include "store/net/batch_parts.h"

#include <cstring>

namespace tengen::store {
namespace {

// The smallest piece that is sent from its slab.
constexpr uint64_t kMinPartBytes = 1024;

}  // namespace

void BatchParts::list(const engine::Slabs& slabs, std::span<const engine::Piece> pieces,
                      std::vector<iovec>* parts) {
  uint64_t listed = 0;    // bytes of the batch that are in `parts` or gathered
  uint64_t gathered = 0;  // the last of these, gathered and not in `parts` yet
  const auto add_gathered = [&] {
    if (gathered == 0) return;
    parts->push_back({gathered_.data() + listed - gathered, gathered});
    gathered = 0;
  };
  for (size_t c = 0; c < schema_.columns().size(); ++c) {
    const uint64_t bytes = schema_.columns()[c].num_bytes;
    gathered += layout_.offsets[c] - listed;  // the bytes between columns are sent too
    listed = layout_.offsets[c];
    for (const engine::Piece& piece : pieces) {
      std::byte* from = slabs.at(piece.slot) + schema_.offset(c) + piece.offset * bytes;
      const uint64_t num_bytes = piece.num_steps * bytes;
      if (num_bytes < kMinPartBytes) {
        std::memcpy(gathered_.data() + listed, from, num_bytes);
        gathered += num_bytes;
        listed += num_bytes;
      } else {
        add_gathered();
        parts->push_back({from, num_bytes});
        listed += num_bytes;
      }
    }
  }
  gathered += layout_.num_bytes - listed;
  listed = layout_.num_bytes;
  add_gathered();
}

}  // namespace tengen::store
