#pragma once
// CRC-32C (Castagnoli polynomial 0x1EDC6F41, reflected, initial and final xor all ones).
// Source: RFC 3720, appendix B.4.

#include <cstdint>
#include <string_view>

namespace tengen {

// The CRC of `bytes` appended to bytes with CRC `crc` (0 at the start).
uint32_t crc32c(std::string_view bytes, uint32_t crc = 0);

// The same with a lookup table, on any processor; a test compares crc32c with it.
uint32_t crc32c_portable(std::string_view bytes, uint32_t crc = 0);

}  // namespace tengen
