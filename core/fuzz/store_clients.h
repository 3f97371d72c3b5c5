#pragma once
// Clients of the fuzz target store_model. Raw clients send messages, valid or not, in any order.
// Library clients use the library of actors and learners, with each transport of a store.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "fuzz/store_scene.h"
#include "store/session/encoding.h"

namespace tengen::fuzz::scene {

// A client that sends its messages without the client library.
class RawClient : public Client {
 public:
  using Client::Client;
  ~RawClient() override { close(); }

 protected:
  // Passes one end of a new connection to `open`, which does not take ownership.
  template <class Open>
  void connect(Open&& open) {
    const std::array<int, 2> ends = ends_of_connection();
    open(ends[0]);
    ::close(ends[0]);
    descriptor_ = ends[1];
  }
  bool is_open() const { return descriptor_ >= 0; }
  void close() {
    if (is_open()) ::close(std::exchange(descriptor_, -1));
  }
  // Sends a message without its last `num_cut` bytes.
  template <class Message>
  void send(Message message, std::string_view rest = {}, bool rest_is_behind = false,
            size_t num_cut = 0) {
    if (!rest_is_behind) message.num_bytes = static_cast<uint32_t>(sizeof message + rest.size());
    ++scene_.num_messages;
    std::string bytes(reinterpret_cast<const char*>(&message), sizeof message);
    bytes += rest;
    bytes.resize(bytes.size() - std::min(bytes.size(), num_cut));
    // Ignores failures, because a rejected connection is closed; receive() then returns false.
    (void)!::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  bool read(void* to, size_t num_bytes) {
    for (auto* at = static_cast<char*>(to); num_bytes > 0;) {
      pollfd one{descriptor_, POLLIN, 0};
      expect(poll(&one, 1, 60'000) == 1, "an answer in time");
      const ssize_t got = recv(descriptor_, at, num_bytes, 0);
      if (got <= 0) return false;
      at += got;
      num_bytes -= static_cast<size_t>(got);
    }
    return true;
  }
  // Receives the next reply of `kind`, with its data after the head in `rest`. Returns false if the
  // session has ended. If the store makes the client wait, ends all other clients.
  bool receive(store::Reply kind, std::string* rest) {
    while (true) {
      store::MessageHead head;
      if (!read(&head, sizeof head)) return false;
      expect(head.num_bytes >= sizeof head && head.num_bytes < (1 << 20), "a reply is whole");
      rest->resize(head.num_bytes - sizeof head);
      if (!read(rest->data(), rest->size())) return false;
      if (head.kind == static_cast<uint32_t>(kind)) return true;
      if (head.kind == static_cast<uint32_t>(store::Reply::kError)) return false;
      if (head.kind == static_cast<uint32_t>(store::Reply::kWaits) && !rest->empty()) {
        scene_.end_others(this);
      }
    }
  }

 private:
  int descriptor_ = -1;
};

enum class Door { kLocal, kHost, kNet };

}  // namespace tengen::fuzz::scene
