// Tests of exceptions in threads, and of changes that complete although memory is exhausted.

#include "base/thread.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/steady.h"
#include "base/testing.h"

using namespace tengen;

namespace {

void check_errors() {
  TENGEN_CHECK(error_of([] {}).empty());
  TENGEN_CHECK(error_of([] { throw Error("one (1) must be two"); }) == "one (1) must be two");
  TENGEN_CHECK(error_of([] { throw 1; }) == "unknown error");
  TENGEN_CHECK(error_of([] { throw std::bad_alloc(); }).find("ulimit -v") != std::string::npos);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
bool can_allocate(size_t num_bytes) {
  return error_of([&] { (void)std::make_unique<char[]>(num_bytes); }).empty();
}

// Allocates all memory, in blocks that malloc requests individually from the system.
void use_up(std::vector<std::unique_ptr<char[]>>* blocks) {
  for (size_t size = size_t{16} << 20; size >= size_t{1} << 18; size /= 2) {
    while (error_of([&] { blocks->push_back(std::make_unique<char[]>(size)); }).empty()) {
    }
  }
}

// Runs in a separate process with limited memory.
void check_reserve() {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::unique_ptr<char[]>> blocks;
    blocks.reserve(100000);
    TENGEN_CHECK(Steady::has_reserve());
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = rlim_t{1} << 30;
    setrlimit(RLIMIT_AS, &limit);
    use_up(&blocks);
    TENGEN_CHECK(!can_allocate(size_t{1} << 20));
    {
      const Steady steady;
      TENGEN_CHECK(can_allocate(size_t{1} << 20));
      TENGEN_CHECK(!can_allocate(size_t{1} << 30));
    }
    use_up(&blocks);
    TENGEN_CHECK(!Steady::has_reserve());
    TENGEN_CHECK(!error_of([] { Steady::check_reserve(); }).empty());
    blocks.clear();
    TENGEN_CHECK(Steady::has_reserve());
    _exit(0);
  }
  int status = 0;
  TENGEN_CHECK(waitpid(child, &status, 0) == child && status == 0);
}
#else
void check_reserve() {}  // sanitizers need more memory than the limit allows
#endif

}  // namespace

int main() {
  check_errors();
  check_reserve();
  return 0;
}
