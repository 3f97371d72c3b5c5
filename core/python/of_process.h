#pragma once
// Objects with threads, files or connections that belong to the process that created them.

#include <cstdint>
#include <memory>
#include <utility>

#include "transport/process.h"

namespace tengen {

// Creates an object that a forked process never destroys, because its threads do not exist there,
// and the parent continues to use its files and sessions.
template <class T, class... Args>
std::shared_ptr<T> make_of_process(Args&&... args) {
  return {new T(std::forward<Args>(args)...), [num_forks = transport::num_forks()](T* one) {
            if (num_forks == transport::num_forks()) delete one;
          }};
}

}  // namespace tengen
