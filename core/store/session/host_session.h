#pragma once
// The server's side of a session with a client on the same host. Requests and replies use two rings
// in shared memory.

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

// A description of a session, with which another server of the same store can resume it.
struct SessionRecord {
  enum class Kind : uint32_t { kWriter, kSampler };
  Kind kind = Kind::kWriter;
  uint32_t number = 0;       // index of the writer, or of the sampler's table
  uint32_t num_samples = 0;  // samples per batch of a sampler
  SessionLayout layout;
  int64_t process = 0;  // process ID of the client; 0 if unknown
  std::string name;     // human-readable name of the session

  std::vector<std::byte> encode() const {
    const Fixed fixed{kind,   number, num_samples, static_cast<uint32_t>(name.size()),
                      layout, process};
    std::vector<std::byte> bytes(sizeof fixed + name.size());
    std::memcpy(put(bytes.data(), fixed), name.data(), name.size());
    return bytes;
  }
  // Throws Error if encode() cannot have produced `bytes`.
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

// A session at the server. For one thread, which holds the store's lock in calls with an Engine.
class HostSession final : private Outbox {
 public:
  // Creates the session's shared memory in the file `memory_path`, which is removed with the
  // session. With `progress`, the file exists already, and the session, which holds `num_loans`
  // batches, resumes after another server has ended. Throws Error if there is no space.
  HostSession(engine::SessionId id, SessionRecord record, const std::string& memory_path,
              const engine::SessionProgress* progress = nullptr, uint64_t num_loans = 0);
  HostSession(const HostSession&) = delete;
  HostSession& operator=(const HostSession&) = delete;
  ~HostSession() override;

  // Makes the session outlive this object, so that another server may resume the session.
  void leave() { is_left_ = true; }
  // Takes ownership of the client's connected socket.
  void attach(int descriptor);
  int descriptor() const {
    return connection_.descriptor();
  }  // -1 until the client has reconnected
  engine::SessionId id() const { return id_; }
  const SessionRecord& record() const { return record_; }
  // Whether the client has gone or has been refused.
  bool is_over() const { return is_over_ || is_refused_; }
  bool is_refused() const { return is_refused_; }
  bool is_writer() const { return record_.kind == SessionRecord::Kind::kWriter; }
  void end() { is_over_ = true; }
  // Whether the client has ever mapped its side of the memory.
  bool is_taken() const { return header_->is_taken.load() != 0; }

  // Applies the requests that can be applied now, until kMaxSamples items and chunks have been
  // touched. Returns kDone if anything changed, because more requests may then be ready. An invalid
  // request ends the session.
  Progress serve(engine::Engine& engine);
  // Sends the replies that serve() produced to the client, and wakes the client. Precondition: the
  // changes are logged. The client sees its requests as applied when checkpoint `number` is
  // complete, or immediately if `number` is 0.
  void publish(uint64_t number);
  // Reports that the checkpoints up to `number` are complete.
  void publish_made(uint64_t number);
  // Reports that checkpoints up to `number` failed. Refuses the session if it waits for one.
  void break_promises(uint64_t number, const std::string& error);
  // Tells the client whether it must ring: `sleeps` is kAwake, kNaps or kSleeps.
  void set_server_sleeps(uint32_t sleeps) {
    header_->server_sleeps.exchange(sleeps, std::memory_order_acq_rel);
  }
  // Whether the session waits for batches or slots that it has requested.
  bool is_waiting() const { return served_->num_wanted() > 0; }
  // Reads the bytes with which the client woke the server. Ends the session if the client has gone.
  void read_bells();
  std::string waits() const { return read_reason(*header_); }

 private:
  std::byte* reserve(uint32_t num_bytes) override { return replies_.reserve(num_bytes); }
  void stage(uint32_t num_bytes) override { replies_.stage(num_bytes); }
  Progress serve_all(engine::Engine& engine);
  void refuse(const std::string& error);

  transport::Connection connection_;  // open while the client is connected
  const engine::SessionId id_;
  const SessionRecord record_;
  const transport::SharedMemory memory_;
  SessionHeader* const header_;
  transport::Ring requests_;
  transport::Ring replies_;
  const std::unique_ptr<ServedSession> served_;
  uint64_t num_applied_ = 0;
  struct Promise {
    uint64_t number;  // number of the checkpoint to wait for
    uint64_t num_applied;
  };
  std::deque<Promise> promises_;
  bool has_reason_ = false;
  bool is_over_ = false;
  bool is_refused_ = false;
  bool is_left_ = false;
};

// Returns the layout for a sampler with `num_ahead` batches and their acknowledgements.
SessionLayout layout_of_sampler(const engine::Engine& engine, uint32_t table, uint32_t num_samples,
                                uint32_t num_ahead);
SessionLayout layout_of_writer();

}  // namespace tengen::store
