#pragma once
// What another server of the same store must know of a session to go on with it.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "store/session/encoding.h"
#include "store/session/ring_memory.h"

namespace tengen::store {

struct SessionRecord {
  enum class Kind : uint32_t { kWriter, kSampler };
  Kind kind = Kind::kWriter;
  uint32_t number = 0;       // of the writer, or of the sampler's table
  uint32_t num_samples = 0;  // of a sampler's batch
  SessionLayout layout;
  int64_t process = 0;  // the client's process; 0: not known
  std::string name;     // for people

  std::vector<std::byte> encode() const {
    const Fixed fixed{kind,   number, num_samples, static_cast<uint32_t>(name.size()),
                      layout, process};
    std::vector<std::byte> bytes(sizeof fixed + name.size());
    std::memcpy(put(bytes.data(), fixed), name.data(), name.size());
    return bytes;
  }
  // Throws Error for bytes that encode() did not make.
  static SessionRecord decode(std::span<const std::byte> bytes) {
    const auto fixed = read<Fixed>(bytes);
    std::vector<char> name;
    take(bytes.subspan(sizeof fixed), fixed.num_name_bytes, &name);
    return {fixed.kind,   fixed.number,  fixed.num_samples,
            fixed.layout, fixed.process, {name.begin(), name.end()}};
  }

 private:
  struct Fixed {
    Kind kind;
    uint32_t number, num_samples, num_name_bytes;
    SessionLayout layout;
    int64_t process;
  };
};

}  // namespace tengen::store
