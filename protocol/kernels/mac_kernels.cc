#include "protocol/kernels/mac_kernels.h"

#if defined(__x86_64__)
#include <intel-ipsec-mb.h>
#include <memory>
#include <new>
#include <stdexcept>

#include "protocol/kernels/ghash_vpclmul.h"
#else
#include <algorithm>

#include "protocol/kernels/mac_portable.h"
#endif

namespace gradcube::protocol {

namespace {

std::uint64_t first_half(const MacBlock& block) {
  std::uint64_t half = 0;
  for (std::size_t i = 8; i > 0; --i) half = half << 8 | block[i - 1];
  return half;
}

}  // namespace

#if defined(__x86_64__)

namespace {

// A manager has them for this CPU. They need none of its state.
struct Functions {
  aes_gcm_pre_t expand_hash_key;
  ghash_t hash;
  keyexp_t expand_cipher_key;
  aes_cfb_t encrypt;
};

Functions choose() {
  const std::unique_ptr<IMB_MGR, decltype(&free_mb_mgr)> manager(alloc_mb_mgr(0), free_mb_mgr);
  if (manager == nullptr) throw std::bad_alloc();
  init_mb_mgr_auto(manager.get(), nullptr);
  Functions found{manager->ghash_pre, manager->ghash, manager->keyexp_128, manager->aes128_cfb_one};
  if (found.expand_hash_key == nullptr || found.hash == nullptr ||
      found.expand_cipher_key == nullptr || found.encrypt == nullptr) {
    throw std::runtime_error("ipsec-mb, which makes the MACs of frames, does not know this CPU");
  }
  // With AVX-512 it hashes 64 bytes at once, else 16.
  const bool can_32 = __builtin_cpu_supports("avx2") != 0 &&
                      __builtin_cpu_supports("vpclmulqdq") != 0 &&
                      __builtin_cpu_supports("pclmul") != 0;
  if (can_32 && __builtin_cpu_supports("avx512f") == 0) {
    found.expand_hash_key = [](const void* key, gcm_key_data* table) {
      expand_ghash_key(static_cast<const std::uint8_t*>(key),
                       reinterpret_cast<std::uint8_t*>(table));
    };
    found.hash = [](const gcm_key_data* table, const void* bytes, std::uint64_t length, void* hash,
                    std::uint64_t) {
      extend_ghash(reinterpret_cast<const std::uint8_t*>(table),
                   static_cast<const std::uint8_t*>(bytes), length,
                   static_cast<std::uint8_t*>(hash));
    };
  }
  return found;
}

// Set with the first key, so that programs without one do not pay for it.
Functions chosen;

}  // namespace

MacKernel::MacKernel(const MacBlock& hash_key, const MacBlock& cipher_key) {
  static_assert(sizeof(gcm_key_data) <= kHashTableBytes && alignof(gcm_key_data) <= 64);
  static_assert(kGhashTableBytes <= sizeof(gcm_key_data));
  static const Functions functions = chosen = choose();
  functions.expand_hash_key(hash_key.data(), new (hash_table_.data()) gcm_key_data);
  alignas(16) std::array<std::uint8_t, kRoundKeyBytes> to_decrypt;
  functions.expand_cipher_key(cipher_key.data(), round_keys_.data(), to_decrypt.data());
}

std::uint64_t MacKernel::operator()(std::span<const std::uint8_t> first,
                                    std::span<const std::uint8_t> second,
                                    const MacBlock& block) const {
  const auto* table = reinterpret_cast<const gcm_key_data*>(hash_table_.data());
  alignas(16) MacBlock hash{};
  if (!first.empty()) chosen.hash(table, first.data(), first.size(), hash.data(), hash.size());
  if (!second.empty()) chosen.hash(table, second.data(), second.size(), hash.data(), hash.size());
  for (std::size_t i = 0; i < block.size(); ++i) hash[i] ^= block[i];
  // One block of CFB over zeros is the encrypted initialisation vector.
  alignas(16) const MacBlock zeros{};
  alignas(16) MacBlock code;
  chosen.encrypt(code.data(), zeros.data(), hash.data(), round_keys_.data(), code.size());
  return first_half(code);
}

#else

MacKernel::MacKernel(const MacBlock& hash_key, const MacBlock& cipher_key) {
  std::copy(hash_key.begin(), hash_key.end(), hash_table_.begin());
  std::copy(cipher_key.begin(), cipher_key.end(), round_keys_.begin());
}

std::uint64_t MacKernel::operator()(std::span<const std::uint8_t> first,
                                    std::span<const std::uint8_t> second,
                                    const MacBlock& block) const {
  MacBlock hash_key;
  MacBlock cipher_key;
  std::copy_n(hash_table_.begin(), hash_key.size(), hash_key.begin());
  std::copy_n(round_keys_.begin(), cipher_key.size(), cipher_key.begin());
  MacBlock hash = ghash_portable(hash_key, ghash_portable(hash_key, {}, first), second);
  for (std::size_t i = 0; i < block.size(); ++i) hash[i] ^= block[i];
  return first_half(aes128_portable(cipher_key, hash));
}

#endif

}  // namespace gradcube::protocol
