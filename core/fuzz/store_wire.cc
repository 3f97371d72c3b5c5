// Fuzz targets for the messages between a store, its clients and its replicas over a stream.

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "fuzz/scratch_folder.h"
#include "fuzz/target.h"
#include "store/clients/sampler.h"
#include "store/clients/writer.h"
#include "store/net/gateway.h"
#include "store/net/replica.h"
#include "store/service/store.h"
#include "store/session/messages.h"
#include "store/session/stream_channel.h"
#include "store/steps/gather.h"

namespace tengen::fuzz {
namespace {

using store::Deadline;
using store::engine::Schema;

constexpr uint32_t kStepsPerChunk = 4;
constexpr uint32_t kNumSamples = 2;
constexpr uint32_t kStepBytes = 8 + 5;

Deadline in_time() { return std::chrono::steady_clock::now() + std::chrono::seconds(5); }

Schema schema() { return Schema({{"x", "i8", {}, 0}, {"y", "u1", {5}, 0}}, kStepsPerChunk); }

std::unique_ptr<store::Store> make_store() {
  auto made = std::make_unique<store::Store>("", uint64_t{1} << 18, 3);
  store::engine::TableConfig config;
  config.name = "table";
  config.sampler = store::engine::selector_of("uniform");
  config.max_items = 100;
  made->change([&](store::engine::Engine& engine) {
    engine.add_pool(schema());
    engine.add_table(config, 0);
  });
  return made;
}

// Both ends of a stream. The second end receives only the bytes that say() writes to the first.
class Stream {
 public:
  Stream() { expect(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) == 0, "a pair of sockets"); }
  ~Stream() { close(0), close(1); }
  int end() const { return ends_[1]; }
  // Transfers ownership of the second end to the caller.
  int take_end() { return std::exchange(ends_[1], -1); }
  // Sends the bytes, then shuts down the sending direction. Discards all replies.
  void say(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(ends_[0], bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      bytes.remove_prefix(static_cast<size_t>(sent));
      // Discards replies, because a full buffer would block the other side.
      char answers[1 << 12];
      while (::recv(ends_[0], answers, sizeof answers, MSG_DONTWAIT) > 0) {
      }
    }
    ::shutdown(ends_[0], SHUT_WR);
  }
  void close(int which) {
    if (ends_[which] >= 0) ::close(ends_[which]);
    ends_[which] = -1;
  }

 private:
  int ends_[2];
};

void write_to_store(std::string_view bytes) {
  const auto made = make_store();
  Stream stream;
  store::Gateway gateway(made.get());
  (void)gateway.open_writer(stream.end(), "a", 0, in_time());
  stream.close(1);
  stream.say(bytes.substr(0, 1 << 15));
  stream.close(0);
}

// Samples from a store with a few items.
void sample_from_store(std::string_view bytes) {
  const auto made = make_store();
  store::Writer writer(made->open_writer("a", 0), schema(), made->slab_map(0), 1);
  for (int64_t i = 0; i < 6; ++i) {
    const std::byte y[5] = {};
    const std::byte* const columns[] = {reinterpret_cast<const std::byte*>(&i), y};
    const double priority = 1.0;
    expect(writer.append(columns, 1, in_time()) == 1, "a step is taken");
    expect(
        writer.insert({0, writer.next_sequence(), writer.num_steps() - 1, 1, 1, 1, {&priority, 1}},
                      in_time()),
        "an item is taken");
  }
  Stream stream;
  store::Gateway gateway(made.get());
  gateway.open_sampler(stream.end(), 0, kNumSamples, 1);
  stream.close(1);
  stream.say(bytes.substr(0, 1 << 15));
  stream.close(0);
}

// Passes the bytes to a client as if a store had sent them.
void answer_client(std::string_view bytes) {
  const uint64_t batch_bytes = store::BatchLayout(schema(), kNumSamples, 1).num_bytes;
  Stream stream;
  try {
    store::Sampler sampler(
        {std::make_unique<store::StreamChannel>(store::StreamAddress{stream.take_end(), "store"},
                                                kNumSamples, batch_bytes),
         1},
        schema(), store::SlabMap::none(), kNumSamples, 1);
    stream.say(bytes.substr(0, 1 << 15));
    while (const std::optional<store::Delivery> batch = sampler.next(in_time())) {
      expect(batch->keys.size() == kNumSamples && batch->data != nullptr, "a batch is whole");
      sampler.ack(batch->lease, {});
    }
  } catch (const Error&) {
  }
}

// Limits a replica's files to 128 MiB, because the scratch folder may be in memory.
void limit_files() {
  const rlimit limit{128 << 20, 128 << 20};
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_IGN);
}

