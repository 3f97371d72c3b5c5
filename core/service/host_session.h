#pragma once
// The server's side of one session: takes its requests, and remembers those that must wait.

#include <cstdint>
#include <memory>
#include <string>

#include "ipc/shared_memory.h"
#include "replay/engine.h"
#include "service/protocol.h"
#include "service/store.h"
#include "service/wire.h"

namespace tengen::service {

// For one thread, which holds the store's lock where an Engine is passed.
class HostSession {
 public:
  // Makes the session's memory, a file that goes with it; the socket is the session's own from
  // here on. Throws Error where there is no room.
  HostSession(int descriptor, replay::SessionId id, std::string name,
              const std::string& memory_path, const SessionLayout& layout);
  HostSession(const HostSession&) = delete;
  HostSession& operator=(const HostSession&) = delete;
  virtual ~HostSession();

  int descriptor() const { return descriptor_; }
  replay::SessionId id() const { return id_; }
  // The client has gone, or was refused.
  bool is_over() const { return is_over_ || is_refused_; }
  bool is_refused() const { return is_refused_; }
  const std::string& name() const { return name_; }

  // Applies what can be applied now, at most so many requests that others wait no longer than a
  // moment. A request that is refused ends the session.
  Progress serve(replay::Engine& engine);
  // Wakes the client where it waits for what serve() did.
  void wake_client() { wake(&header_->client_sleeps, descriptor_); }
  // The client rings from now on, or need not.
  void set_server_sleeps(bool sleeps) {
    header_->server_sleeps.exchange(sleeps, std::memory_order_acq_rel);
  }
  // Takes the bells that came; the session is over where the client has gone.
  void read_bells();
  std::string waits() const { return read_reason(*header_); }

 protected:
  // Tries again what could not be done when it was asked for.
  virtual Progress serve_waiting(replay::Engine& engine) = 0;
  // kDone where the request is dealt with: applied, or remembered as waiting. Else it is tried
  // again later, and those behind it wait.
  virtual Progress apply(replay::Engine& engine, std::span<const std::byte> request) = 0;
  // What waits, for people; empty where nothing does.
  virtual std::string reason(const replay::Engine& engine) const = 0;

  ipc::Ring& replies() { return replies_; }

 private:
  Progress serve_all(replay::Engine& engine);
  void refuse(const std::string& error);

  const int descriptor_;
  const replay::SessionId id_;
  const std::string name_;
  const ipc::SharedMemory memory_;
  SessionHeader* const header_;
  ipc::Ring requests_;
  ipc::Ring replies_;
  uint64_t num_applied_ = 0;
  bool has_reason_ = false;
  bool is_over_ = false;
  bool is_refused_ = false;
};

// A session of the writer that the engine opened.
std::unique_ptr<HostSession> host_writer(int descriptor, replay::SessionId id,
                                         const std::string& name, const std::string& memory_path,
                                         const SessionLayout& layout, uint32_t writer);
// A session whose every batch has `num_samples` of one table.
std::unique_ptr<HostSession> host_sampler(int descriptor, replay::SessionId id,
                                          const std::string& name, const std::string& memory_path,
                                          const SessionLayout& layout, uint32_t table,
                                          uint32_t num_samples);
// Room for the batches and acknowledgements of a sampler that has `num_ahead` under way.
SessionLayout layout_of_sampler(const replay::Engine& engine, uint32_t table, uint32_t num_samples,
                                uint32_t num_ahead);
SessionLayout layout_of_writer();

}  // namespace tengen::service
