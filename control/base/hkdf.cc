#include "control/base/hkdf.h"

#include <cstring>
#include <fmt/format.h>
#include <new>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "control/base/errors.h"

namespace gradcube::control {
namespace {

// libcrypto has its own memory: who found no room there tries again, as with ours.
void require_computed(const void* digest) {
  if (digest != nullptr) return;
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (error == 0 || ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE) throw std::bad_alloc();
  throw SetupError("libcrypto computes no SHA-256: see its configuration, openssl.cnf");
}

Secret hmac_sha256(std::string_view key, std::string_view message) {
  Secret code;
  require_computed(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                        reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                        code.data(), nullptr));
  return code;
}

std::string_view bytes_of(const Secret& secret) {
  return {reinterpret_cast<const char*>(secret.data()), secret.size()};
}

}  // namespace

void wipe_stack() {
  std::array<char, 8192> below{};
  explicit_bzero(below.data(), below.size());
}

Secret::~Secret() { explicit_bzero(data(), size()); }

std::string key_id_text(KeyId key) { return fmt::format("{:08x}", key); }

std::array<std::uint8_t, 32> sha256(std::string_view bytes) {
  std::array<std::uint8_t, 32> digest{};
  require_computed(
      SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data()));
  return digest;
}

Secret derived_secret(const Secret& from, std::string_view label, std::string_view context) {
  const Secret extracted = hmac_sha256("gradcube", bytes_of(from));
  // HKDF numbers the blocks that it makes: a secret is the first.
  const Secret secret =
      hmac_sha256(bytes_of(extracted), fmt::format("{}{}{}{}", label, '\0', context, '\1'));
  wipe_stack();
  return secret;
}

}  // namespace gradcube::control
