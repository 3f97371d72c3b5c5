#include "store/disk/disk_tier.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/thread.h"

namespace tengen::store {
namespace {

// The rows in flight: twice as many as a disk needs, because threads also wait for a CPU core.
constexpr int kNumThreads = 32;

using Clock = std::chrono::steady_clock;

// The delay before the first check whether a shortage has ended.
constexpr std::chrono::milliseconds kLook{200};
// A quota may leave space that checks find but saves cannot use, so checks become less frequent.
constexpr std::chrono::milliseconds kMaxLook{3200};

// The maximum number of consecutive failed saves that are blamed on rows; after more, the disk
// itself must have failed.
constexpr int kMaxBadRows = 3;

uint32_t checksum_of(const engine::Transfer& transfer) {
  return crc32c({reinterpret_cast<const char*>(transfer.memory), transfer.num_bytes});
}

}  // namespace

DiskTier::DiskTier(std::string directory, bool is_hidden, Done done, Room room)
    : directory_(std::move(directory)),
      is_hidden_(is_hidden),
      done_(std::move(done)),
      room_(std::move(room)) {
  // Opens a row file only to report errors here instead of at the first row.
  RowFile(directory_ + "/rows-" + std::to_string(getpid()) + "-probe", 4096, /*is_hidden=*/true);
  threads_.reserve(kNumThreads);
  try {
    for (int i = 0; i < kNumThreads; ++i) {
      threads_.push_back(start_thread("a store's disk", [this] { run(); }));
    }
  } catch (...) {
    // A tier with fewer threads is slower, but a tier without threads cannot work.
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

std::string DiskTier::sync() {
  std::vector<RowFile*> files;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [pool, file] : files_) files.push_back(file.get());
  }
  return error_of([&] {
    for (const RowFile* file : files) file->sync();
  });
}

std::string DiskTier::trouble() {
  const std::scoped_lock lock(mutex_);
  if (!of_saves_.reason.empty()) return of_saves_.reason;
  return of_loads_.reason.empty() ? trouble_ : of_loads_.reason;
}

void DiskTier::reserve(size_t num_transfers) {
  if (spare_.size() < num_transfers) spare_.resize(num_transfers);
}

void DiskTier::ask(const Job& job) {
  reserve(1);
  spare_.front() = job;
  asked_.splice(asked_.end(), spare_, spare_.begin());
}

void DiskTier::start() noexcept {
  const size_t num_asked = asked_.size();
  if (num_asked == 0) return;
  {
    const std::scoped_lock lock(mutex_);
    jobs_.splice(jobs_.end(), asked_);
  }
  for (size_t i = 0; i < num_asked; ++i) condition_.notify_one();
}

void DiskTier::run() {
  std::unique_lock lock(mutex_);
  Jobs own;
  while (wait_for_job(&lock)) {
    own.splice(own.begin(), jobs_, jobs_.begin());
    Job& job = own.front();
    lock.unlock();
    engine::TransferResult result = perform(job);
    lock.lock();
    if (!job.is_load) doubt_disk(&result);
    note(job, result);
    if (job.is_load && result.is_shortage) {
      // Retries the load later, because otherwise the row would count as lost.
      job.was_put_off = true;
      if (put_off_.empty()) again_at_ = Clock::now() + kLook;
      put_off_.splice(put_off_.end(), own);
      continue;
    }
    lock.unlock();
    done_(job.transfer, job.is_load, result);
    lock.lock();
    // Notes the shortage again, because another thread may have reported space too early.
    if (result.is_shortage) note(job, result);
    own.clear();
  }
}

void DiskTier::doubt_disk(engine::TransferResult* of_save) {
  if (of_save->error.empty()) {
    num_bad_rows_ = 0;
  } else if (!of_save->is_shortage && ++num_bad_rows_ > kMaxBadRows) {
    of_save->is_shortage = true;
  }
}

void DiskTier::note(const Job& job, const engine::TransferResult& result) {
  Shortage& shortage = job.is_load ? of_loads_ : of_saves_;
  if (result.error.empty()) {
    if (!job.is_load) {
      // Other saves may still lack space; look_for_room() finds out.
      shortage.told.clear();
      look_after_ = kLook;
    } else if (job.was_put_off) {
      shortage = {};
    }
    return;
  }
  std::string& known = result.is_shortage ? shortage.reason : trouble_;
  if (result.is_shortage && !job.is_load) short_ = job.transfer;
  if (!known.empty()) return;
  if (!result.is_shortage || result.error != shortage.told) {
    std::fprintf(stderr, "warning: %s\n", result.error.c_str());
  }
  (void)error_of([&] {
    known = result.error;
    if (result.is_shortage) shortage.told = result.error;
  });
  if (known.empty()) known = "out of memory";
  if (result.is_shortage && !job.is_load) look_at_ = Clock::now() + look_after_;
}

bool DiskTier::wait_for_job(std::unique_lock<std::mutex>* lock) {
  const auto is_short = [&] { return !of_saves_.reason.empty() || !put_off_.empty(); };
  while (!is_stopping_) {
    if (is_short()) {
      const Clock::time_point now = Clock::now();
      if (now >= again_at_ && !put_off_.empty()) {
        jobs_.splice(jobs_.end(), put_off_);
        condition_.notify_all();
      }
      if (!of_saves_.reason.empty() && !is_looking_ && now >= look_at_) {
        is_looking_ = true;
        look_for_room(lock);
        is_looking_ = false;
        continue;
      }
    }
    if (!jobs_.empty()) {
      // Another thread checks for space while this one is busy.
      if (is_short()) condition_.notify_one();
      return true;
    }
    if (is_short() && !is_watching_) {
      is_watching_ = true;
      condition_.wait_for(*lock, kLook);
      is_watching_ = false;
    } else {
      condition_.wait(*lock);
    }
  }
  return false;
}

void DiskTier::look_for_room(std::unique_lock<std::mutex>* lock) {
  const engine::Transfer missed = short_;
  look_at_ = Clock::now() + kLook;
  lock->unlock();
  bool has_room = false;
  (void)error_of([&] { has_room = file_of(missed).try_grow(); });
  if (has_room) {
    {
      const std::scoped_lock own(mutex_);
      of_saves_.reason.clear();
      look_after_ = std::min(2 * look_after_, kMaxLook);
    }
    room_();
  }
  lock->lock();
}

engine::TransferResult DiskTier::perform(const Job& job) noexcept {
  try {
    return transfer(job);
  } catch (const std::bad_alloc&) {
    return {message_of(std::current_exception()), 0, true};
  } catch (const ShortageError&) {
    return {message_of(std::current_exception()), 0, true};
  } catch (...) {
    return {message_of(std::current_exception()), 0, false};
  }
}

engine::TransferResult DiskTier::transfer(const Job& job) {
  const engine::Transfer& transfer = job.transfer;
  RowFile& file = file_of(transfer);
  if (!job.is_load) {
    const uint32_t checksum = checksum_of(transfer);
    file.write(transfer.place, transfer.memory, transfer.room_bytes);
    return {"", checksum};
  }
  file.read(transfer.place, transfer.memory);
  if (checksum_of(transfer) != transfer.checksum) {
    file.refuse(transfer.place, "differs from what was written");
  }
  return {};
}

RowFile& DiskTier::file_of(const engine::Transfer& transfer) {
  const std::scoped_lock lock(mutex_);
  const auto known = files_.find(transfer.pool);
  if (known != files_.end()) return *known->second;
  std::string path = rows_path(directory_, transfer.pool);
  if (is_hidden_) path.append("-").append(std::to_string(getpid()));
  auto file = std::make_unique<RowFile>(path, transfer.num_bytes, is_hidden_);
  return *files_.emplace(transfer.pool, std::move(file)).first->second;
}

}  // namespace tengen::store
