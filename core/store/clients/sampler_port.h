#pragma once
// The commands of one sampler, whatever carries them to its store.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/session/channel.h"
#include "store/session/messages.h"
#include "store/tables/streams.h"

namespace tengen::store {

// Samples that are the client's until it acknowledges them or gives them back.
struct Delivery {
  uint64_t lease = 0;
  uint64_t table_size = 0;  // when they were drawn
  std::vector<int64_t> keys;
  std::vector<double> probabilities;
  std::vector<engine::Piece> pieces;  // of all samples, one after another
  std::shared_ptr<std::byte> data;    // the gathered batch, as BatchLayout says, instead of pieces
};

// A sampler of one table, for one thread. When destroyed, gives back batches that are not
// acknowledged.
class SamplerPort {
 public:
  // `num_ahead` batches are requested before they are needed; 0: each by next().
  SamplerPort(std::unique_ptr<Channel> channel, uint32_t num_ahead)
      : channel_(std::move(channel)), num_ahead_(num_ahead) {}

  // The next batch. Blocks until there is one; false where the deadline passes, and nothing is
  // lost then.
  bool next(Deadline deadline, Delivery* delivery);
  // The batch that next() will return, where it was drawn ahead and has arrived; null otherwise.
  // Does not block. Its pieces stay where they are until next().
  const Delivery* peek();
  // Says that the samples were used. `priorities` is empty, or has one for each sample.
  void ack(uint64_t lease, std::span<const double> priorities);
  // Says that the samples were not used.
  void give_back(uint64_t lease);
  // What the next batch waits for, for people; empty where it does not wait.
  std::string waits();

 private:
  bool ask(uint32_t wished, Deadline deadline);
  void take_batch(std::span<const std::byte> reply, Delivery* delivery);

  const std::unique_ptr<Channel> channel_;
  const uint32_t num_ahead_;
  uint32_t num_asked_ = 0;  // batches that were requested and that next() has not returned
  std::optional<Delivery> peeked_;
};

}  // namespace tengen::store
