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

// Each of these makes a system call and owns or disowns its descriptor in one step: no process is
// forked in between. A fork waits for the system call, and for nothing else.
void close_owned(int descriptor);  // does nothing below 0
// Accepts a connection. Returns -1 and sets errno where it fails, to EAGAIN where none waits.
int accept_owned(int listener);
// A copy that is owned too, and CLOEXEC. Returns -1 and sets errno where it fails.
int dup_owned(int descriptor);
// As open(); the file is CLOEXEC.
int open_owned(const char* path, int flags, int mode);

}  // namespace tengen
