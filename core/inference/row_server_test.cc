#include "inference/row_server.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/testing.h"

using namespace tengen;

namespace {

// Two inputs. The network accumulates the first in its state, and outputs the sum and the second
// input, times a factor.
RowColumns columns(size_t output_numbers = 2) {
  return RowColumns({{RowPart::kFirst, 1},
                     {RowPart::kInput, 8},
                     {RowPart::kInput, 3},
                     {RowPart::kOutput, output_numbers * 8},
                     {RowPart::kState, 8}});
}
constexpr size_t kNumber = 1, kBytes = 2, kAnswer = 3, kState = 4;

int unnamed(size_t num_bytes) {
  std::FILE* const file = std::tmpfile();
  TENGEN_CHECK(file != nullptr);
  const int descriptor = dup(fileno(file));
  TENGEN_CHECK(ftruncate(descriptor, static_cast<off_t>(num_bytes)) == 0);
  std::fclose(file);
  return descriptor;
}

// The actor's side of a session.
class Actor {
 public:
  Actor(RowServer& server, size_t num_rows, bool is_shared, size_t output_numbers = 2)
      : columns_(columns(output_numbers)), is_shared_(is_shared) {
    int ends[2];
    TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    socket_ = ends[0];
    const int memory = is_shared ? unnamed(columns_.offsets(num_rows).back()) : -1;
    server.add(ends[1], memory, num_rows);
    if (is_shared) {
      send_head({1, 0, 0});
      rows_.emplace(columns_, num_rows, take_descriptor());
    } else {
      rows_.emplace(columns_, num_rows, -1);
    }
    sums_.resize(num_rows);
  }
  ~Actor() { hang_up(); }
  void hang_up() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  // Sends a request with rows generated from `draw`.
  void ask(uint64_t draw, bool wants_state) {
    wants_state_ = wants_state;
    for (size_t row = 0; row < sums_.size(); ++row) {
      const uint64_t number = mix64(draw * 31 + row);
      const bool is_first = number % 5 == 0;
      std::memcpy(rows_->column(0) + row, &is_first, 1);
      std::memcpy(rows_->column(kNumber) + 8 * row, &number, 8);
      std::memcpy(rows_->column(kBytes) + 3 * row, &number, 3);
      sums_[row] = (is_first ? 0 : sums_[row]) + number;
    }
    send_head({2, wants_state, ++number_});
    for (size_t i = 0; i < 3 && !is_shared_; ++i) {
      send(rows_->column(i), sums_.size() * columns_[i].row_bytes);
    }
  }
  // Receives the answer and checks it.
  void check_answer(int64_t version) {
    RowReply reply;
    take(&reply, sizeof reply);
    TENGEN_CHECK(reply.kind == 1 && reply.num_bytes == 0 && reply.number == number_);
    TENGEN_CHECK(reply.version == version && reply.model == version + 1);
    if (!is_shared_) take(rows_->column(kAnswer), sums_.size() * columns_[kAnswer].row_bytes);
    if (!is_shared_ && wants_state_) take(rows_->column(kState), sums_.size() * 8);
    for (size_t row = 0; row < sums_.size(); ++row) {
      const size_t bytes = columns_[kAnswer].row_bytes;
      std::vector<uint64_t> answer(bytes / 8);
      std::memcpy(answer.data(), rows_->column(kAnswer) + row * bytes, bytes);
      uint64_t bytes_in = 0, state;
      std::memcpy(&bytes_in, rows_->column(kBytes) + 3 * row, 3);
      for (size_t i = 0; i < answer.size(); ++i) {
        TENGEN_CHECK(answer[i] == (i == 1 ? bytes_in : sums_[row] * (i + 1)));
      }
      std::memcpy(&state, rows_->column(kState) + 8 * row, 8);
      TENGEN_CHECK(!wants_state_ || state == sums_[row]);
    }
  }
  void send(const void* data, size_t num_bytes) const {
    TENGEN_CHECK(::send(socket_, data, num_bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(num_bytes));
  }
  void send_head(const RowRequest& request) const { send(&request, sizeof request); }
  void take(void* to, size_t num_bytes) const {
    TENGEN_CHECK(recv(socket_, to, num_bytes, MSG_WAITALL) == static_cast<ssize_t>(num_bytes));
  }
  bool has_ended() const {
    char byte;
    return recv(socket_, &byte, 1, 0) <= 0;
  }

 private:
  int take_descriptor() const {
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    TENGEN_CHECK(recvmsg(socket_, &message, 0) == 1 && byte == 'm');
    int descriptor;
    std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    return descriptor;
  }

  RowColumns columns_;
  bool is_shared_;
  int socket_ = -1;
  std::optional<RowMemory> rows_;
  std::vector<uint64_t> sums_;  // the expected state
  uint64_t number_ = 0;
  bool wants_state_ = false;
};

// A server and the thread that drives it.
struct Bench {
  explicit Bench(const RowServerSettings& settings, size_t output_numbers = 2)
      : server(columns(output_numbers), settings), max_rows(settings.max_rows) {
    thread = std::thread([this] {
      while (const size_t num_rows = server.next()) evaluate(num_rows);
      server.close();
    });
  }
  ~Bench() {
    server.stop();
    thread.join();
  }

