#pragma once
// Serves clients on other hosts, each with a thread that applies their messages to the store.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "store/net/net_session.h"
#include "store/service/store.h"

namespace tengen::store {

// Thread-safe. A session ends with its client's stream: its writer is closed, its batches are given
// back. A request that is refused ends its own session alone.
class Gateway {
 public:
  // `store` outlives the gateway.
  explicit Gateway(Store* store) : store_(store) {}
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway();  // ends every session; blocks until their threads have ended

  // Begin a session on a copy of the descriptor of a client's connected stream. Where another
  // writer of that name is open, block until the deadline. The first returns the writer's next
  // sequence number.
  uint64_t open_writer(int descriptor, const std::string& name, uint32_t pool, Deadline deadline);
  void open_sampler(int descriptor, uint32_t table, uint32_t num_samples, uint32_t num_ahead);

  // Begins a session of a replica. Precondition: the store makes checkpoints.
  void open_replica(int descriptor, const std::string& name);

  std::vector<ReplicaStatus> replicas();
  // For people: what each session is and waits for.
  std::vector<std::string> describe();

 private:
  struct Running {
    std::unique_ptr<NetSession> session;  // null: it is over
    std::thread thread;
  };

  NetParts parts_of(int descriptor, std::string name, uint32_t pool,
                    std::unique_ptr<OpenedSession> session);
  void start(std::unique_ptr<NetSession> session);
  // Forgets sessions that are over. For callers that have the lock.
  void remove_ended();

  Store* const store_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Running>> running_;
};

}  // namespace tengen::store
