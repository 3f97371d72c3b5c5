#include "store/service/server.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/thread.h"
#include "transport/process.h"

namespace tengen::store {

using engine::Engine;

namespace {

// The time in milliseconds between checks for absent clients and their requests.
constexpr int kAgainMs = 100;
// The time in milliseconds between checks for requests while writers are busy. If each insert woke
// the thread instead, both sides would need a system call per insert.
constexpr int kNapMs = 1;
// How long the server waits for an absent client to reconnect if the client's process is unknown.
constexpr std::chrono::seconds kAbsence{30};

}  // namespace

Server::Server(Store* store, const std::map<uint32_t, engine::SavedSession>& resumed)
    : store_(store) {
  if (pipe(bell_) != 0) {
    throw Error("server (" + store->directory() +
                ") cannot create a pipe: " + std::strerror(errno) + "; raise ulimit -n");
  }
  for (const int end : bell_) {
    fcntl(end, F_SETFL, O_NONBLOCK);
    fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  try {
    resume_sessions(resumed);
    store_->set_listener([this] {
      if (is_asleep_.load()) ring();
    });
    thread_ = start_thread("a store's server", [this] { run(); });
  } catch (...) {
    store_->set_listener({});
    leave_sessions();
    for (const int end : bell_) ::close(end);
    throw;
  }
}

Server::~Server() {
  is_stopping_ = true;
  ring();
  thread_.join();
  store_->set_listener({});
  if (is_leaving_) leave_sessions();
  for (auto* const sessions : {&sessions_, &ending_}) {
    for (const auto& session : *sessions) store_->end_session(session->id());
    sessions->clear();
  }
  for (const int end : bell_) ::close(end);
}

void Server::leave_sessions() {
  for (auto* const sessions : {&sessions_, &ending_}) {
    for (const auto& session : *sessions) session->leave();
    sessions->clear();
  }
}

Server::Opened Server::open_writer(int descriptor, const std::string& name, uint32_t pool,
                                   Deadline deadline) {
  const Engine::OpenedWriter begun = store_->begin_writer(name, pool, deadline);
  return add(
      descriptor, begun.session,
      {SessionRecord::Kind::kWriter, begun.writer, 0, layout_of_writer(), 0, "writer " + name},
      begun.next_sequence);
}

Server::Opened Server::open_sampler(int descriptor, uint32_t table, uint32_t num_samples,
                                    uint32_t num_ahead) {
  SessionRecord record{SessionRecord::Kind::kSampler, table, num_samples, {}, 0, ""};
  record.layout = store_->read([&](const Engine& engine) {
    record.name = engine.table(table).config().name;
    return layout_of_sampler(engine, table, num_samples, num_ahead);
  });
  const engine::SessionId id = store_->begin_sampler(table, num_samples);
  record.name = "sampler " + std::to_string(id) + " of " + record.name;
  return add(descriptor, id, record, 0);
}

std::string Server::path_of(engine::SessionId id) const {
  return store_->directory() + "/session-" + std::to_string(id);
}

Server::Opened Server::add(int descriptor, engine::SessionId id, SessionRecord record,
                           uint64_t next_sequence) {
  record.process = transport::peer_process(descriptor);
  try {
    auto session = std::make_unique<HostSession>(id, record, path_of(id));
    store_->change([&](Engine& engine) { engine.describe_session(id, record.encode()); });
    const std::scoped_lock lock(mutex_);
    reserve_session();
    // Attaches the descriptor last, because the caller closes it if this function throws.
    session->attach(descriptor);
    sessions_.push_back(std::move(session));
  } catch (...) {
    store_->end_session(id);
    throw;
  }
  ring();
  return {id, path_of(id), record.layout, next_sequence};
}

// Reserves memory, so that the server's thread can end one more session without memory.
void Server::reserve_session() {
  const size_t num_sessions = sessions_.size() + ending_.size() + 1;
  sessions_.reserve(num_sessions);
  served_.reserve(num_sessions);
  ending_.reserve(num_sessions);
}

void Server::resume_sessions(const std::map<uint32_t, engine::SavedSession>& resumed) {
  // Removes the memory of sessions that ended with their server, or whose creation was interrupted.
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(store_->directory(), ignored)) {
    const std::string path = file.path().string();
    const bool goes_on = std::any_of(resumed.begin(), resumed.end(),
                                     [&](const auto& one) { return path == path_of(one.first); });
    const bool is_session = file.path().filename().string().rfind("session-", 0) == 0;
    if (is_session && !goes_on) std::filesystem::remove(file.path(), ignored);
  }
  for (const auto& [id, saved] : resumed) {
    try {
      resume_session(id, saved);
    } catch (const Error&) {
      // The client is notified when it reconnects.
      std::filesystem::remove(path_of(id), ignored);
      store_->end_session(id);
    }
  }
}

void Server::resume_session(engine::SessionId id, const engine::SavedSession& saved) {
  const uint64_t num_loans =
      store_->read([&](const Engine& engine) { return engine.num_loans(id); });
  reserve_session();
  sessions_.push_back(std::make_unique<HostSession>(id, SessionRecord::decode(saved.description),
                                                    path_of(id), &saved.progress, num_loans));
  HostSession& session = *sessions_.back();
  session.publish(promise(session));
  // Ends a session that its client never mapped, because that client opens a new session.
  if (!session.is_taken()) session.end();
  const SessionRecord& record = session.record();
  if (record.kind != SessionRecord::Kind::kSampler) return;
  try {
    store_->change([&](Engine& engine) {
      check(record.number < engine.num_tables(), "table", record.number,
            "must be one of the store's; remove the store's folder");
      engine.check_batch(record.number, record.num_samples);
      engine.expect(id, record.number, record.num_samples);
    });
  } catch (const Error&) {
    // Ends a session of a version with larger batches. Its client learns this on reconnecting.
    session.end();
  }
}

void Server::resume(int descriptor, engine::SessionId id) {
  {
    const std::scoped_lock lock(mutex_);
    const auto session = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& one) {
      return one->id() == id && one->descriptor() < 0 && !one->is_over();
    });
    check(session != sessions_.end(), "session", id,
          "must have a disconnected client; connect again");
    (*session)->attach(descriptor);
  }
  ring();
}

