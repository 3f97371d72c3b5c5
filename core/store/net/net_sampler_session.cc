// A sampler on another host: batches are sent from the slabs where their steps lie.

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "store/net/batch_parts.h"
#include "store/net/net_session.h"
#include "store/service/wire.h"

namespace tengen::store {
namespace {

// One thread reads, and one draws and sends, so that acknowledgements never wait behind a batch.
class NetSamplerSession final : public NetSession {
 public:
  NetSamplerSession(int descriptor, std::string name, std::unique_ptr<SamplerPort> port,
                    const engine::Schema& schema, const BatchLayout& layout, SlabMap slabs,
                    uint32_t num_samples, uint32_t num_steps)
      : NetSession(descriptor, std::move(name)),
        port_(std::move(port)),
        slabs_(std::move(slabs)),
        num_samples_(num_samples),
        batch_(schema, layout, num_steps) {}

  void run() override {
    std::thread sender([this] { send_batches(); });
    try {
      Request kind;
      while (socket_.read(&kind, sizeof kind) && take(kind)) {
      }
      end("");
      socket_.shut_down();  // ends a send that blocks
    } catch (const Error& error) {
      end(error.what());
    }
    sender.join();
    port_.reset();
    linger();
  }

 private:
  // False where the client has gone.
  bool take(Request kind) {
    switch (kind) {
      case Request::kSample: {
        SampleMessage message;
        if (!socket_.read_rest(&message)) return false;
        const std::scoped_lock lock(mutex_);
        ++num_wanted_;
        changed_.notify_all();
        return true;
      }
      case Request::kAck: {
        Ack message;
        if (!socket_.read_rest(&message)) return false;
        if (message.num_priorities != 0 && message.num_priorities != num_samples_) {
          throw Error("priorities (" + std::to_string(message.num_priorities) + ") must be " +
                      std::to_string(num_samples_) + ", one for each sample");
        }
        priorities_.resize(message.num_priorities);
        if (!socket_.read(priorities_.data(), priorities_.size() * sizeof(double))) return false;
        wait_until_sent(message.lease);
        port_->ack(message.lease, priorities_);
        return true;
      }
      case Request::kGiveBack: {
        GiveBack message;
        if (!socket_.read_rest(&message)) return false;
        wait_until_sent(message.lease);
        port_->give_back(message.lease);
        return true;
      }
      default:
        throw Error("request (" + std::to_string(static_cast<uint32_t>(kind)) +
                    ") must be one of a sampler's; the client is of another version");
    }
  }

  // A client may acknowledge a batch before the call that sends it has returned; until then the
  // batch's steps must stay.
  void wait_until_sent(uint64_t lease) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return being_sent_ != lease; });
  }

  // Ends the sending of batches; the error, if there is one, is still sent.
  void end(const std::string& error) {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
    error_ = error;
    changed_.notify_all();
  }

  void send_batches() {
    std::string error;
    try {
      Delivery delivery;
      while (wait_until_wanted() && draw(&delivery)) {
        set_being_sent(delivery.lease);
        const bool is_sent = send(delivery);
        set_being_sent(std::nullopt);
        if (!is_sent) break;
      }
      const std::scoped_lock lock(mutex_);
      error = error_;
    } catch (const Error& refused) {
      error = refused.what();
      set_being_sent(std::nullopt);
    }
    if (!error.empty()) send_error(error);
  }

  void set_being_sent(std::optional<uint64_t> lease) {
    const std::scoped_lock lock(mutex_);
    being_sent_ = lease;
    changed_.notify_all();
  }

  bool wait_until_wanted() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_over_ || num_wanted_ > 0; });
    if (is_over_) return false;
    --num_wanted_;
    return true;
  }

  bool draw(Delivery* delivery) {
    bool drawn = false;
    return wait_for(
               [&](Deadline deadline) {
                 drawn = port_->next(deadline, delivery);
                 return drawn || is_over();
               },
               [&] { return port_->waits(); }) &&
           drawn;
  }

  bool is_over() {
    const std::scoped_lock lock(mutex_);
    return is_over_;
  }

  bool send(const Delivery& delivery) {
    const Batch message{Reply::kBatch, num_samples_, delivery.lease, delivery.table_size, 0, 0};
    uint32_t last_slot = 0;
    for (const engine::Piece& piece : delivery.pieces) last_slot = std::max(last_slot, piece.slot);
    parts_.assign({transport::part_of(&message, sizeof message),
                   transport::part_of(delivery.keys.data(), delivery.keys.size() * sizeof(int64_t)),
                   transport::part_of(delivery.probabilities.data(),
                                      delivery.probabilities.size() * sizeof(double))});
    batch_.list(slabs_.up_to(last_slot), delivery.pieces, &parts_);
    return socket_.send(parts_);
  }

  std::unique_ptr<SamplerPort> port_;
  SlabMap slabs_;
  const uint32_t num_samples_;
  BatchParts batch_;
  std::vector<iovec> parts_;
  std::vector<double> priorities_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t num_wanted_ = 0;             // batches that were requested and not drawn
  std::optional<uint64_t> being_sent_;  // the lease of the batch that is being sent
  bool is_over_ = false;
  std::string error_;
};

}  // namespace

std::unique_ptr<NetSession> net_sampler_session(int descriptor, std::string name,
                                                std::unique_ptr<SamplerPort> port,
                                                const engine::Schema& schema,
                                                const BatchLayout& layout, SlabMap slabs,
                                                uint32_t num_samples, uint32_t num_steps) {
  return std::make_unique<NetSamplerSession>(descriptor, std::move(name), std::move(port), schema,
                                             layout, std::move(slabs), num_samples, num_steps);
}

}  // namespace tengen::store
