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

// Calls `work`. Returns the message of what it threw; empty where it threw nothing.
template <class Work>
std::string error_of(Work&& work) noexcept {
  try {
    work();
    return {};
  } catch (...) {
    return message_of(std::current_exception());
  }
}

// Starts a thread for `user`, such as "writer a". `body` must not throw: have error_of() call what
// may. Throws Error where the system has no thread left.
std::thread start_thread(const std::string& user, std::function<void()> body);

}  // namespace tengen
