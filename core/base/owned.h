#pragma once
// Descriptors that mean ownership: a lock, a listening socket, a connection whose end tells the
// other side that this process has gone. A process that this one forks has no part in them, or they
// would live on in it: an environment may fork a process that outlives its parent.

namespace tengen {

// From here on a forked process has /dev/null under this number, whoever calls fork(): Python, C, a
// library. Not where a process is made by clone() without fork() and does not exec; descriptors are
// CLOEXEC besides. Thread-safe. Does nothing below 0, and for numbers beyond a million.
void own_descriptor(int descriptor);
// Says that the descriptor is somebody else's from here on. Does nothing for one that is not owned.
void disown_descriptor(int descriptor);

// Each of these owns or disowns its descriptor in one step with the system call: no process that is
// forked meanwhile has it. A fork waits for close() and accept(), which do not wait for sockets and
// pipes; for a file of a network close() may.
void close_owned(int descriptor);  // does nothing below 0
// Accepts a connection. Returns -1 and sets errno where it fails, to EAGAIN where none waits.
int accept_owned(int listener);
// A copy that is owned too, and CLOEXEC. Returns -1 and sets errno where it fails.
int dup_owned(int descriptor);
// As open(); the file is CLOEXEC. Opens it again where a process was forked meanwhile, which may
// keep the first: open() may wait for a network, and a fork does not wait for open().
int open_owned(const char* path, int flags, int mode);

}  // namespace tengen
