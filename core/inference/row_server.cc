#include "inference/row_server.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace tengen {
namespace {

// The key of the pipe `bell_` in `readiness_`. The keys of sessions start at 1.
constexpr uint64_t kBellKey = 0;

double seconds(RowSession::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

RowServer::RowServer(RowColumns columns, const RowServerSettings& settings)
    : columns_(std::move(columns)), settings_(settings), batch_(columns_, settings.max_rows, -1) {
  check(settings.min_rows >= 1 && settings.min_rows <= settings.max_rows, "min_rows",
        settings.min_rows, "must be 1 to max_rows; use 1");
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].part == RowPart::kInput) input_bytes_ += columns_[i].row_bytes;
  }
  if (pipe(bell_) != 0) throw Error("descriptors (none left) are used up; close other files");
  for (const int end : bell_) {
    fcntl(end, F_SETFD, FD_CLOEXEC);
    fcntl(end, F_SETFL, O_NONBLOCK);
  }
  readiness_.add(bell_[0], kBellKey);
}

RowServer::~RowServer() {
  for (const int end : bell_) ::close(end);
}

void RowServer::add(int descriptor, int memory_descriptor, size_t num_rows) {
  std::shared_ptr<RowSession> session;
  try {
    session = std::make_shared<RowSession>(descriptor, memory_descriptor, columns_, num_rows);
  } catch (...) {
    ::close(descriptor);
    if (memory_descriptor >= 0) ::close(memory_descriptor);
    throw;
  }
  const std::lock_guard lock(mutex_);
  check(num_rows >= 1 && num_rows <= settings_.max_rows, "num_rows", num_rows,
        "must be 1 to max_rows; use more actors");
  check(!has_ended_, "inference", "ended", "no longer serves; restart its role");
  if (num_rows_ + num_rows > settings_.most_rows) {
    throw Error("inference (full) serves at most " + std::to_string(settings_.most_rows) +
                " rows at once; use fewer actors");
  }
  num_rows_ += num_rows;
  ++num_sessions_;
  new_sessions_.push_back(std::move(session));
  ring();
}

void RowServer::start() {
  has_model_ = true;
  ring();
}

void RowServer::stop() {
  is_stopping_ = true;
  ring();
}

RowStats RowServer::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

size_t RowServer::next() {
  check(fired_.empty(), "batch", "not done", "must be done before the next; call done");
  while (!is_stopping_) {
    wait();
    if (is_due()) return fire();
  }
  return 0;
}

void RowServer::done(int64_t version, int64_t model) {
  const Clock::time_point answered_at = Clock::now();
  size_t first_row = 0;
  for (const uint64_t key : fired_) {
    RowSession& session = *sessions_.at(key);
    if (!alone_) session.scatter(batch_, first_row);
    first_row += session.num_rows();
    session.is_pending = false;
  }
  const Clock::time_point copied_at = Clock::now();
  {
    // Updated before any reply, so that the statistics include every batch with a reply.
    const std::lock_guard lock(mutex_);
    stats_.num_batches += 1;
    stats_.num_rows += num_fired_;
    stats_.device_s += seconds(answered_at - fired_at_);
    if (!alone_) stats_.copy_s += seconds(copied_at - answered_at);
  }
  for (const uint64_t key : fired_) {
    RowSession& session = *sessions_.at(key);
    if (session.answer(version, model)) {
      watch(key, session);
    } else {
      lose(key);
    }
  }
  fired_.clear();
  alone_.reset();
  alone_key_ = 0;
}

void RowServer::refuse(std::string_view reason) {
  for (const auto& [key, session] : sessions_) session->refuse(reason);
}

void RowServer::close() {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  new_sessions_.clear();
  sessions_.clear();
  pending_.clear();
  fired_.clear();
  alone_.reset();
  num_pending_ = num_rows_ = 0;
  num_sessions_ = 0;
}

bool RowServer::is_due() const {
  if (pending_.empty() || !has_model_) return false;
  if (num_pending_ >= settings_.min_rows) return true;
  const auto waited = Clock::now() - sessions_.at(pending_.front())->asked_at;
  return seconds(waited) >= settings_.max_wait_s;
}

