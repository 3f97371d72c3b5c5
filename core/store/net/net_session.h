#pragma once
// The store's side of one client on another host: passes the client's messages from a stream to a
// session with the store in this process, and the replies back.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "store/clients/slab_map.h"
#include "store/service/store.h"
#include "store/session/channel.h"
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
  // Serves the client until it has gone, or was refused, and ends its writers and samplers. What
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
  // Ends the session's writers and samplers.
  virtual void end() noexcept {}
  // Sends the error that ends the session.
  void send_error(const std::string& error);
  // Calls `attempt` with deadlines until it returns true, and meanwhile tells the client what the
  // session of `client`, a channel or writer, waits for. False where the other side has gone.
  template <class Client, class Attempt>
  bool wait_for(Client& client, Attempt&& attempt) {
    if (attempt(kAtOnce)) return true;
    while (!socket_.has_ended() && tell_wait(client.waits())) {
      if (attempt(std::chrono::steady_clock::now() + kSlice)) return tell_wait("");
    }
    return false;
  }
  // Passes a message on, which takes effect before the call returns. False where the client has
  // gone.
  bool pass_on(Channel& channel, std::span<const std::byte> message);
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

// What the session of a writer or sampler is made of.
struct NetParts {
  transport::Connection connection;
  std::string name;
  std::unique_ptr<Channel> channel;
  engine::Schema schema;
  SlabMap slabs;
};
std::unique_ptr<NetSession> net_writer_session(NetParts parts);
// Two threads use the channel: one sends, and the other takes the replies.
std::unique_ptr<NetSession> net_sampler_session(NetParts parts, uint32_t num_samples,
                                                uint32_t num_steps);
// `store` makes checkpoints, and outlives the session.
std::unique_ptr<NetSession> replica_session(transport::Connection connection,
                                            const std::string& name, Store* store);

}  // namespace tengen::store
