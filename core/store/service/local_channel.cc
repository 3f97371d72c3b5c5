#include "store/service/local_channel.h"

#include <exception>

#include "store/session/encoding.h"

namespace tengen::store {

using engine::Engine;

bool LocalChannel::send(std::span<iovec> parts, Deadline deadline, Urgency) {
  message_.clear();
  for (const iovec& part : parts) {
    const auto* bytes = static_cast<const std::byte*>(part.iov_base);
    message_.insert(message_.end(), bytes, bytes + part.iov_len);
  }
  return apply(message_, deadline);
}

bool LocalChannel::apply(std::span<const std::byte> message, Deadline deadline) {
  check_process();
  const auto kind = read<Request>(message);
  if (kind == Request::kAppend) {
    appended_ = read<Append>(message);
    return true;
  }
  const auto attempt = [&](Engine& engine) {
    if (appended_) served_->apply(engine, std::as_bytes(std::span(&*appended_, 1)));
    appended_.reset();
    return served_->apply(engine, message);
  };
  if (kind == Request::kTakeSlots || kind == Request::kSample) {
    // Wakes no thread, because no other thread waits for the effects of these messages. Slots are
    // usually available immediately, and a batch is sampled in wait_for_reply().
    store_->try_change_open([&](Engine& engine) {
      attempt(engine);
      return kind == Request::kTakeSlots ? served_->answer(engine, *this) : Progress::kNone;
    });
    return true;
  }
  // A closed store still accepts releases and returned batches.
  const bool also_closed = kind == Request::kRelease || kind == Request::kGiveBack;
  bool has_changed = false;
  const bool is_done = store_->change_when(
      deadline,
      [&](Engine& engine) {
        const Progress progress = attempt(engine);
        has_changed = has_changed || progress != Progress::kNone;
        return progress;
      },
      also_closed);
  Checkpointer* const checkpointer = store_->checkpointer();
  const bool is_kept = checkpointer != nullptr && checkpointer->is_sync();
  if (kind == Request::kInsert && has_changed && is_kept) inserts_end_ = checkpointer->ask();
  return is_done;
}

std::span<const std::byte> LocalChannel::wait_for_reply(Deadline deadline) {
  check_process();
  if (num_reply_bytes_ > 0) return peek_reply();
  std::exception_ptr refused;
  store_->change_when(deadline, [&](Engine& engine) {
    Progress progress = Progress::kNone;
    try {
      progress = served_->answer(engine, *this);
    } catch (...) {
      refused = std::current_exception();  // rethrown after other threads are woken
    }
    return num_reply_bytes_ > 0 || refused ? Progress::kDone : progress;
  });
  if (refused) std::rethrow_exception(refused);
  return peek_reply();
}

bool LocalChannel::wait_for_all(Deadline deadline) {
  check_process();
  if (inserts_end_ == 0) return true;
  try {
    return store_->checkpointer()->wait(inserts_end_, deadline);
  } catch (const Error&) {
    inserts_end_ = store_->checkpointer()->ask();  // the checkpoint for the next flush()
    throw;
  }
}

std::byte* LocalChannel::reserve(uint32_t num_bytes) {
  if (num_reply_bytes_ > 0) return nullptr;
  if (reply_.size() < num_bytes) reply_.resize(num_bytes);
  return reply_.data();
}

}  // namespace tengen::store
