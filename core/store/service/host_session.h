#pragma once
// The server's side of one session: applies the client's requests, and remembers those that must
// wait.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "store/engine/engine.h"
#include "store/service/protocol.h"
#include "store/service/session_record.h"
#include "store/service/store.h"
#include "store/service/wire.h"
#include "transport/shared_memory.h"

namespace tengen::store {

// For one thread, which holds the store's lock where an Engine is passed.
class HostSession {
 public:
  // Makes the session's memory, a file that is removed with the session. With `progress` the file
  // is there already, and the session goes on after another server. Throws Error where there is no
  // room.
  HostSession(engine::SessionId id, SessionRecord record, const std::string& memory_path,
              const engine::SessionProgress* progress);
  HostSession(const HostSession&) = delete;
  HostSession& operator=(const HostSession&) = delete;
  virtual ~HostSession();

  // Takes over the client's connected socket.
  void attach(int descriptor) { descriptor_ = descriptor; }
  int descriptor() const { return descriptor_; }  // -1: the client has not come back yet
  engine::SessionId id() const { return id_; }
  const SessionRecord& record() const { return record_; }
  // The client has gone, or was refused.
  bool is_over() const { return is_over_ || is_refused_; }
  bool is_refused() const { return is_refused_; }
  bool is_writer() const { return record_.kind == SessionRecord::Kind::kWriter; }
  void end() { is_over_ = true; }
  // Whether the client ever took its side of the memory.
  bool is_taken() const { return header_->is_taken.load() != 0; }

  // Applies the requests that can be applied now, but only so many that other sessions wait no
  // longer than a moment. A request that is refused ends the session.
  Progress serve(engine::Engine& engine);
  // Tells the client what serve() did, and wakes it. Precondition: the changes are logged. The
  // client is told that its requests are applied only when the checkpoint `number` is made; 0: at
  // once.
  void publish(uint64_t number);
  // Says that checkpoints up to this number are made.
  void publish_made(uint64_t number);
  // Says that no more checkpoints will be made; a session that waits for one is refused.
  void break_promises(const std::string& error);
  // Tells the client whether it must ring: kAwake, kNaps or kSleeps.
  void set_server_sleeps(uint32_t sleeps) {
    header_->server_sleeps.exchange(sleeps, std::memory_order_acq_rel);
  }
  // Whether the session waits for something that another session does.
  bool is_waiting() const { return num_wanted() > 0; }
  // Reads the bytes that woke the server; the session is over where the client has gone.
  void read_bells();
  std::string waits() const { return read_reason(*header_); }

 protected:
  // Tries again a request that could not be applied when it came.
  virtual Progress serve_waiting(engine::Engine& engine) = 0;
  // kDone where the request was applied, or is remembered as waiting. Otherwise it is tried again
  // later, and the requests behind it wait.
  virtual Progress apply(engine::Engine& engine, std::span<const std::byte> request) = 0;
  // How many batches or slots the client asked for that were not sent yet.
  virtual uint64_t num_wanted() const = 0;
  // What the session waits for, for people; empty where it does not wait.
  virtual std::string reason(const engine::Engine& engine) const = 0;

  transport::Ring& replies() { return replies_; }

 private:
  Progress serve_all(engine::Engine& engine);
  void refuse(const std::string& error);

  int descriptor_ = -1;
  const engine::SessionId id_;
  const SessionRecord record_;
  const transport::SharedMemory memory_;
  SessionHeader* const header_;
  transport::Ring requests_;
  transport::Ring replies_;
  uint64_t num_applied_ = 0;
  struct Promise {
    uint64_t number;  // of a checkpoint
    uint64_t num_applied;
  };
  std::deque<Promise> promises_;
  bool has_reason_ = false;
  bool is_over_ = false;
  bool is_refused_ = false;
};

// A session of a writer that the engine opened, or of a sampler, which has `num_loans` batches.
std::unique_ptr<HostSession> host_session(engine::SessionId id, const SessionRecord& record,
                                          const std::string& memory_path,
                                          const engine::SessionProgress* progress = nullptr,
                                          uint64_t num_loans = 0);
// Room for the batches and acknowledgements of a sampler that has `num_ahead` under way.
SessionLayout layout_of_sampler(const engine::Engine& engine, uint32_t table, uint32_t num_samples,
                                uint32_t num_ahead);
SessionLayout layout_of_writer();

}  // namespace tengen::store