void tell_replica(std::string_view bytes) {
  static const bool is_limited = (limit_files(), true);
  (void)is_limited;
  const ScratchFolder folder;
  Stream stream;
  try {
    stream.say(bytes.substr(0, 1 << 15));
    store::Replica replica(folder.path());
    replica.follow(stream.take_end());
  } catch (const Error&) {
  }
}

template <class T>
void put(std::string* to, const T& message, std::string_view rest = {}) {
  T whole = message;
  whole.num_bytes = static_cast<uint32_t>(sizeof message + rest.size());
  to->append(reinterpret_cast<const char*>(&whole), sizeof whole).append(rest);
}

template <class T>
std::string raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::vector<std::string> writer_seeds() {
  std::string seed;
  for (uint64_t i = 0; i < 3; ++i) {
    put(&seed, store::Steps{.num_steps = 2});
    seed.append(2 * kStepBytes, static_cast<char>(i));
    put(&seed,
        store::InsertMessage{
            .sequence = 2 * i, .first = 2 * i, .count = 2, .stride = 1, .num_steps = 1},
        raw(1.5));
    put(&seed, store::Flush{.number = i + 1});
  }
  put(&seed, store::Release{.first = 4});
  return {seed};
}

std::vector<std::string> sampler_seeds() {
  std::string seed;
  for (uint64_t lease = 0; lease < 3; ++lease) {
    put(&seed, store::SampleMessage());
    put(&seed, store::OfLease{.lease = lease}, raw(1.0) + raw(2.0));
  }
  put(&seed, store::SampleMessage());
  put(&seed, store::OfLease{.kind = store::Request::kGiveBack, .lease = 3});
  return {seed};
}

std::vector<std::string> client_seeds() {
  const uint64_t batch_bytes = store::BatchLayout(schema(), kNumSamples, 1).num_bytes;
  std::string seed;
  const std::string waits = "sample waits";
  put(&seed, store::Text{.kind = store::Reply::kWaits}, waits);
  put(&seed, store::Text{.kind = store::Reply::kWaits});
  for (uint64_t lease = 0; lease < 2; ++lease) {
    put(&seed, store::Batch{.lease = lease, .table_size = 6, .num_samples = kNumSamples},
        raw(int64_t{7}) + raw(int64_t{8}) + raw(0.5) + raw(0.5));
    seed.append(batch_bytes, '\1');
  }
  put(&seed, store::Text{}, "store (a) ended; start it again");
  return {seed};
}

std::vector<std::string> replica_seeds() {
  const uint64_t row_bytes = 4096;
  store::engine::Log log;
  log.add(store::engine::event::TableAdded{0, 0});
  log.add(store::engine::event::ChunkBegun{0, 0, 0, 0});
  const std::string records = as_text(log.pending());
  std::string seed;
  put(&seed, store::StateMessage{.num_pools = 1, .record_bytes = records.size()});
  seed += raw(row_bytes) + records;
  put(&seed, store::RowMessage{.row = {0, 0, 9}});
  seed.append(row_bytes, '\2');
  store::engine::Log more;
  more.add(store::engine::event::ChunkSaved{0, 0, 0, 9});
  put(&seed, store::RecordsMessage{.record_bytes = more.pending().size()});
  seed += as_text(more.pending());
  put(&seed, store::MarkMessage{.mark = {more.pending().size(), 1}});
  return {seed};
}

}  // namespace

std::vector<Target> store_wire_targets() {
  return {{"store_writer", write_to_store, writer_seeds},
          {"store_sampler", sample_from_store, sampler_seeds},
          {"store_client", answer_client, client_seeds},
          {"store_replica", tell_replica, replica_seeds}};
}

}  // namespace tengen::fuzz
