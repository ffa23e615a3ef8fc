#include "control/base/hkdf.h"

#include <algorithm>
#include <fmt/format.h>

#include "control/base/sha256.h"

namespace gradcube::control {

namespace {

constexpr std::size_t kHmacBlock = 64;

std::string text_of(const std::array<std::uint8_t, 32>& digest) {
  return {digest.begin(), digest.end()};
}

}  // namespace

std::array<std::uint8_t, 32> hmac_sha256(std::string_view key, std::string_view message) {
  std::string block = key.size() > kHmacBlock ? text_of(sha256(key)) : std::string(key);
  block.resize(kHmacBlock);
  const auto masked = [&block](unsigned char mask) {
    std::string text = block;
    for (char& letter : text) letter = static_cast<char>(static_cast<unsigned char>(letter) ^ mask);
    return text;
  };
  const std::string inner = text_of(sha256(masked(0x36).append(message)));
  return sha256(masked(0x5c).append(inner));
}

std::string hkdf_sha256(std::string_view secret, std::string_view salt, std::string_view info,
                        std::size_t bytes) {
  const std::string pseudorandom = text_of(hmac_sha256(salt, secret));
  std::string all;
  std::string last;
  for (char number = 1; all.size() < bytes; ++number) {
    last = text_of(hmac_sha256(pseudorandom, last.append(info).append(1, number)));
    all += last;
  }
  all.resize(bytes);
  return all;
}

Secret derived_secret(const Secret& from, std::string_view label, std::string_view context) {
  const std::string bytes =
      hkdf_sha256({reinterpret_cast<const char*>(from.data()), from.size()}, "gradcube",
                  fmt::format("{}{}{}", label, '\0', context), from.size());
  Secret secret;
  std::copy(bytes.begin(), bytes.end(), secret.begin());
  return secret;
}

}  // namespace gradcube::control
