#include "protocol/frame_error.h"

#include <array>

namespace gradcube::protocol {
namespace {

constexpr std::array<std::string_view, kFrameErrorCount> kNames = {
    "none",         "too_short",   "bad_length", "not_gradcube",     "fragmented",
    "bad_checksum", "bad_version", "bad_type",   "unsupported_type", "bad_hops",
    "bad_address",  "bad_crc",     "bad_mac",
};

}  // namespace

std::string_view name(FrameError error) {
  const auto index = static_cast<std::size_t>(error);
  return index < kNames.size() ? kNames[index] : std::string_view("unknown");
}

}  // namespace gradcube::protocol
