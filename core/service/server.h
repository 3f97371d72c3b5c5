#pragma once
// The server of a host: one thread that applies the requests of all sessions to a store.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "service/host_session.h"
#include "service/store.h"

namespace tengen::service {

// Thread-safe. A session ends with its client's socket: its writer is closed, its batches are
// given back. A request that is refused ends its own session alone.
class Server {
 public:
  // `store` has a directory and outlives the server.
  explicit Server(Store* store);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();  // ends every session; blocks until the thread has ended

  struct Opened {
    std::string memory_path;
    SessionLayout layout;
    uint64_t next_sequence = 0;  // a writer's
  };
  // Take over the connected socket of a client, unless they throw. A writer's name that is open
  // is waited for until the deadline, as its last client may have died just now. Throws Error
  // then, and where the file system has no room for the session.
  Opened open_writer(int descriptor, const std::string& name, uint32_t pool, Deadline deadline);
  Opened open_sampler(int descriptor, uint32_t table, uint32_t num_samples, uint32_t num_ahead);

  // For people: what each session is and waits for.
  std::vector<std::string> describe();

 private:
  template <class Make>
  Opened add(replay::SessionId id, const SessionLayout& layout, uint64_t next_sequence,
             Make&& make);
  void run();
  bool serve_once();
  void end_those_that_are_over();
  void sleep();
  void set_sleeps(bool sleeps);
  void ring();

  Store* const store_;
  std::atomic<bool> is_asleep_ = false;
  std::atomic<bool> is_stopping_ = false;
  int bell_[2] = {-1, -1};  // a pipe that wakes the thread
  std::mutex mutex_;        // of sessions_, which only the thread takes from
  std::vector<std::unique_ptr<HostSession>> sessions_;
  std::vector<HostSession*> served_;  // by the last round
  std::thread thread_;
};

}  // namespace tengen::service
