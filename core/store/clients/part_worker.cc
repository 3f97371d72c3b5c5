#include "store/clients/part_worker.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <utility>

#include "base/thread.h"

namespace tengen::store {
namespace {

// Gives this thread the policy SCHED_BATCH. Otherwise the system may preempt the thread that wakes
// this one, which would then wait for the work after all.
void let_others_go_first() {
#if defined(SCHED_BATCH)
  const sched_param parameters{};
  (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &parameters);
#endif
}

}  // namespace

PartWorker::~PartWorker() {
  if (!shared_) return;
  if (process_ != ::getpid()) {
    // A forked process does not have this thread, and nobody would release the lock if it is held.
    (void)shared_.release();
    return;
  }
  {
    const std::scoped_lock lock(shared_->mutex);
    shared_->is_over = true;
    shared_->num_parts = shared_->num_begun;
    shared_->has_work.notify_one();
  }
  shared_->thread.join();
}

void PartWorker::begin(uint32_t num_parts, std::function<void(uint32_t)> work) {
  if (!shared_) {
    auto made = std::make_unique<Shared>();
    made->thread = start_thread("a sampler", [shared = made.get()] {
      let_others_go_first();
      shared->run();
    });
    shared_ = std::move(made);
    process_ = ::getpid();
  }
  {
    const std::scoped_lock lock(shared_->mutex);
    shared_->work = std::move(work);
    shared_->num_parts = num_parts;
    shared_->num_begun = 0;
    shared_->num_done = 0;
  }
  shared_->has_work.notify_one();
}

void PartWorker::finish() {
  if (!shared_) return;
  std::unique_lock lock(shared_->mutex);
  shared_->do_parts(&lock);
  shared_->is_done.wait(lock, [&] { return shared_->num_done == shared_->num_parts; });
}

bool PartWorker::is_done() const {
  if (!shared_) return true;
  const std::scoped_lock lock(shared_->mutex);
  return shared_->num_done == shared_->num_parts;
}

void PartWorker::Shared::do_parts(std::unique_lock<std::mutex>* lock) {
  while (num_begun < num_parts) {
    const uint32_t part = num_begun++;
    lock->unlock();
    work(part);
    lock->lock();
    ++num_done;
  }
}

void PartWorker::Shared::run() {
  std::unique_lock lock(mutex);
  while (!is_over) {
    do_parts(&lock);
    if (num_done == num_parts) is_done.notify_one();
    has_work.wait(lock, [&] { return is_over || num_begun < num_parts; });
  }
}

}  // namespace tengen::store
