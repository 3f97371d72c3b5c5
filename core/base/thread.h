#pragma once
// Helpers to start threads, and to catch exceptions in threads.

#include <exception>
#include <functional>
#include <new>
#include <string>
#include <thread>

namespace tengen {

// Returns the message of the exception `thrown`. Never throws.
std::string message_of(const std::exception_ptr& thrown) noexcept;

// Calls `work` and returns the message of its exception, or an empty string if it throws none.
template <class Work>
std::string error_of(Work&& work) noexcept {
  try {
    work();
    return {};
  } catch (...) {
    return message_of(std::current_exception());
  }
}

// Starts a thread that runs `body`, which must not throw; wrap calls that may throw in error_of().
// `user` is the owner for error messages, such as "writer a". Throws Error if the system refuses.
std::thread start_thread(const std::string& user, std::function<void()> body);

}  // namespace tengen
