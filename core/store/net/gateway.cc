#include "store/net/gateway.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/owned.h"
#include "base/thread.h"
#include "store/session/host_session.h"

namespace tengen::store {

using engine::Engine;

namespace {

transport::Connection copy_of(int descriptor) {
  const int copy = dup_owned(descriptor);
  if (copy < 0) {
    throw Error("session (" + std::to_string(descriptor) +
                ") cannot have a descriptor: " + std::strerror(errno) + "; raise ulimit -n");
  }
  return transport::Connection(copy);
}

}  // namespace

Gateway::~Gateway() {
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& running : running_) {
      if (running->session) running->session->shut_down();
    }
  }
  for (const auto& running : running_) running->thread.join();
}

uint64_t Gateway::open_writer(int descriptor, const std::string& name, uint32_t pool,
                              Deadline deadline) {
  const Engine::OpenedWriter opened = store_->begin_writer(name, pool, deadline);
  auto session =
      LocalChannel::open(store_, opened.session, [&] { return serve_writer(opened.writer); });
  start(step_receiver(parts_of(descriptor, "writer " + name, pool, std::move(session)),
                      opened.writer));
  return opened.next_sequence;
}

void Gateway::open_sampler(int descriptor, uint32_t table, uint32_t num_samples,
                           uint32_t num_ahead) {
  const auto [pool, config] = store_->read([&](const Engine& engine) {
    // Rejects batches that are too large for clients on this host, too.
    (void)layout_of_sampler(engine, table, num_samples, num_ahead);
    return std::pair(engine.pool_of(table), engine.table(table).config());
  });
  const engine::SessionId id = store_->begin_sampler(table, num_samples);
  auto session =
      LocalChannel::open(store_, id, [&] { return serve_sampler(id, table, num_samples); });
  start(batch_sender(parts_of(descriptor, "sampler of " + config.name, pool, std::move(session)),
                     num_samples, config.num_steps));
}

NetParts Gateway::parts_of(int descriptor, std::string name, uint32_t pool,
                           std::unique_ptr<LocalChannel> session) {
  return {copy_of(descriptor), std::move(name), std::move(session),
          store_->read([&](const Engine& engine) { return engine.pool(pool).schema(); }),
          store_->slab_map(pool)};
}

void Gateway::open_replica(int descriptor, const std::string& name) {
  engine::check_name_bytes("replica", name);
  if (store_->checkpointer() == nullptr) {
    throw Error("durability (none) must not be none for a replica; create the store with another");
  }
  start(replica_session(copy_of(descriptor), name, store_));
}

std::vector<ReplicaStatus> Gateway::replicas() {
  const std::scoped_lock lock(mutex_);
  std::vector<ReplicaStatus> replicas;
  remove_ended();
  for (const auto& running : running_) {
    const std::optional<ReplicaStatus> status = running->session->replica();
    if (status) replicas.push_back(*status);
  }
  return replicas;
}

std::vector<std::string> Gateway::describe() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> lines;
  remove_ended();
  for (const auto& running : running_) lines.push_back(running->session->describe());
  return lines;
}

void Gateway::remove_ended() {
  std::erase_if(running_, [](const auto& running) {
    if (running->session) return false;
    running->thread.join();
    return true;
  });
}

void Gateway::start(std::unique_ptr<NetSession> session) {
  const std::scoped_lock lock(mutex_);
  remove_ended();
  auto& running = running_.emplace_back(std::make_unique<Running>());
  running->session = std::move(session);
  try {
    running->session->prepare();
    running->thread = start_thread("a client", [this, one = running.get()] {
      one->session->run();
      std::unique_ptr<NetSession> over;
      const std::scoped_lock own(mutex_);
      // Frees an ended session immediately, because it holds a descriptor and memory for batches.
      over = std::move(one->session);
    });
  } catch (...) {
    running_.pop_back();
    throw;
  }
}

}  // namespace tengen::store
