#pragma once
// The store's side of one session. Applies a client's messages, from any carrier, to the engine.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "store/engine/engine.h"

namespace tengen::store {

// How much an attempt changed.
enum class Progress { kNone, kSome, kDone };

// Receives a session's replies.
class Outbox {
 public:
  virtual ~Outbox() = default;
  // Returns space for a reply of at most `num_bytes`, or null if there is none now.
  virtual std::byte* reserve(uint32_t num_bytes) = 0;
  // Makes the first `num_bytes` of the last reserved space a reply.
  virtual void stage(uint32_t num_bytes) = 0;
};

// The store's side of a session. Only for threads that hold the store's lock. The owner of this
// object ends the engine's session.
class ServedSession {
 public:
  virtual ~ServedSession() = default;
  // Applies a message. Returns kDone if the message was applied, or if it was noted and answer()
  // will reply. Otherwise apply the message again when the engine has changed; later messages wait.
  // Throws Error if the message is invalid.
  virtual Progress apply(engine::Engine& engine, std::span<const std::byte> message) = 0;
  // Sends requested slots or batches, until none is available, the outbox is full, or many items
  // were touched. Returns kSome if more may be ready to send.
  virtual Progress answer(engine::Engine& engine, Outbox& outbox) = 0;
  // The number of batches or slots that were requested and not sent yet.
  virtual uint64_t num_wanted() const = 0;
  // Returns a human-readable reason why the session waits, or an empty string if it does not.
  virtual std::string waits(const engine::Engine& engine) const = 0;
};

// Creates the session of a writer that the engine opened. `num_wanted` is the number of unanswered
// requests of a resumed session.
std::unique_ptr<ServedSession> serve_writer(uint32_t writer, uint64_t num_wanted = 0);
// Creates the session of a sampler. A resumed session holds `num_loans` batches.
std::unique_ptr<ServedSession> serve_sampler(engine::SessionId id, uint32_t table,
                                             uint32_t num_samples, uint64_t num_wanted = 0,
                                             uint64_t num_loans = 0);
// The maximum size of a sampler's Batch message. Throws Error if it is too large.
uint32_t max_batch_bytes(const engine::Engine& engine, uint32_t table, uint32_t num_samples);

}  // namespace tengen::store
