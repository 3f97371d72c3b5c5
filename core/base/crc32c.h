#pragma once
// CRC-32C (Castagnoli polynomial 0x1EDC6F41, reflected, initial and final xor all ones).
// Source: RFC 3720, appendix B.4.

#include <cstdint>
#include <string_view>

namespace tengen {

// Of `bytes` following bytes whose CRC is `crc` (0 at the start).
uint32_t crc32c(std::string_view bytes, uint32_t crc = 0);

// The same by table, on any processor; crc32c is held to it by a test.
uint32_t crc32c_portable(std::string_view bytes, uint32_t crc = 0);

}  // namespace tengen
