#include "transport/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>

#include "base/testing.h"
#include "transport/small_folder_testing.h"

using namespace tengen;
using transport::SharedMemory;

namespace {

constexpr uint64_t kBytes = 3 << 20;

// Returns a path that does not exist, in this or any other run.
std::string free_path() {
  const std::string name = "tengen-memory-" + std::to_string(getpid());
  return (std::filesystem::temp_directory_path() / name).string();
}

// Returns a path in a memory file system, if there is one.
std::string free_memory_path() {
  const std::string memory = "/dev/shm";
  if (!std::filesystem::is_directory(memory)) return free_path();
  return memory + "/tengen-memory-" + std::to_string(getpid());
}

bool has_all(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && status.st_blocks * 512 >= status.st_size;
}

// Returns the descriptor that the next opened file would get.
int next_descriptor() {
  const int number = dup(STDERR_FILENO);
  close(number);
  return number;
}

bool is_mapped(std::byte* data) { return msync(data, kBytes, MS_ASYNC) == 0; }

// Returns the message of the Error that `f` throws, or an empty string if it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// A new file is complete and zeroed, and only its owner can access it.
void check_file() {
  const std::string path = free_path();
  const SharedMemory memory = SharedMemory::create(path, kBytes);
  struct stat status;
  TENGEN_CHECK(stat(path.c_str(), &status) == 0 && (status.st_mode & 0777) == 0600);
  TENGEN_CHECK(has_all(path));
  TENGEN_CHECK(std::all_of(memory.data(), memory.data() + kBytes,
                           [](std::byte byte) { return byte == std::byte{0}; }));
  TENGEN_CHECK(
      contains(error_of([&] { SharedMemory::create(path, kBytes); }), "cannot be created"));
  std::filesystem::resize_file(path, 0);
  TENGEN_CHECK(contains(error_of([&] { SharedMemory::open(path); }), "0 bytes) must have 1;"));
  unlink(path.c_str());
  TENGEN_CHECK(contains(error_of([&] { SharedMemory::open(path); }), "cannot be opened"));
}

// Two mappings of a file share their bytes; they stay valid, and no descriptor stays open.
void check_two_mappings() {
  const std::string path = free_path();
  const int descriptor = next_descriptor();
  {
    const SharedMemory one = SharedMemory::create(path, kBytes);
    const SharedMemory two = SharedMemory::open(path);
    TENGEN_CHECK(two.path() == path && two.num_bytes() == kBytes);
    one.data()[kBytes - 1] = std::byte{42};
    two.data()[0] = std::byte{43};
    TENGEN_CHECK(two.data()[kBytes - 1] == std::byte{42} && one.data()[0] == std::byte{43});
    TENGEN_CHECK(next_descriptor() == descriptor);
  }
  TENGEN_CHECK(SharedMemory::open(path).data()[0] == std::byte{43});
  unlink(path.c_str());
}

// A mapping lives as long as the object that it was moved into.
void check_moves() {
  const std::string path = free_path();
  SharedMemory first = SharedMemory::create(path, kBytes);
  unlink(path.c_str());
  std::byte* const data = first.data();
  SharedMemory second = std::move(first);
  TENGEN_CHECK(second.data() == data && second.num_bytes() == kBytes && second.path() == path);
  TENGEN_CHECK(is_mapped(data));
  second = SharedMemory::anonymous(2 * kBytes);
  TENGEN_CHECK(second.num_bytes() == 2 * kBytes && second.path().empty());
  TENGEN_CHECK(second.data() != data && !is_mapped(data));
}

// A lack of space is detected at creation, and leaves no file.
void check_no_room() {
  const std::string path = free_path();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {kBytes / 2, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = error_of([&] { SharedMemory::create(path, kBytes); });
  setrlimit(RLIMIT_FSIZE, &before);
  TENGEN_CHECK(contains(error, "needs 3 MiB, more than its file system has free"));
  TENGEN_CHECK(!std::filesystem::exists(path));
}

// While other processes fill the file system, created memory is allocated to the last byte.
void check_small_folder() {
  transport::in_small_folder(4 * kBytes, [](const std::string& folder) {
    TENGEN_CHECK(contains(error_of([&] { SharedMemory::create(folder + "/all", 5 * kBytes); }),
                          "enlarge it"));
    const SharedMemory first = SharedMemory::create(folder + "/first", 2 * kBytes);
    const int others = open((folder + "/others").c_str(), O_WRONLY | O_CREAT, 0600);
    const std::string bytes(kBytes, 'x');
    while (write(others, bytes.data(), bytes.size()) > 0) {
    }
    TENGEN_CHECK(contains(error_of([&] { SharedMemory::create(folder + "/more", kBytes); }),
                          "needs 3 MiB, more than its file system has free"));
    const SharedMemory same = SharedMemory::open(folder + "/first");
    const std::string holes = folder + "/holes";
    close(open(holes.c_str(), O_WRONLY | O_CREAT, 0600));
    std::filesystem::resize_file(holes, kBytes);
    TENGEN_CHECK(contains(error_of([&] { SharedMemory::open(holes); }), "enlarge it"));
    std::fill_n(first.data(), 2 * kBytes, std::byte{1});
    TENGEN_CHECK(std::count(same.data(), same.data() + 2 * kBytes, std::byte{1}) == 2 * kBytes);
  });
}

// Signals, such as a profiler's timer, do not make an allocation fail.
void check_signals() {
  const std::string path = free_memory_path();
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 200}, {0, 200}};
  const itimerval never = {};
  setitimer(ITIMER_REAL, &often, nullptr);
  std::string error;
  for (int i = 0; i < 100 && error.empty(); ++i) {
    error = error_of([&] { SharedMemory::create(path, kBytes / 2); });
    unlink(path.c_str());
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  TENGEN_CHECK(error.empty());
}

// A killed process may leave a `.part` as a second name of its memory, which stays intact.
void check_left_part() {
  const std::string path = free_path();
  const SharedMemory first = SharedMemory::create(path, kBytes);
  std::filesystem::create_hard_link(path, path + ".part");
  unlink(path.c_str());
  const SharedMemory second = SharedMemory::create(path, kBytes);
  second.data()[0] = std::byte{2};
  TENGEN_CHECK(std::all_of(first.data(), first.data() + kBytes,
                           [](std::byte byte) { return byte == std::byte{0}; }));
  TENGEN_CHECK(!std::filesystem::exists(path + ".part"));
  unlink(path.c_str());
}

// A shorter file of another process is rejected. A file with holes, as in copies, is filled.
void check_files_of_others() {
  const std::string path = free_memory_path();
  close(open(path.c_str(), O_WRONLY | O_CREAT, 0600));
  std::filesystem::resize_file(path, kBytes);
  TENGEN_CHECK(!has_all(path));
  TENGEN_CHECK(contains(error_of([&] { SharedMemory::open(path, kBytes + 1); }), "another store"));
  TENGEN_CHECK(SharedMemory::open(path, kBytes).num_bytes() == kBytes && has_all(path));
  unlink(path.c_str());
}

// A process that is killed while it creates files leaves complete ones and blocks nobody.
void check_kills() {
  const std::string path = free_path();
  int num_there = 0;
  for (int round = 0; round < 60; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // in case the parent does not live to kill it
      while (true) {
        SharedMemory::create(path, kBytes);
        usleep(1000);
        unlink(path.c_str());
      }
    }
    usleep(500 + static_cast<useconds_t>(round) * 97);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    num_there += std::filesystem::exists(path) ? 1 : 0;
    TENGEN_CHECK(SharedMemory::adopt(path, kBytes).num_bytes() == kBytes);
    TENGEN_CHECK(
        contains(error_of([&] { SharedMemory::adopt(path, 2 * kBytes); }), "another size"));
    unlink(path.c_str());
  }
  TENGEN_CHECK(num_there > 0 && num_there < 60);
  unlink((path + ".part").c_str());
}

}  // namespace

int main() {
  check_kills();
  check_file();
  check_two_mappings();
  check_moves();
  check_no_room();
  check_small_folder();
  check_signals();
  check_left_part();
  check_files_of_others();
  return 0;
}
