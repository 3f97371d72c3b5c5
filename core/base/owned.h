#pragma once
// Owned descriptors, such as locks, listening sockets and connections. Forked processes must not
// inherit these: a process that an environment forks may outlive its parent, and would keep them
// open.

namespace tengen {

// Replaces the descriptor with /dev/null in every process forked from now on, whether Python, C or
// a library calls fork(). Processes created with clone() inherit the descriptor until they call
// exec, because owned descriptors are CLOEXEC. Thread-safe. Does nothing if `descriptor` is below 0
// or at least 2^20.
void own_descriptor(int descriptor);
// Ends the ownership of a descriptor. Does nothing if the descriptor is not owned.
void disown_descriptor(int descriptor);

// These functions change the ownership atomically with their system call, so that no process forked
// in between inherits the descriptor. A fork waits for close(), accept() and dup(). close() may
// block for a file on a network.
void close_owned(int descriptor);  // does nothing below 0
// Accepts a connection. On failure returns -1 and sets errno, to EAGAIN if none is waiting.
int accept_owned(int listener);
// Returns a copy that is owned and CLOEXEC. On failure returns -1 and sets errno.
int dup_owned(int descriptor);
// Like open(), with CLOEXEC. If a process was forked in between and may hold the descriptor, opens
// the file again: open() may block on a network, so a fork does not wait for it.
int open_owned(const char* path, int flags, int mode);

}  // namespace tengen
