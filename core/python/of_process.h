#pragma once
// Objects with threads, files or connections of the process that made them.

#include <cstdint>
#include <memory>
#include <utility>

#include "transport/process.h"

namespace tengen {

// Makes an object that a forked process leaves alone: its threads are not there to be joined, and
// its files and sessions are the parent's, which goes on.
template <class T, class... Args>
std::shared_ptr<T> make_of_process(Args&&... args) {
  return {new T(std::forward<Args>(args)...), [num_forks = transport::num_forks()](T* one) {
            if (num_forks == transport::num_forks()) delete one;
          }};
}

}  // namespace tengen
