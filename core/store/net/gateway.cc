#include "store/net/gateway.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "store/service/local_channel.h"
#include "store/session/host_session.h"

namespace tengen::store {

using engine::Engine;

namespace {

int copy_of(int descriptor) {
  const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) {
    throw Error("session (" + std::to_string(descriptor) +
                ") cannot have a descriptor: " + std::strerror(errno) + "; raise ulimit -n");
  }
  return copy;
}

}  // namespace

Gateway::~Gateway() {
  for (const auto& running : running_) running->session->shut_down();
  for (const auto& running : running_) running->thread.join();
}

uint64_t Gateway::open_writer(int descriptor, const std::string& name, uint32_t pool,
                              Deadline deadline) {
  const Store::OpenedWriter begun = store_->begin_writer(name, pool, deadline);
  auto channel = std::make_unique<LocalChannel>(store_, begun.session, serve_writer(begun.writer));
  const engine::Schema schema =
      store_->read([&](const Engine& engine) { return engine.pool(pool).schema(); });
  start(net_writer_session(copy_of(descriptor), "writer " + name, std::move(channel), schema,
                           store_->slab_map(pool)));
  return begun.next_sequence;
}

void Gateway::open_sampler(int descriptor, uint32_t table, uint32_t num_samples,
                           uint32_t num_ahead) {
  const auto [name, pool, schema, num_steps] = store_->read([&](const Engine& engine) {
    (void)layout_of_sampler(engine, table, num_samples,
                            num_ahead);  // refuses what a client of this host may not ask either
    const engine::TableConfig& config = engine.table(table).config();
    const uint32_t pool_of_table = engine.pool_of(table);
    return std::make_tuple("sampler of " + config.name, pool_of_table,
                           engine.pool(pool_of_table).schema(), config.num_steps);
  });
  const engine::SessionId id = store_->begin_sampler(table, num_samples);
  start(net_sampler_session(
      copy_of(descriptor), name,
      std::make_unique<LocalChannel>(store_, id, serve_sampler(id, table, num_samples)), schema,
      BatchLayout(schema, num_samples, num_steps), store_->slab_map(pool), num_samples, num_steps));
}

void Gateway::open_replica(int descriptor, const std::string& name,
                           const std::optional<LogPlace>& place) {
  if (store_->checkpointer() == nullptr) {
    throw Error("durability (none) must be another for a replica; make the store with one");
  }
  start(replica_session(copy_of(descriptor), name, store_, place));
}

std::vector<ReplicaStatus> Gateway::replicas() {
  const std::scoped_lock lock(mutex_);
  std::vector<ReplicaStatus> replicas;
  for (const auto& running : running_) {
    const std::optional<ReplicaStatus> status = running->session->replica();
    if (status && !running->is_over) replicas.push_back(*status);
  }
  return replicas;
}

std::vector<std::string> Gateway::describe() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> lines;
  for (const auto& running : running_) {
    if (!running->is_over) lines.push_back(running->session->describe());
  }
  return lines;
}

void Gateway::start(std::unique_ptr<NetSession> session) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(running_, [](const auto& running) {
    if (!running->is_over) return false;
    running->thread.join();
    return true;
  });
  auto running = std::make_unique<Running>();
  running->session = std::move(session);
  running->thread = std::thread([one = running.get()] {
    one->session->run();
    one->is_over = true;
  });
  running_.push_back(std::move(running));
}

}  // namespace tengen::store
