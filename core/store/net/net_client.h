#pragma once
// Ports of a store on another host, over a stream to its gateway.

#include <cstdint>
#include <memory>
#include <string>

#include "store/service/batch_layout.h"
#include "store/service/ports.h"
#include "store/service/slab_map.h"

namespace tengen::store {

// Every call of a port throws Error once the store is gone, or has refused a message.
struct NetAddress {
  int descriptor = -1;  // of the connected stream, which the port takes over
  std::string name;     // of the store, for people
};

struct NetWriterPort {
  std::unique_ptr<WriterPort> port;
  SlabMap slabs;  // where the chunk that is being filled lies
};
NetWriterPort net_writer(const NetAddress& address, uint64_t next_sequence,
                         const engine::Schema& schema);
// `num_ahead` batches are requested before they are needed; 0: each by next().
std::unique_ptr<SamplerPort> net_sampler(const NetAddress& address, const BatchLayout& layout,
                                         uint32_t num_samples, uint32_t num_ahead);

}  // namespace tengen::store
