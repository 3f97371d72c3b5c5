#pragma once
// Owned descriptors, such as locks, listening sockets and connections. Forked processes must not
// inherit these descriptors, because a process that an environment forks may outlive its parent and
// would keep them open.

namespace tengen {

// Replaces `descriptor` with /dev/null in every process that is forked later, whether Python, C or
// a library calls fork(). Processes created with clone() inherit the descriptor until they call
// exec, because owned descriptors are CLOEXEC. Thread-safe. Does nothing if `descriptor` is below 0
// or at least 2^20.
void own_descriptor(int descriptor);
// Ends the ownership of `descriptor`. Does nothing if it is not owned.
void disown_descriptor(int descriptor);

// The functions below change the ownership atomically with their system call, so that no process
// forked in between inherits the descriptor. A fork waits for close(), accept() and dup() to
// return. close() may block for a file on a network file system.
void close_owned(int descriptor);  // does nothing if negative
// Accepts a connection. On failure returns -1 and sets errno (EAGAIN: no connection is waiting).
int accept_owned(int listener);
// Returns an owned duplicate of `descriptor`, with CLOEXEC. On failure returns -1 and sets errno.
int dup_owned(int descriptor);
// Like open(), with CLOEXEC and ownership. Does not make a fork wait, because open() may block on a
// network file system. If a process was forked meanwhile, opens the file again.
int open_owned(const char* path, int flags, int mode);

}  // namespace tengen
