#pragma once
// Owned descriptors: a lock, a listening socket, a connection whose end shows the other side that
// this process has gone. Forked processes must not inherit these, because a fork may outlive its
// parent (an environment may do this).

namespace tengen {

// From now on, forked processes get /dev/null under this number, whoever calls fork(): Python, C, a
// library. This does not cover processes made with clone() without fork() and without exec; the
// descriptors are CLOEXEC too. Thread-safe. Does nothing for numbers below 0 or beyond a million.
void own_descriptor(int descriptor);
// Ends the ownership of a descriptor. Does nothing for one that is not owned.
void disown_descriptor(int descriptor);

// Each of these changes the ownership atomically with its system call: no process forked in between
// inherits the descriptor. A fork waits for close() and accept(), which do not block for sockets
// and pipes; close() may block for a file on a network.
void close_owned(int descriptor);  // does nothing below 0
// Accepts a connection. On failure returns -1 and sets errno, to EAGAIN if none is waiting.
int accept_owned(int listener);
// Returns a copy that is owned and CLOEXEC. On failure returns -1 and sets errno.
int dup_owned(int descriptor);
// Like open(), with CLOEXEC. If a process was forked in between and may hold the descriptor, opens
// the file again: open() may block on a network, so a fork does not wait for it.
int open_owned(const char* path, int flags, int mode);

}  // namespace tengen
