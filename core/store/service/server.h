#pragma once
// The server of a host: one thread that applies the requests of all sessions to a store.

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "store/service/store.h"
#include "store/session/host_session.h"

namespace tengen::store {

// Serves the clients of one host. Thread-safe. If a client's socket closes, its session ends: its
// writer is closed, and its batches are given back. An invalid request ends only the client's own
// session.
class Server {
 public:
  // `store` has a directory and must outlive the server. `resumed` are the sessions that
  // Store::keep() returned. A session resumes when its client reconnects, and ends if the client
  // has died or the session's memory is invalid. If the constructor throws, the next server may
  // resume the sessions.
  explicit Server(Store* store, const std::map<uint32_t, engine::SavedSession>& resumed = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();  // ends every session, unless leave() was called; blocks until the thread has ended

  // Makes the destructor leave sessions open, as if the process had been killed.
  void leave() { is_leaving_ = true; }

  struct Opened {
    engine::SessionId id = 0;
    std::string memory_path;
    SessionLayout layout;
    uint64_t next_sequence = 0;  // a writer's next sequence number
  };
  // Open a session, and take ownership of `descriptor`, the client's connected socket, unless they
  // throw. If another writer with that name is open, open_writer() blocks until the deadline,
  // because the other client may just have died. Throw Error if the deadline expires, or if the
  // file system has no space for the session.
  Opened open_writer(int descriptor, const std::string& name, uint32_t pool, Deadline deadline);
  Opened open_sampler(int descriptor, uint32_t table, uint32_t num_samples, uint32_t num_ahead);

  // Resumes session `id` over its client's new socket, and takes ownership of the socket. Throws
  // Error if the session does not exist.
  void resume(int descriptor, engine::SessionId id);

  // Returns a human-readable line per session, with the session's name and the reason why it waits.
  std::vector<std::string> describe();

 private:
  std::string path_of(engine::SessionId id) const;
  Opened add(int descriptor, engine::SessionId id, SessionRecord record, uint64_t next_sequence);
  bool is_sync() const;
  uint64_t promise(const HostSession& session);
  void resume_sessions(const std::map<uint32_t, engine::SavedSession>& resumed);
  void resume_session(engine::SessionId id, const engine::SavedSession& saved);
  void leave_sessions();
  bool end_absent_clients();
  void run() noexcept;
  bool serve_once();
  void publish_served();
  bool end_those_that_are_over();
  void sleep();
  bool may_nap();
  bool has_waiting_writer();
  void set_sleeps(uint32_t sleeps);
  void reserve_session();
  void ring();

  Store* const store_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::atomic<bool> is_asleep_ = false;
  std::atomic<bool> is_stopping_ = false;
  std::atomic<bool> is_leaving_ = false;
  int bell_[2] = {-1, -1};  // a pipe that wakes the thread
  std::mutex mutex_;        // guards sessions_; only the thread removes sessions
  std::vector<std::unique_ptr<HostSession>> sessions_;
  // sessions that are giving back their loans over several rounds
  std::vector<std::unique_ptr<HostSession>> ending_;
  std::vector<HostSession*> served_;  // sessions with replies to publish
  // Lists for poll(), reused to save allocations. Only for the server's thread.
  std::vector<pollfd> polls_;
  std::vector<HostSession*> polled_;
  bool has_memory_ = true;  // whether the last round had memory to serve sessions
  // Whether the last round left loans that must still be given back.
  bool has_steps_ = false;
  // Indices of the sessions that the next round tries first, modulo the number of sessions.
  size_t first_writer_ = 0, first_sampler_ = 0;
  bool begins_with_writers_ = true;
  uint64_t num_writes_ = 0;  // number of writers served, summed over all rounds
  bool is_busy_ = false;     // whether writers sent requests soon after the last sleep began
  std::thread thread_;
};

}  // namespace tengen::store
