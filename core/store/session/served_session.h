#pragma once
// The store's side of one session: what a client's messages do to the engine, whatever carried them
// here.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "store/engine/engine.h"

namespace tengen::store {

// What an attempt changed.
enum class Progress { kNone, kSome, kDone };

// Where a session's replies go.
class Outbox {
 public:
  virtual ~Outbox() = default;
  // Room for a reply of at most `num_bytes`; null while there is none.
  virtual std::byte* reserve(uint32_t num_bytes) = 0;
  // Says that the first `num_bytes` of the room reserved last are a reply.
  virtual void stage(uint32_t num_bytes) = 0;
};

// For threads that hold the store's lock. The owner ends the engine's session.
class ServedSession {
 public:
  virtual ~ServedSession() = default;
  // Applies a message. kDone where it was applied, or is remembered as waiting for an answer.
  // Otherwise apply it again when the engine has changed; messages behind it wait. Throws Error for
  // what is refused.
  virtual Progress apply(engine::Engine& engine, std::span<const std::byte> message) = 0;
  // Sends slots or batches that were asked for, while there are any, the outbox has room and few
  // items were touched; kSome says that there may be more to send at once.
  virtual Progress answer(engine::Engine& engine, Outbox& outbox) = 0;
  // How many batches or slots were asked for and not sent yet.
  virtual uint64_t num_wanted() const = 0;
  // What the session waits for, for people; empty where it does not wait.
  virtual std::string waits(const engine::Engine& engine) const = 0;
};

// A session of a writer that the engine opened. `num_wanted`: of a session that goes on after
// another server.
std::unique_ptr<ServedSession> serve_writer(uint32_t writer, uint64_t num_wanted = 0);
// A session of a sampler. One that goes on has `num_loans` batches.
std::unique_ptr<ServedSession> serve_sampler(engine::SessionId id, uint32_t table,
                                             uint32_t num_samples, uint64_t num_wanted = 0,
                                             uint64_t num_loans = 0);
// The longest Batch of a sampler. Throws Error where it is too long.
uint32_t max_batch_bytes(const engine::Engine& engine, uint32_t table, uint32_t num_samples);

}  // namespace tengen::store
