#pragma once
// CRC-32C checksums (Castagnoli polynomial 0x1EDC6F41, reflected, initial and final xor all ones).
// Source: RFC 3720, appendix B.4.

#include <cstdint>
#include <string_view>

namespace tengen {

// Returns the CRC-32C of data followed by `bytes`, where `crc` is the CRC-32C of the data.
uint32_t crc32c(std::string_view bytes, uint32_t crc = 0);

// Same as crc32c(), but without special instructions. Public for a test that compares both.
uint32_t crc32c_portable(std::string_view bytes, uint32_t crc = 0);

}  // namespace tengen
