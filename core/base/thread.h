#pragma once
// Threads whose exceptions end neither the process nor other threads.

#include <exception>
#include <functional>
#include <new>
#include <string>
#include <thread>

namespace tengen {

// The message of an exception. Never throws.
std::string message_of(const std::exception_ptr& thrown) noexcept;

// Calls `work`. Returns the message of its exception; empty if it threw none.
template <class Work>
std::string error_of(Work&& work) noexcept {
  try {
    work();
    return {};
  } catch (...) {
    return message_of(std::current_exception());
  }
}

// Starts a thread for `user`, such as "writer a". `body` must not throw: wrap calls that may throw
// in error_of(). Throws Error if the system has no threads left.
std::thread start_thread(const std::string& user, std::function<void()> body);

}  // namespace tengen