// Returns the maximum wait for further requests in seconds, or a negative number for no limit.
double RowServer::timeout_s() const {
  if (pending_.empty() || !has_model_) return -1;
  if (num_pending_ >= settings_.min_rows) return 0;
  const auto waited = Clock::now() - sessions_.at(pending_.front())->asked_at;
  return std::max(0.0, settings_.max_wait_s - seconds(waited));
}

void RowServer::wait() {
  const bool is_idle = pending_.empty();
  const Clock::time_point begun = Clock::now();
  const auto ready = readiness_.wait(timeout_s());
  const Clock::time_point now = Clock::now();
  if (is_idle) {
    const std::lock_guard lock(mutex_);
    stats_.wait_s += seconds(now - begun);
  }
  for (const auto& event : ready) {
    if (event.key == kBellKey) {
      take_new_sessions();
    } else {
      serve(event.key, event, now);
    }
  }
}

void RowServer::take_new_sessions() {
  char rung[64];
  while (::read(bell_[0], rung, sizeof rung) == sizeof rung) {
  }
  std::vector<std::shared_ptr<RowSession>> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(new_sessions_);
  }
  for (std::shared_ptr<RowSession>& session : taken) {
    const uint64_t key = ++num_keys_;
    readiness_.add(session->descriptor(), key);
    sessions_.emplace(key, std::move(session));
  }
}

void RowServer::serve(uint64_t key, const transport::Readiness::Event& event,
                      Clock::time_point now) {
  RowSession& session = *sessions_.at(key);
  if (event.can_write) {
    if (!session.send_rest()) return lose(key);
    watch(key, session);
  }
  if (!event.can_read) return;
  switch (session.receive()) {
    case RowSession::Received::kPart:
      return;
    case RowSession::Received::kEnd:
      return lose(key);
    case RowSession::Received::kRequest:
      session.asked_at = now;
      session.is_pending = true;
      pending_.push_back(key);
      num_pending_ += session.num_rows();
  }
}

// Makes wait() return when the socket of `session` is writable, while part of a reply is unsent.
void RowServer::watch(uint64_t key, RowSession& session) {
  if (session.has_unsent() == session.waits_for_room) return;
  session.waits_for_room = session.has_unsent();
  readiness_.want_room(session.descriptor(), key, session.waits_for_room);
}

void RowServer::lose(uint64_t key) {
  const std::shared_ptr<RowSession> session = sessions_.at(key);
  readiness_.remove(session->descriptor());
  sessions_.erase(key);
  if (session->is_pending) {
    pending_.erase(std::find(pending_.begin(), pending_.end(), key));
    num_pending_ -= session->num_rows();
  }
  const std::lock_guard lock(mutex_);
  stats_.num_lost += 1;
  num_rows_ -= session->num_rows();
  --num_sessions_;
}

size_t RowServer::fire() {
  num_fired_ = 0;
  while (!pending_.empty()) {
    const size_t num_rows = sessions_.at(pending_.front())->num_rows();
    if (num_fired_ + num_rows > settings_.max_rows) break;
    fired_.push_back(pending_.front());
    pending_.pop_front();
    num_fired_ += num_rows;
  }
  num_pending_ -= num_fired_;
  const Clock::time_point begun = Clock::now();
  const std::shared_ptr<RowSession>& first = sessions_.at(fired_.front());
  if (fired_.size() == 1 && num_fired_ * input_bytes_ >= settings_.least_bytes) {
    alone_ = first;
    alone_key_ = fired_.front();
    alone_->begin_episodes();
  } else {
    size_t first_row = 0;
    for (const uint64_t key : fired_) {
      const RowSession& session = *sessions_.at(key);
      session.gather(batch_, first_row);
      first_row += session.num_rows();
    }
  }
  fired_at_ = Clock::now();
  if (!alone_) {
    const std::lock_guard lock(mutex_);
    stats_.copy_s += seconds(fired_at_ - begun);
  }
  return num_fired_;
}

// Wakes the driver thread. If the pipe is full, the driver has already been woken.
void RowServer::ring() {
  const char byte = 'w';
  [[maybe_unused]] const ssize_t written = ::write(bell_[1], &byte, 1);
}

}  // namespace tengen
