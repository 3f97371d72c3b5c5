// The load of simulated_actors.py, many actors a process, and what it is held against: the
// cheapest server of the same bytes. Messages are those of tengen.inference.central.messages for
// one row.

#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { kRequestBytes = 16, kReplyBytes = 32, kMostEvents = 1024, kMostBodyBytes = 1 << 16 };

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

struct actor {
  int32_t fd;
  uint8_t* body;  // is_first and the inputs where rows travel, else the inputs in shared memory
  int64_t due_ns;
  uint64_t number;
  int64_t received;
  char reply[kReplyBytes];
};

static int ask(struct actor* one, int is_shared, int64_t body_bytes) {
  struct {
    uint32_t kind, wants_state;
    uint64_t number;
  } head = {2, 0, ++one->number};
  memset(one->body, (int)one->number, body_bytes);
  if (!is_shared) one->body[0] = 0;
  struct iovec parts[2] = {{&head, sizeof head}, {one->body, is_shared ? 0 : body_bytes}};
  int64_t left = kRequestBytes + (int64_t)parts[1].iov_len;
  ssize_t sent = writev(one->fd, parts, 2);
  for (left -= sent; sent > 0 && left > 0; left -= sent) {
    sent = write(one->fd, one->body + body_bytes - left, left);
  }
  return sent > 0;
}

// Returns 1 where the answer is whole, 0 where a part is there, -1 where the server has gone or
// answers something else.
static int take(struct actor* one, int64_t answer_bytes) {
  char body[kMostBodyBytes];
  const int64_t left = kReplyBytes + answer_bytes - one->received;
  const int64_t head_left = one->received < kReplyBytes ? kReplyBytes - one->received : 0;
  struct iovec parts[2] = {{one->reply + kReplyBytes - head_left, head_left},
                           {body, left - head_left}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  const ssize_t got = recvmsg(one->fd, &message, MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return 0;
  if (got <= 0) return -1;
  one->received += got;
  if (one->received < kReplyBytes + answer_bytes) return 0;
  uint32_t kind;
  uint64_t number;
  memcpy(&kind, one->reply, sizeof kind);
  memcpy(&number, one->reply + 8, sizeof number);
  one->received = 0;
  return kind == 1 && number == one->number ? 1 : -1;
}

// Has every actor ask, wait for its answer, wait step_ns, and ask again, from begin_ns to end_ns;
// returns when the last answers have come. Tells of each answer when it came, and how long after
// its request was due, which is step_ns after the answer before. Returns their number, or -1.
int64_t load(struct actor* actors, int64_t num_actors, int is_shared, int64_t body_bytes,
             int64_t answer_bytes, int64_t step_ns, int64_t begin_ns, int64_t end_ns,
             int64_t* answered_ns, int64_t* latency_ns, int64_t most) {
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  // Who waits for its step's end, in order, as all steps are of one length.
  struct actor** const idle = malloc(sizeof(struct actor*) * num_actors);
  int64_t first = 0, num_idle = num_actors, num_answers = 0;
  for (int64_t i = 0; i < num_actors; ++i) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = actors + i};
    epoll_ctl(poller, EPOLL_CTL_ADD, actors[i].fd, &event);
    actors[i].due_ns = begin_ns + step_ns * i / num_actors;
    idle[i] = actors + i;
  }
  int is_right = 1;
  int64_t now = now_ns();
  while (is_right && (now < end_ns || num_idle < num_actors)) {
    while (num_idle > 0 && now < end_ns && idle[first]->due_ns <= now) {
      is_right &= ask(idle[first], is_shared, body_bytes);
      first = (first + 1) % num_actors;
      --num_idle;
    }
    now = now_ns();
    int64_t until = now + 1000000000LL;
    if (now < end_ns) {
      until = num_idle > 0 && idle[first]->due_ns < end_ns ? idle[first]->due_ns : end_ns;
    }
    const int64_t left = until > now ? until - now : 0;
    const struct timespec timeout = {left / 1000000000LL, left % 1000000000LL};
    struct epoll_event events[kMostEvents];
    const int count = epoll_pwait2(poller, events, kMostEvents, &timeout, NULL);
    if (count < 0 && errno != EINTR) is_right = 0;
    for (int i = 0; i < count; ++i) {
      struct actor* const one = events[i].data.ptr;
      const int taken = take(one, answer_bytes);
      is_right &= taken >= 0;
      if (taken != 1) continue;
      now = now_ns();
      if (num_answers < most) {
        answered_ns[num_answers] = now;
        latency_ns[num_answers++] = now - one->due_ns;
      }
      one->due_ns = now + step_ns;
      idle[(first + num_idle++) % num_actors] = one;
    }
    now = now_ns();
  }
  free(idle);
  close(poller);
  return is_right ? num_answers : -1;
}

struct peer {
  int64_t received;
  char* request;
};

// Answers whole requests by as many bytes as an answer has, at once, and does nothing else, until
// every actor has gone.
void echo(const int32_t* fds, int64_t num_fds, int64_t request_bytes, int64_t reply_bytes) {
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  struct peer* const peers = calloc(num_fds, sizeof(struct peer));
  char* const reply = calloc(1, reply_bytes);
  reply[0] = 1;
  for (int64_t i = 0; i < num_fds; ++i) {
    peers[i].request = malloc(request_bytes);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
    epoll_ctl(poller, EPOLL_CTL_ADD, fds[i], &event);
  }
  for (int64_t num_open = num_fds; num_open > 0;) {
    struct epoll_event events[kMostEvents];
    const int count = epoll_wait(poller, events, kMostEvents, -1);
    for (int i = 0; i < count; ++i) {
      const uint64_t place = events[i].data.u64;
      struct peer* const one = peers + place;
      const ssize_t got =
          recv(fds[place], one->request + one->received, request_bytes - one->received, 0);
      if (got <= 0) {
        epoll_ctl(poller, EPOLL_CTL_DEL, fds[place], NULL);
        --num_open;
        continue;
      }
      one->received += got;
      if (one->received < request_bytes) continue;
      one->received = 0;
      memcpy(reply + 8, one->request + 8, sizeof(uint64_t));
      send(fds[place], reply, reply_bytes, MSG_NOSIGNAL);
    }
  }
}
