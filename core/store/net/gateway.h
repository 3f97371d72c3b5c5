#pragma once
// Serves clients on other hosts. One thread per client applies the client's messages to the store.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "store/net/net_session.h"
#include "store/service/store.h"

namespace tengen::store {

// Serves the sessions of clients on other hosts. Thread-safe. If a client's stream ends, its
// session ends: its writer is closed, and its batches are given back. An invalid request ends only
// the client's own session.
class Gateway {
 public:
  // `store` must outlive the gateway.
  explicit Gateway(Store* store) : store_(store) {}
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway();  // ends every session; blocks until their threads have ended

  // Begin a session over a client's connected stream, with a duplicate of `descriptor`. If another
  // writer with that name is open, open_writer() blocks until the deadline. Returns the writer's
  // next sequence number.
  uint64_t open_writer(int descriptor, const std::string& name, uint32_t pool, Deadline deadline);
  void open_sampler(int descriptor, uint32_t table, uint32_t num_samples, uint32_t num_ahead);

  // Begins a session for the replica `name`. Throws Error if the store makes no checkpoints.
  void open_replica(int descriptor, const std::string& name);

  std::vector<ReplicaStatus> replicas();
  // Returns a human-readable line per session, with the session's name and the reason why it waits.
  std::vector<std::string> describe();

 private:
  struct Running {
    std::unique_ptr<NetSession> session;  // null after the session has ended
    std::thread thread;
  };

  NetParts parts_of(int descriptor, std::string name, uint32_t pool,
                    std::unique_ptr<LocalChannel> session);
  void start(std::unique_ptr<NetSession> session);
  // Removes the sessions that have ended. The caller holds the lock.
  void remove_ended();

  Store* const store_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Running>> running_;
};

}  // namespace tengen::store
