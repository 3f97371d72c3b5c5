// Files of rows: truncated rows, full disks and unnamed files.

#include "store/disk/row_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "store/service/service_testing.h"

using namespace tengen;
using namespace tengen::store;

namespace {

constexpr uint64_t kPage = 4096;

void check_rows() {
  const Folder own("rows");
  const std::filesystem::path& folder = own.path;
  alignas(kPage) static std::byte row[2 * kPage];
  alignas(kPage) static std::byte read[2 * kPage];
  const auto fill = [&](int with) { std::memset(row, with, sizeof row); };
  {
    RowFile file(folder / "rows", sizeof row, /*is_hidden=*/false);
    for (int i = 0; i < 3; ++i) {
      fill(i + 1);
      file.write(static_cast<uint64_t>(2 - i), row);
    }
  }
  RowFile file(folder / "rows", sizeof row, /*is_hidden=*/false);
  for (int i = 0; i < 3; ++i) {
    fill(3 - i);
    file.read(static_cast<uint64_t>(i), read);
    TENGEN_CHECK(std::memcmp(row, read, sizeof row) == 0);
  }
  std::filesystem::resize_file(folder / "rows", sizeof row + 100);
  TENGEN_CHECK(file.try_read(0, read).has_value() && !file.try_read(2, read));
  try {
    file.read(2, read);
    TENGEN_CHECK(false);
  } catch (const Error& error) {
    const std::string name = "row 2 of " + (folder / "rows").string();
    TENGEN_CHECK(std::string(error.what()).find(name + " is truncated") != std::string::npos);
  }
  std::signal(SIGXFSZ, SIG_IGN);
  {
    // As on a full disk, the file cannot grow until the limit is removed.
    const SmallFiles small;
    TENGEN_CHECK(!file.try_grow());
    TENGEN_CHECK(throws([&] { file.write(100, row); }));
  }
  TENGEN_CHECK(file.try_grow());
  RowFile hidden(folder / "hidden", sizeof row, /*is_hidden=*/true);
  TENGEN_CHECK(!std::filesystem::exists(folder / "hidden"));
  hidden.write(5, row);
  hidden.read(5, read);
  TENGEN_CHECK(std::memcmp(row, read, sizeof row) == 0);
  std::filesystem::remove_all(folder);
  TENGEN_CHECK(throws([&] { RowFile(folder / "rows", sizeof row, false); }));
}

// Preallocation never makes the file exceed the budget of the disk.
void check_budget() {
  const Folder folder("rows");
  constexpr uint64_t kRows = 2000;
  alignas(kPage) static std::byte row[kPage];
  RowFile file(folder.path / "rows", kPage, /*is_hidden=*/false);
  for (uint64_t i = 0; i < kRows; ++i) {
    file.write(i, row, (kRows - i - 1) * kPage);
    TENGEN_CHECK(std::filesystem::file_size(folder.path / "rows") <= kRows * kPage);
  }
}

// A forked process does not keep the space of an unnamed file allocated.
void check_forked() {
  const Folder folder("rows");
  const RowFile file(folder.path / "hidden", kPage, /*is_hidden=*/true);
  const pid_t child = fork();
  if (child == 0) {
    for (int descriptor = 0; descriptor < 256; ++descriptor) {
      char path[4096];
      const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
      const ssize_t size = readlink(link.c_str(), path, sizeof path);
      if (size > 0 && std::string(path, size).find("/hidden") != std::string::npos) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  TENGEN_CHECK(waitpid(child, &status, 0) == child && status == 0);
}

}  // namespace

int main() {
  check_rows();
  check_budget();
  check_forked();
  return 0;
}