// Ends sessions of clients that died while absent. Returns whether any client is absent.
bool Server::end_absent_clients() {
  const std::scoped_lock lock(mutex_);
  bool any = false;
  for (const auto& session : sessions_) {
    if (session->descriptor() >= 0 || session->is_over()) continue;
    const int64_t process = session->record().process;
    const bool is_gone = process != 0 ? !transport::is_alive(process)
                                      : std::chrono::steady_clock::now() - begun_ > kAbsence;
    if (is_gone) session->end();
    any = true;
  }
  return any;
}

std::vector<std::string> Server::describe() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> lines;
  for (const auto& session : sessions_) {
    const std::string waits = session->waits();
    lines.push_back(session->record().name + (waits.empty() ? "" : ": " + waits));
  }
  return lines;
}

void Server::ring() {
  const char bell = 0;
  (void)!::write(bell_[1], &bell, 1);  // ignores a full pipe, which also wakes the thread
}

void Server::run() noexcept {
  while (!is_stopping_) {
    const std::string error = error_of([&] {
      if (!serve_once()) {
        sleep();
      } else if (has_steps_) {
        Store::let_others();
      }
    });
    // An error means that memory is exhausted. Clients wait until memory is free.
    if (!error.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(kAgainMs));
  }
}

bool Server::serve_once() {
  const std::scoped_lock lock(mutex_);
  bool is_cut = false;
  publish_served();  // publishes sessions that the last round could not publish for lack of memory
  // Without memory, clients wait, but sessions of disconnected clients end and may free memory.
  has_memory_ = Steady::has_reserve();
  const auto serve_all = [&](Engine& engine) {
    // Writers begin after the writer that the last round served first, and samplers likewise.
    // Otherwise, if a table has space for few items, one session would always use it. The two take
    // turns of their own, because a sampler makes space after each round of the writers. A round
    // that has touched many items stops, so that other threads get the lock; the next round
    // continues from there, and begins with the other kind.
    const size_t num_sessions = sessions_.size();
    const uint64_t end = engine.num_touched() + engine::kMaxSamples;
    for (const bool is_writer : {begins_with_writers_, !begins_with_writers_}) {
      bool has_served = false;
      size_t& first = is_writer ? first_writer_ : first_sampler_;
      for (size_t i = 0, begin = first; i < num_sessions && !is_cut; ++i) {
        const size_t at = (begin + i) % num_sessions;
        if (sessions_[at]->is_writer() != is_writer) continue;
        if (sessions_[at]->serve(engine) == Progress::kNone) continue;
        is_cut = engine.num_touched() >= end;
        if (!has_served || is_cut) first = at + 1;
        if (is_cut) begins_with_writers_ = !is_writer;
        has_served = true;
        served_.push_back(sessions_[at].get());
      }
    }
    return served_.empty() ? Progress::kNone : Progress::kDone;
  };
  if (has_memory_) store_->try_change_open(serve_all);
  const bool has_served = !served_.empty();
  publish_served();
  if (is_sync()) {
    const uint64_t made = store_->checkpointer()->num_made();
    for (const auto& session : sessions_) session->publish_made(made);
    const auto [failed, reason] = store_->checkpointer()->failure();
    if (!reason.empty()) {
      for (const auto& session : sessions_) session->break_promises(failed, reason);
    }
  }
  const bool has_rest = end_those_that_are_over();
  has_steps_ = is_cut || has_rest || !ending_.empty();
  return has_steps_ || has_served;
}

