#include "control/base/hkdf.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "control/base/sha256.h"

namespace gradcube::control {

namespace {

constexpr std::size_t kHmacBlock = 64;

// Of a key, or a hash of one: is wiped at its end.
struct Wiped {
  explicit Wiped(std::string of) : text(std::move(of)) {}
  explicit Wiped(const std::array<std::uint8_t, 32>& digest) : text(digest.begin(), digest.end()) {}
  ~Wiped() { explicit_bzero(text.data(), text.size()); }
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;

  std::string text;
};

}  // namespace

void wipe_stack() {
  std::array<char, 8192> below{};
  explicit_bzero(below.data(), below.size());
}

Secret::~Secret() { explicit_bzero(data(), size()); }

std::string key_id_text(KeyId key) { return fmt::format("{:08x}", key); }

std::array<std::uint8_t, 32> hmac_sha256(std::string_view key, std::string_view message) {
  // Room for all of it: what grows leaves copies behind.
  const auto masked_hash = [&](std::string_view block, unsigned char mask, std::string_view rest) {
    Wiped all{std::string(kHmacBlock + rest.size(), '\0')};
    std::copy(block.begin(), block.end(), all.text.begin());
    for (std::size_t i = 0; i < kHmacBlock; ++i) {
      all.text[i] = static_cast<char>(static_cast<unsigned char>(all.text[i]) ^ mask);
    }
    std::copy(rest.begin(), rest.end(), all.text.begin() + kHmacBlock);
    return sha256(all.text);
  };
  const auto hash_of_both = [&](std::string_view block) {
    const Wiped inner(masked_hash(block, 0x36, message));
    return masked_hash(block, 0x5c, inner.text);
  };
  return key.size() > kHmacBlock ? hash_of_both(Wiped(sha256(key)).text) : hash_of_both(key);
}

std::string hkdf_sha256(std::string_view secret, std::string_view salt, std::string_view info,
                        std::size_t bytes) {
  const Wiped pseudorandom(hmac_sha256(salt, secret));
  std::string all(bytes, '\0');
  std::size_t done = 0;
  std::array<std::uint8_t, 32> last{};
  for (char number = 1; done < bytes; ++number) {
    const std::size_t before = number == 1 ? 0 : last.size();
    Wiped text{std::string(before + info.size() + 1, number)};
    std::copy_n(last.begin(), before, text.text.begin());
    std::copy(info.begin(), info.end(), text.text.begin() + static_cast<std::ptrdiff_t>(before));
    last = hmac_sha256(pseudorandom.text, text.text);
    const std::size_t more = std::min(last.size(), bytes - done);
    std::copy_n(last.begin(), more, all.begin() + static_cast<std::ptrdiff_t>(done));
    done += more;
  }
  explicit_bzero(last.data(), last.size());
  return all;
}

Secret derived_secret(const Secret& from, std::string_view label, std::string_view context) {
  const Wiped bytes(hkdf_sha256({reinterpret_cast<const char*>(from.data()), from.size()},
                                "gradcube", fmt::format("{}{}{}", label, '\0', context),
                                from.size()));
  Secret secret;
  std::copy(bytes.text.begin(), bytes.text.end(), secret.begin());
  wipe_stack();
  return secret;
}

}  // namespace gradcube::control