  void evaluate(size_t num_rows) {
    TENGEN_CHECK(num_rows <= max_rows);
    while (is_held) std::this_thread::yield();
    const auto column = [&](size_t i) {
      return server.alone() ? server.alone()->column(i) : server.batch().column(i);
    };
    if (server.alone()) ++num_alone;
    TENGEN_CHECK((server.alone_key() != 0) == (server.alone() != nullptr));
    for (size_t row = 0; row < num_rows; ++row) {
      uint64_t number, sum, bytes_in = 0;
      std::memcpy(&number, column(kNumber) + 8 * row, 8);
      std::memcpy(&sum, column(kState) + 8 * row, 8);
      std::memcpy(&bytes_in, column(kBytes) + 3 * row, 3);
      sum += number;
      std::memcpy(column(kState) + 8 * row, &sum, 8);
      const size_t bytes = server.columns()[kAnswer].row_bytes;
      for (size_t i = 0; i < bytes / 8; ++i) {
        const uint64_t answer = i == 1 ? bytes_in : sum * (i + 1);
        std::memcpy(column(kAnswer) + bytes * row + 8 * i, &answer, 8);
      }
    }
    sizes.push_back(num_rows);
    server.done(version, version + 1);
  }
  void wait_for_lost(uint64_t num_lost) const {
    while (server.stats().num_lost < num_lost) std::this_thread::yield();
  }

