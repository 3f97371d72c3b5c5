#include "base/thread.h"

#include <system_error>
#include <utility>

#include "base/error.h"

namespace tengen {

std::string message_of(const std::exception_ptr& thrown) noexcept {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    try {
      return "memory (of the process) is used up; request less at once, or raise ulimit -v";
    } catch (...) {
      return "out of memory";  // short enough to need no allocation
    }
  } catch (const std::exception& error) {
    try {
      return error.what();
    } catch (...) {
      return "out of memory";
    }
  } catch (...) {
    return "unknown error";
  }
}

std::thread start_thread(const std::string& user, std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    throw Error("thread (of " + user + ") cannot be started: " + error.code().message() +
                "; close other clients, or raise ulimit -u");
  }
}

}  // namespace tengen