void Server::publish_served() {
  while (!served_.empty()) {
    HostSession* const session = served_.back();
    session->publish(promise(*session));
    if (session->is_writer()) ++num_writes_;
    served_.pop_back();
  }
}

bool Server::is_sync() const {
  return store_->checkpointer() != nullptr && store_->checkpointer()->is_sync();
}

// Returns the number of the checkpoint that a writer's flush waits for, or 0 if it waits for none.
uint64_t Server::promise(const HostSession& session) {
  return session.is_writer() && is_sync() ? store_->checkpointer()->ask() : 0;
}

// Applies the last requests of clients that have gone, as far as possible, and then ends their
// sessions. Both take several calls if they touch many items. Returns whether requests are left.
bool Server::end_those_that_are_over() {
  const auto is_over = [](const auto& session) { return session->is_over(); };
  const bool is_any_over = std::any_of(sessions_.begin(), sessions_.end(), is_over);
  if (!is_any_over && ending_.empty()) return false;
  size_t num_done = sessions_.size();
  const auto serve_rest = [&](Engine& engine) {
    const uint64_t end = engine.num_touched() + engine::kMaxSamples;
    for (size_t i = 0; i < num_done; ++i) {
      HostSession& session = *sessions_[i];
      while (session.is_over() && !session.is_refused() &&
             session.serve(engine) != Progress::kNone) {
        if (engine.num_touched() < end) continue;
        num_done = i;
        break;
      }
    }
    return Progress::kDone;
  };
  if (is_any_over && has_memory_) store_->try_change_open(serve_rest);
  const bool has_rest = num_done < sessions_.size();
  const auto ended = sessions_.begin() + static_cast<std::ptrdiff_t>(num_done);
  for (auto session = sessions_.begin(); session != ended; ++session) {
    if (!is_over(*session)) continue;
    std::erase(served_, session->get());
    ending_.push_back(std::move(*session));
  }
  std::erase(sessions_, nullptr);
  store_->change([&](Engine& engine) {
    // Does not use std::erase_if(), which loses elements if a call throws bad_alloc.
    for (auto session = ending_.begin(); session != ending_.end();) {
      session = engine.end_session((*session)->id()) ? session + 1 : ending_.erase(session);
    }
  });
  return has_rest;
}

void Server::sleep() {
  const bool naps = is_busy_ && may_nap();
  is_asleep_ = true;
  set_sleeps(naps ? kNaps : kSleeps);
  const auto begin = std::chrono::steady_clock::now();
  // Serves once more, because clients that did not see the flag have not woken the server.
  const uint64_t num_writes = num_writes_;
  if (!serve_once() && !is_stopping_) {
    {
      const std::scoped_lock lock(mutex_);
      polls_.assign(1, {bell_[0], POLLIN, 0});
      polled_.clear();
      for (const auto& session : sessions_) {
        polls_.push_back({session->descriptor(), POLLIN, 0});  // poll() ignores -1
        polled_.push_back(session.get());
      }
    }
    // Some cases must be checked again without a bell: an absent client cannot ring, a writer that
    // waits for memory may continue although nothing has changed (see Engine::grant), and memory or
    // space may have become free.
    const bool has_absent = end_absent_clients();
    const bool looks_again =
        store_->keep_rest() || has_absent || has_waiting_writer() || !has_memory_;
    poll(polls_.data(), polls_.size(), naps ? kNapMs : looks_again ? kAgainMs : -1);
    char bytes[64];
    if (polls_[0].revents != 0) (void)!::read(bell_[0], bytes, sizeof bytes);
    // The polled sessions still exist, because only this thread removes sessions.
    for (size_t i = 0; i < polled_.size(); ++i) {
      if (polls_[i + 1].revents != 0) polled_[i]->read_bells();
    }
    // Sleeps, because the bells of clients that wait for memory would keep the thread busy.
    if (!has_memory_) std::this_thread::sleep_for(std::chrono::milliseconds(kNapMs));
  }
  is_asleep_ = false;
  set_sleeps(kAwake);
  serve_once();
  const bool is_soon = std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(kNapMs);
  is_busy_ = num_writes_ > num_writes && (naps || is_soon);
}

// Whether the server may delay reading the writers' requests, because no session waits for them.
bool Server::may_nap() {
  const std::scoped_lock lock(mutex_);
  return std::none_of(sessions_.begin(), sessions_.end(),
                      [](const auto& session) { return session->is_waiting(); });
}

bool Server::has_waiting_writer() {
  const std::scoped_lock lock(mutex_);
  return std::any_of(sessions_.begin(), sessions_.end(), [](const auto& session) {
    return session->is_writer() && session->is_waiting();
  });
}

void Server::set_sleeps(uint32_t sleeps) {
  const std::scoped_lock lock(mutex_);
  for (const auto& session : sessions_) session->set_server_sleeps(sleeps);
}

}  // namespace tengen::store
