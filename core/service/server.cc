#include "service/server.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace tengen::service {

using replay::Engine;

Server::Server(Store* store) : store_(store) {
  if (pipe(bell_) != 0) {
    throw Error("server (" + store->directory() + ") cannot have a pipe: " + std::strerror(errno) +
                "; raise ulimit -n");
  }
  for (const int end : bell_) {
    fcntl(end, F_SETFL, O_NONBLOCK);
    fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  store_->set_listener([this] {
    if (is_asleep_.load()) ring();
  });
  thread_ = std::thread([this] { run(); });
}

Server::~Server() {
  is_stopping_ = true;
  ring();
  thread_.join();
  store_->set_listener({});
  store_->change([&](Engine& engine) {
    for (const auto& session : sessions_) engine.end_session(session->id());
  });
  sessions_.clear();
  for (const int end : bell_) ::close(end);
}

Server::Opened Server::open_writer(int descriptor, const std::string& name, uint32_t pool,
                                   Deadline deadline) {
  const replay::SessionId id =
      store_->change([](Engine& engine) { return engine.begin_session(); });
  Engine::OpenedWriter opened{};
  if (!store_->change_when(deadline, [&](Engine& engine) {
        if (engine.is_writer_open(name)) return Progress::kNone;
        opened = engine.open_writer(id, name, pool);
        return Progress::kDone;
      })) {
    throw Error("writer (" + name + ") is open in another client; give each a name of its own");
  }
  const SessionLayout layout = layout_of_writer();
  return add(id, layout, opened.next_sequence, [&](const std::string& path) {
    return host_writer(descriptor, id, "writer " + name, path, layout, opened.writer);
  });
}

Server::Opened Server::open_sampler(int descriptor, uint32_t table, uint32_t num_samples,
                                    uint32_t num_ahead) {
  const replay::SessionId id =
      store_->change([](Engine& engine) { return engine.begin_session(); });
  std::string name;
  const SessionLayout layout = store_->read([&](const Engine& engine) {
    name = "sampler " + std::to_string(id) + " of " + engine.table(table).config().name;
    return layout_of_sampler(engine, table, num_samples, num_ahead);
  });
  return add(id, layout, 0, [&](const std::string& path) {
    return host_sampler(descriptor, id, name, path, layout, table, num_samples);
  });
}

template <class Make>
Server::Opened Server::add(replay::SessionId id, const SessionLayout& layout,
                           uint64_t next_sequence, Make&& make) {
  const std::string path = store_->directory() + "/session-" + std::to_string(id);
  try {
    std::unique_ptr<HostSession> session = make(path);
    const std::scoped_lock lock(mutex_);
    sessions_.push_back(std::move(session));
  } catch (const Error&) {
    store_->change([&](Engine& engine) { engine.end_session(id); });
    throw;
  }
  ring();
  return {path, layout, next_sequence};
}

std::vector<std::string> Server::describe() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> lines;
  for (const auto& session : sessions_) {
    const std::string waits = session->waits();
    lines.push_back(session->name() + (waits.empty() ? "" : ": " + waits));
  }
  return lines;
}

void Server::ring() {
  const char bell = 0;
  (void)!::write(bell_[1], &bell, 1);  // a full pipe holds bells enough
}

void Server::run() {
  while (!is_stopping_) {
    if (!serve_once()) sleep();
  }
}

bool Server::serve_once() {
  const std::scoped_lock lock(mutex_);
  served_.clear();
  store_->try_change([&](Engine& engine) {
    for (const auto& session : sessions_) {
      if (session->serve(engine) != Progress::kNone) served_.push_back(session.get());
    }
    return served_.empty() ? Progress::kNone : Progress::kDone;
  });
  for (HostSession* session : served_) session->wake_client();
  end_those_that_are_over();
  return !served_.empty();
}

// What a client sent before it went is applied first, as far as it can be.
void Server::end_those_that_are_over() {
  const auto is_over = [](const auto& session) { return session->is_over(); };
  if (std::none_of(sessions_.begin(), sessions_.end(), is_over)) return;
  store_->change([&](Engine& engine) {
    for (const auto& session : sessions_) {
      if (!session->is_over()) continue;
      while (!session->is_refused() && session->serve(engine) != Progress::kNone) {
      }
      engine.end_session(session->id());
    }
  });
  sessions_.erase(std::remove_if(sessions_.begin(), sessions_.end(), is_over), sessions_.end());
}

void Server::sleep() {
  is_asleep_ = true;
  set_sleeps(true);
  // What was sent before the flags were seen has rung no bell.
  if (!serve_once() && !is_stopping_) {
    std::vector<pollfd> polls{{bell_[0], POLLIN, 0}};
    std::vector<HostSession*> polled;
    {
      const std::scoped_lock lock(mutex_);
      for (const auto& session : sessions_) {
        polls.push_back({session->descriptor(), POLLIN, 0});
        polled.push_back(session.get());
      }
    }
    poll(polls.data(), polls.size(), -1);
    char bytes[64];
    if (polls[0].revents != 0) (void)!::read(bell_[0], bytes, sizeof bytes);
    // Sessions are taken out by this thread alone, so that those polled are still there.
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polls[i + 1].revents != 0) polled[i]->read_bells();
    }
  }
  is_asleep_ = false;
  set_sleeps(false);
}

void Server::set_sleeps(bool sleeps) {
  const std::scoped_lock lock(mutex_);
  for (const auto& session : sessions_) session->set_server_sleeps(sleeps);
}

}  // namespace tengen::service
