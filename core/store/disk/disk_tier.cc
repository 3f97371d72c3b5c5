#include "store/disk/disk_tier.h"

#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"

namespace tengen::store {
namespace {

// How many rows are under way at once: twice as many as give a disk's full rate, as threads wait
// for a core too.
constexpr int kNumThreads = 32;

uint32_t checksum_of(const engine::Transfer& transfer) {
  return crc32c({reinterpret_cast<const char*>(transfer.memory), transfer.num_bytes});
}

}  // namespace

DiskTier::DiskTier(std::string directory, bool is_hidden, Done done)
    : directory_(std::move(directory)), is_hidden_(is_hidden), done_(std::move(done)) {
  // Opened now only so that an error is seen here and not at the first row.
  RowFile(directory_ + "/rows-" + std::to_string(getpid()) + "-probe", 4096, /*is_hidden=*/true);
  for (int i = 0; i < kNumThreads; ++i) threads_.emplace_back([this] { run(); });
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
  return trouble_;
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
  while (true) {
    condition_.wait(lock, [&] { return is_stopping_ || !jobs_.empty(); });
    if (is_stopping_) return;
    const Job job = jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    const engine::TransferResult result = perform(job);
    if (!result.error.empty()) {
      const std::scoped_lock own(mutex_);
      if (trouble_.empty()) {
        trouble_ = result.error;
        std::fprintf(stderr, "warning: %s\n", result.error.c_str());
      }
    }
    done_(job.transfer, job.is_load, result);
    lock.lock();
  }
}

engine::TransferResult DiskTier::perform(const Job& job) {
  const engine::Transfer& transfer = job.transfer;
  try {
    RowFile& file = file_of(transfer);
    if (!job.is_load) {
      const uint32_t checksum = checksum_of(transfer);
      file.write(transfer.place, transfer.memory);
      return {"", checksum};
    }
    file.read(transfer.place, transfer.memory);
    if (checksum_of(transfer) != transfer.checksum) {
      file.refuse(transfer.place, "is not what was written");
    }
    return {};
  } catch (const Error& error) {
    return {error.what(), 0};
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
