#pragma once
// The store's side of one client on another host: a thread reads the client's messages from a
// stream and applies them to the store.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "store/service/opened_session.h"
#include "store/steps/gather.h"
#include "transport/stream_socket.h"

namespace tengen::store {

// A replica that a session serves.
struct ReplicaStatus {
  std::string name;
  // How many seconds of changes the replica lacks; none where it has no checkpoint yet.
  std::optional<double> behind_s;
};

class NetSession {
 public:
  NetSession(transport::Connection connection, std::string name)
      : socket_(std::move(connection)), name_(std::move(name)) {}
  virtual ~NetSession() = default;

  // Does what may be refused before the client has an answer; throws Error. First, by any thread.
  virtual void prepare() {}
  // Serves the client until it has gone, or was refused, and ends its session with the store. What
  // fails, for want of memory too, ends this session alone, and the client is told why. Blocks; for
  // one thread. The other members are for any thread.
  void run() noexcept;
  void shut_down() { socket_.shut_down(); }
  // What the session is and waits for, for people.
  std::string describe();
  // The replica that the session serves; none where it serves none.
  virtual std::optional<ReplicaStatus> replica() { return std::nullopt; }

 protected:
  // Serves the client until it has gone; throws what the client is told.
  virtual void serve() = 0;
  // Ends the session with the store.
  virtual void end() noexcept {}
  // Sends the error that ends the session.
  void send_error(const std::string& error);
  // Calls `attempt` with deadlines until it returns true, and meanwhile tells the client what
  // `waits` returns. False where the other side has gone.
  template <class Waits, class Attempt>
  bool wait_for(Waits&& waits, Attempt&& attempt) {
    if (attempt(kAtOnce)) return true;
    while (!socket_.has_ended() && tell_wait(waits())) {
      if (attempt(std::chrono::steady_clock::now() + kSlice)) return tell_wait("");
    }
    return false;
  }
  // How soon a session that waits notices that its client has gone.
  static constexpr std::chrono::milliseconds kSlice{100};

  transport::StreamSocket socket_;

 private:
  // Reads what the client still sends, for a moment: to close a socket with unread bytes breaks the
  // stream, and loses an error message that is still under way.
  void linger();
  bool tell_wait(const std::string& text);

  const std::string name_;
  std::mutex mutex_;
  std::string waits_;
};

// What the session of a client with steps is made of.
struct NetParts {
  transport::Connection connection;
  std::string name;
  std::unique_ptr<OpenedSession> session;
  engine::Schema schema;
  SlabMap slabs;
};
// Receives steps, and items of them, of the engine's writer of that number.
std::unique_ptr<NetSession> step_receiver(NetParts parts, uint32_t writer);
// Sends batches of so many samples, of so many steps each.
std::unique_ptr<NetSession> batch_sender(NetParts parts, uint32_t num_samples, uint32_t num_steps);
// `store` makes checkpoints, and outlives the session.
std::unique_ptr<NetSession> replica_session(transport::Connection connection,
                                            const std::string& name, Store* store);

}  // namespace tengen::store
