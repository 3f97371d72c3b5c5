#include "store/disk/disk_tier.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <new>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/thread.h"

namespace tengen::store {
namespace {

// How many rows are under way at once: twice as many as give a disk's full rate, as threads wait
// for a core too.
constexpr int kNumThreads = 32;

// How often the disk is asked for room, after it had none.
constexpr std::chrono::milliseconds kLook{200};

uint32_t checksum_of(const engine::Transfer& transfer) {
  return crc32c({reinterpret_cast<const char*>(transfer.memory), transfer.num_bytes});
}

}  // namespace

DiskTier::DiskTier(std::string directory, bool is_hidden, Done done, Room room)
    : directory_(std::move(directory)),
      is_hidden_(is_hidden),
      done_(std::move(done)),
      room_(std::move(room)) {
  // Opened now only so that an error is seen here and not at the first row.
  RowFile(directory_ + "/rows-" + std::to_string(getpid()) + "-probe", 4096, /*is_hidden=*/true);
  threads_.reserve(kNumThreads);
  try {
    for (int i = 0; i < kNumThreads; ++i) {
      threads_.push_back(start_thread("a store's disk", [this] { run(); }));
    }
  } catch (...) {
    // Fewer are slower; without any there is no disk.
    if (threads_.empty()) throw;
  }
}

void DiskTier::stop() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopping_ = true;
  }
  condition_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void DiskTier::sync() {
  std::vector<RowFile*> files;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [pool, file] : files_) files.push_back(file.get());
  }
  for (const RowFile* file : files) file->sync();
}

std::string DiskTier::trouble() {
  const std::scoped_lock lock(mutex_);
  return shortage_.empty() ? trouble_ : shortage_;
}

void DiskTier::start() {
  if (asked_.empty()) return;
  {
    const std::scoped_lock lock(mutex_);
    jobs_.insert(jobs_.end(), asked_.begin(), asked_.end());
  }
  for (size_t i = 0; i < asked_.size(); ++i) condition_.notify_one();
  asked_.clear();
}

void DiskTier::run() {
  std::unique_lock lock(mutex_);
  while (wait_for_job(&lock)) {
    const Job job = jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    const engine::TransferResult result = perform(job);
    lock.lock();
    note(result);
    lock.unlock();
    done_(job.transfer, job.is_load, result);
    lock.lock();
    // Again: a thread that found room meanwhile has said so before the store knew of this.
    if (result.is_shortage) note(result);
  }
}

void DiskTier::note(const engine::TransferResult& result) {
  std::string& known = result.is_shortage ? shortage_ : trouble_;
  if (result.error.empty() || !known.empty()) return;
  std::fprintf(stderr, "warning: %s\n", result.error.c_str());
  (void)error_of([&] { known = result.error; });
  if (known.empty()) known = "out of memory";
}

bool DiskTier::wait_for_job(std::unique_lock<std::mutex>* lock) {
  const auto is_work = [&] { return is_stopping_ || !jobs_.empty(); };
  while (!is_work()) {
    if (shortage_.empty() || is_looking_) {
      condition_.wait(*lock);
      continue;
    }
    is_looking_ = true;
    if (!condition_.wait_for(*lock, kLook, is_work)) look_for_room(lock);
    is_looking_ = false;
  }
  return !is_stopping_;
}

void DiskTier::look_for_room(std::unique_lock<std::mutex>* lock) {
  RowFile* const file = short_;
  lock->unlock();
  const bool has_room = file == nullptr || file->try_grow();
  if (has_room) {
    {
      const std::scoped_lock own(mutex_);
      shortage_.clear();
    }
    room_();
  }
  lock->lock();
}

// A load that fails for want of descriptors or memory waits, as what cannot be read counts as lost.
engine::TransferResult DiskTier::perform(const Job& job) noexcept {
  while (true) {
    engine::TransferResult result;
    try {
      return transfer(job);
    } catch (const std::bad_alloc&) {
      result = {message_of(std::current_exception()), 0, true};
    } catch (const ShortageError&) {
      result = {message_of(std::current_exception()), 0, true};
    } catch (...) {
      return {message_of(std::current_exception()), 0, false};
    }
    {
      const std::scoped_lock lock(mutex_);
      if (!job.is_load || is_stopping_) return result;
    }
    std::this_thread::sleep_for(kLook);
  }
}

engine::TransferResult DiskTier::transfer(const Job& job) {
  const engine::Transfer& transfer = job.transfer;
  if (job.is_load) {
    RowFile& file = file_of(transfer);
    file.read(transfer.place, transfer.memory);
    if (checksum_of(transfer) != transfer.checksum) {
      file.refuse(transfer.place, "is not what was written");
    }
    return {};
  }
  RowFile* file = nullptr;
  try {
    const uint32_t checksum = checksum_of(transfer);
    file = &file_of(transfer);
    file->write(transfer.place, transfer.memory);
    return {"", checksum};
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    short_ = file;
    throw;
  }
}

RowFile& DiskTier::file_of(const engine::Transfer& transfer) {
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<RowFile>& file = files_[transfer.pool];
  if (!file) {
    std::string path = rows_path(directory_, transfer.pool);
    if (is_hidden_) path.append("-").append(std::to_string(getpid()));
    file = std::make_unique<RowFile>(path, transfer.num_bytes, is_hidden_);
  }
  return *file;
}

}  // namespace tengen::store
