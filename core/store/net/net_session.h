#pragma once
// The store's side of a session with a client on another host: a thread reads the client's messages
// from a stream and applies them to the store.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "store/service/local_channel.h"
#include "store/steps/gather.h"
#include "transport/stream_socket.h"

namespace tengen::store {

// The status of a replica, as its session knows it.
struct ReplicaStatus {
  std::string name;
  // By how many seconds the replica lags behind the store; none if it has no checkpoint yet.
  std::optional<double> behind_s;
};

class NetSession {
 public:
  NetSession(transport::Connection connection, std::string name)
      : socket_(std::move(connection)), name_(std::move(name)) {}
  virtual ~NetSession() = default;

  // Does the setup that may fail, and throws Error. Called before run(), by any thread.
  virtual void prepare() {}
  // Serves the client until it has gone or has been refused, then ends the session with the store.
  // An error, even for lack of memory, ends only this session, and is sent to the client. Blocks.
  // Only for one thread, while any thread may call the other members.
  void run() noexcept;
  void shut_down() { socket_.shut_down(); }
  // Returns a human-readable line with the session's name and the reason why it waits.
  std::string describe();
  // Returns the status of the replica that the session serves, or none if it serves no replica.
  virtual std::optional<ReplicaStatus> replica() { return std::nullopt; }

 protected:
  // Serves the client until it has gone. If it throws an Error, the client receives the error.
  virtual void serve() = 0;
  // Ends this session in the store.
  virtual void end() noexcept {}
  // Sends the client the error that ends the session.
  void send_error(const std::string& error);
  // Calls `attempt` with short deadlines until it returns true, and meanwhile sends the reason that
  // `waits` returns to the client. Returns false if the client has gone.
  template <class Waits, class Attempt>
  bool wait_for(Waits&& waits, Attempt&& attempt) {
    if (attempt(kAtOnce)) return true;
    while (!socket_.has_ended() && tell_wait(waits())) {
      if (attempt(std::chrono::steady_clock::now() + kSlice)) return tell_wait("");
    }
    return false;
  }
  // The maximum time until a waiting session notices that its client has gone.
  static constexpr std::chrono::milliseconds kSlice{100};

  transport::StreamSocket socket_;

 private:
  // Reads and drops the client's last bytes for a short time. Closing a socket with unread bytes
  // would reset the stream, and lose an error message in flight.
  void linger();
  bool tell_wait(const std::string& text);

  const std::string name_;
  std::mutex mutex_;
  std::string waits_;
};

// The arguments that sessions of writers and samplers share.
struct NetParts {
  transport::Connection connection;
  std::string name;
  std::unique_ptr<LocalChannel> session;
  engine::Schema schema;
  SlabMap slabs;
};
// Creates a session that receives steps and items for the engine's writer with index `writer`.
std::unique_ptr<NetSession> step_receiver(NetParts parts, uint32_t writer);
// Creates a session that sends batches of `num_samples` samples with `num_steps` steps.
std::unique_ptr<NetSession> batch_sender(NetParts parts, uint32_t num_samples, uint32_t num_steps);
// `store` must make checkpoints, and must outlive the session.
std::unique_ptr<NetSession> replica_session(transport::Connection connection,
                                            const std::string& name, Store* store);

}  // namespace tengen::store
