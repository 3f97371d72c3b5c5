#include "store/session/host_session.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/testing.h"
#include "store/session/ring_memory.h"
#include "transport/shared_memory.h"

using namespace tengen;
using namespace tengen::store;

namespace {

// A server that goes on takes over the memory of its sessions: also one that the server before was
// killed over, which no client has; but none of another version.
void check_versions_of_memory() {
  std::string folder = (std::filesystem::temp_directory_path() / "tengen-XXXXXX").string();
  TENGEN_CHECK(mkdtemp(folder.data()) != nullptr);
  const SessionLayout layout{4096, 4096};
  const SessionRecord record{SessionRecord::Kind::kWriter, 0, 0, layout, 0, "writer a"};
  const engine::SessionProgress progress{};
  for (const uint32_t version : {0u, kRingVersion, kRingVersion + 1}) {
    const std::string path = folder + "/session";
    {
      const auto memory = transport::SharedMemory::create(path, layout.num_bytes());
      reinterpret_cast<SessionHeader*>(memory.data())->version.store(version);
    }
    const bool is_refused = throws([&] {
      const HostSession session(1, record, path, &progress);
      TENGEN_CHECK(!session.is_taken() && !session.is_over());
    });
    TENGEN_CHECK(is_refused == (version > kRingVersion));
    if (!is_refused) continue;  // the memory has left with its session
    const auto memory = transport::SharedMemory::open(path, layout.num_bytes());
    const auto* const header = reinterpret_cast<const SessionHeader*>(memory.data());
    TENGEN_CHECK(header->version.load() == version);
    std::filesystem::remove(path);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace

int main() {
  check_versions_of_memory();
  return 0;
}
