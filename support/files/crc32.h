// The checksum of zips (CRC-32 of ISO 3309, reflected, polynomial 0xedb88320).
#pragma once
#include <cstdint>
#include <string_view>

namespace tessera {

// The checksum of bytes that have the checksum `before`, 0 for none, and `bytes` behind them.
uint32_t crc32_of(std::string_view bytes, uint32_t before = 0);

}  // namespace tessera
