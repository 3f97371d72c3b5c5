#pragma once
// The server's side of one session with a client of the same host: its requests come by a ring of
// shared memory, and its replies go by another.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/engine/engine.h"
#include "store/session/encoding.h"
#include "store/session/ring_memory.h"
#include "store/session/served_session.h"
#include "transport/connection.h"
#include "transport/shared_memory.h"

namespace tengen::store {

// What another server of the same store must know of a session to go on with it.
struct SessionRecord {
  enum class Kind : uint32_t { kWriter, kSampler };
  Kind kind = Kind::kWriter;
  uint32_t number = 0;       // of the writer, or of the sampler's table
  uint32_t num_samples = 0;  // of a sampler's batch
  SessionLayout layout;
  int64_t process = 0;  // the client's process; 0: not known
  std::string name;     // for people

  std::vector<std::byte> encode() const {
    const Fixed fixed{kind,   number, num_samples, static_cast<uint32_t>(name.size()),
                      layout, process};
    std::vector<std::byte> bytes(sizeof fixed + name.size());
    std::memcpy(put(bytes.data(), fixed), name.data(), name.size());
    return bytes;
  }
  // Throws Error for bytes that encode() did not make.
  static SessionRecord decode(std::span<const std::byte> bytes) {
    const auto fixed = read<Fixed>(bytes);
    std::vector<char> name;
    take(bytes.subspan(sizeof fixed), fixed.num_name_bytes, &name);
    return {fixed.kind,   fixed.number,  fixed.num_samples,
            fixed.layout, fixed.process, {name.begin(), name.end()}};
  }

 private:
  struct Fixed {
    Kind kind;
    uint32_t number, num_samples, num_name_bytes;
    SessionLayout layout;
    int64_t process;
  };
};

// For one thread, which holds the store's lock where an Engine is passed.
class HostSession final : private Outbox {
 public:
  // Makes the session's memory, a file that is removed with the session. With `progress` the file
  // is there already, and the session, which has `num_loans` batches, goes on after another server.
  // Throws Error where there is no room.
  HostSession(engine::SessionId id, SessionRecord record, const std::string& memory_path,
              const engine::SessionProgress* progress = nullptr, uint64_t num_loans = 0);
  HostSession(const HostSession&) = delete;
  HostSession& operator=(const HostSession&) = delete;
  ~HostSession() override;

  // Has the session outlive this object, as if the process had been killed: another server may go
  // on with it.
  void leave() { is_left_ = true; }
  // Takes over the client's connected socket.
  void attach(int descriptor);
  int descriptor() const {
    return connection_.descriptor();
  }  // -1: the client has not come back yet
  engine::SessionId id() const { return id_; }
  const SessionRecord& record() const { return record_; }
  // The client has gone, or was refused.
  bool is_over() const { return is_over_ || is_refused_; }
  bool is_refused() const { return is_refused_; }
  bool is_writer() const { return record_.kind == SessionRecord::Kind::kWriter; }
  void end() { is_over_ = true; }
  // Whether the client ever took its side of the memory.
  bool is_taken() const { return header_->is_taken.load() != 0; }

  // Applies the requests that can be applied now, until kMaxSamples items and chunks are touched:
  // kDone says that there may be more to do. A request that is refused ends the session.
  Progress serve(engine::Engine& engine);
  // Tells the client what serve() did, and wakes it. Precondition: the changes are logged. The
  // client is told that its requests are applied only when the checkpoint `number` is made; 0: at
  // once.
  void publish(uint64_t number);
  // Says that checkpoints up to this number are made.
  void publish_made(uint64_t number);
  // Says that checkpoints up to this number could not be made; a session that waits for one of them
  // is refused.
  void break_promises(uint64_t number, const std::string& error);
  // Tells the client whether it must ring: kAwake, kNaps or kSleeps.
  void set_server_sleeps(uint32_t sleeps) {
    header_->server_sleeps.exchange(sleeps, std::memory_order_acq_rel);
  }
  // Whether the session waits for something that another session does.
  bool is_waiting() const { return served_->num_wanted() > 0; }
  // Reads the bytes that woke the server; the session is over where the client has gone.
  void read_bells();
  std::string waits() const { return read_reason(*header_); }

 private:
  std::byte* reserve(uint32_t num_bytes) override { return replies_.reserve(num_bytes); }
  void stage(uint32_t num_bytes) override { replies_.stage(num_bytes); }
  Progress serve_all(engine::Engine& engine);
  void refuse(const std::string& error);

  transport::Connection connection_;  // open while the client is there
  const engine::SessionId id_;
  const SessionRecord record_;
  const transport::SharedMemory memory_;
  SessionHeader* const header_;
  transport::Ring requests_;
  transport::Ring replies_;
  const std::unique_ptr<ServedSession> served_;
  uint64_t num_applied_ = 0;
  struct Promise {
    uint64_t number;  // of a checkpoint
    uint64_t num_applied;
  };
  std::deque<Promise> promises_;
  bool has_reason_ = false;
  bool is_over_ = false;
  bool is_refused_ = false;
  bool is_left_ = false;
};

// Room for the batches and acknowledgements of a sampler that has `num_ahead` under way.
SessionLayout layout_of_sampler(const engine::Engine& engine, uint32_t table, uint32_t num_samples,
                                uint32_t num_ahead);
SessionLayout layout_of_writer();

}  // namespace tengen::store