  RowServer server;
  size_t max_rows;
  std::atomic<int64_t> version{3};
  std::atomic<bool> is_held{false};
  std::atomic<size_t> num_alone{0};
  std::vector<size_t> sizes;  // owned by the driver until it has ended
  std::thread thread;
};

RowServerSettings settings(size_t max_rows, size_t min_rows = 1, double max_wait_s = 0.001) {
  return {max_rows, min_rows, max_wait_s, 8 * max_rows, 0};
}

// Each actor gets its own answers and keeps its own state, whatever else is in its batches.
void check_answers(RowServerSettings with, size_t num_actors) {
  Bench bench(with);
  bench.server.start();
  std::atomic<uint64_t> num_rows{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < num_actors; ++i) {
    threads.emplace_back([&bench, &num_rows, i] {
      Actor actor(bench.server, 1 + i % 4, i % 3 != 0);
      for (uint64_t step = 0; step < 300; ++step) {
        actor.ask(i * 1000 + step, step % 7 == 0);
        actor.check_answer(3);
        num_rows += 1 + i % 4;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  bench.wait_for_lost(num_actors);
  const RowStats stats = bench.server.stats();
  TENGEN_CHECK(stats.num_rows == num_rows && bench.server.num_sessions() == 0);
  TENGEN_CHECK(num_actors > 1 || (bench.num_alone == stats.num_batches) == (with.least_bytes == 0));
}

// A batch starts when it is full, when min_rows wait, or when the oldest request has waited long
// enough. All rows that are waiting when the device becomes idle form one batch, up to its
// capacity.
void check_batches() {
  Bench bench(settings(8));
  std::vector<std::unique_ptr<Actor>> actors;
  for (size_t i = 0; i < 5; ++i) {
    actors.push_back(std::make_unique<Actor>(bench.server, 3, i % 2 == 0));
  }
  bench.is_held = true;
  bench.server.start();
  Actor first(bench.server, 1, false);
  first.ask(0, false);
  while (bench.server.stats().wait_s == 0) std::this_thread::yield();
  for (size_t i = 0; i < 5; ++i) actors[i]->ask(i, false);
  bench.is_held = false;
  first.check_answer(3);
  for (const auto& actor : actors) actor->check_answer(3);
  bench.server.stop();
  bench.thread.join();
  TENGEN_CHECK(*std::max_element(bench.sizes.begin(), bench.sizes.end()) <= 7);
  bench.thread = std::thread([] {});
}

// Fewer than min_rows rows wait at most max_wait_s, also after other sessions have ended.
void check_few_rows() {
  Bench bench(settings(64, 64, 0.002));
  bench.server.start();
  Actor actor(bench.server, 2, true);
  auto other = std::make_unique<Actor>(bench.server, 4, false);
  other->ask(1, false);
  other.reset();
  for (uint64_t step = 0; step < 20; ++step) {
    actor.ask(step, false);
    actor.check_answer(3);
  }
}

// An invalid request, or the death of an actor during a request, ends only that session.
void check_lost() {
  Bench bench(settings(16));
  Actor good(bench.server, 2, true);
  for (const bool is_shared : {false, true}) {
    Actor wrong(bench.server, 2, is_shared);
    wrong.send_head({3, 0, 0});
    TENGEN_CHECK(wrong.has_ended());
    Actor cut(bench.server, 2, is_shared);
    cut.send("\2", 1);
    Actor early(bench.server, 2, is_shared);
    early.ask(0, false);
    early.send_head({2, 0, 2});
    TENGEN_CHECK(early.has_ended());
    Actor waiting(bench.server, 2, is_shared);
    waiting.ask(0, false);
  }
  bench.wait_for_lost(8);
  bench.server.start();
  good.ask(1, true);
  good.check_answer(3);
  TENGEN_CHECK(bench.server.num_sessions() == 1 && bench.server.stats().num_rows == 2);
}

// An answer larger than the socket buffer waits, and delays nobody else.
void check_slow_actor() {
  constexpr size_t kNumbers = 100000;
  Bench bench(settings(64), kNumbers);
  bench.server.start();
  Actor slow(bench.server, 8, false, kNumbers);
  Actor quick(bench.server, 1, true, kNumbers);
  slow.ask(0, true);
  for (uint64_t step = 0; step < 5; ++step) {
    quick.ask(step, false);
    quick.check_answer(3);
  }
  slow.check_answer(3);
  slow.ask(1, false);
  slow.check_answer(3);
}

void check_limits() {
  RowServer server(columns(), settings(4));
  const auto add = [&](size_t num_rows) {
    int ends[2];
    TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    ::close(ends[0]);
    server.add(ends[1], -1, num_rows);
  };
  TENGEN_CHECK(throws([&] { add(0); }) && throws([&] { add(5); }));
  for (int i = 0; i < 8; ++i) add(4);
  TENGEN_CHECK(throws([&] { add(1); }) && server.num_sessions() == 8);
  TENGEN_CHECK(throws([&] { RowServer(columns(), settings(4, 5)); }));
  TENGEN_CHECK(throws([&] { RowServer(RowColumns({{RowPart::kInput, 1}}), settings(4)); }));
  server.stop();
  TENGEN_CHECK(server.next() == 0);
  server.close();
  TENGEN_CHECK(throws([&] { add(1); }));
}

void check_refusal() {
  RowServer server(columns(), settings(4));
  Actor actor(server, 2, false);
  actor.ask(0, false);
  server.start();
  TENGEN_CHECK(server.next() == 2);
  TENGEN_CHECK(throws([&] { server.next(); }));
  server.refuse("the device has gone");
  server.close();
  RowReply reply;
  actor.take(&reply, sizeof reply);
  std::string reason(reply.num_bytes, ' ');
  actor.take(reason.data(), reason.size());
  TENGEN_CHECK(reply.kind == 2 && reply.number == 1 && reason == "the device has gone");
  TENGEN_CHECK(actor.has_ended());
}

}  // namespace

int main() {
  check_answers(settings(64), 1);
  RowServerSettings copying = settings(64);
  copying.least_bytes = 1 << 20;
  check_answers(copying, 1);
  for (const size_t num_actors : {2, 12}) {
    check_answers(settings(64), num_actors);
    check_answers(settings(6), num_actors);
    check_answers(settings(64, 10, 0.002), num_actors);
  }
  check_batches();
  check_few_rows();
  check_lost();
  check_slow_actor();
  check_limits();
  check_refusal();
  return 0;
}
