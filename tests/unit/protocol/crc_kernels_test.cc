#include "protocol/kernels/crc_kernels.h"

#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/protocol/seed.h"

namespace gradcube::protocol {
namespace {

// Bit by bit, as the polynomial division is defined.
std::uint32_t reference(std::uint32_t crc, const std::uint8_t* bytes, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
    }
  }
  return crc;
}

struct Kernel {
  const char* name;
  CrcFunction function;
};

std::vector<Kernel> kernels() {
  std::vector<Kernel> all{{"ISA-L", crc_by_isal}, {"selected", select_crc()}};
  if (crc_by_avx512() != nullptr) all.push_back({"AVX-512", crc_by_avx512()});
  return all;
}

std::vector<std::uint8_t> random_bytes(std::size_t length, std::mt19937_64& random) {
  std::vector<std::uint8_t> bytes(length);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

TEST(CrcKernels, GiveTheStandardsCheckValue) {
  const std::string digits = "123456789";  // RFC 3720 and the catalogues of CRCs: e3069283
  for (const Kernel& kernel : kernels()) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(digits.data());
    EXPECT_EQ(~kernel.function(0xffffffffU, bytes, digits.size()), 0xe3069283U) << kernel.name;
  }
}

TEST(CrcKernels, AllGiveTheBitsOfTheDivisionForEveryLengthAndAlignment) {
  const std::uint64_t seed = test_seed(std::random_device{}());
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (std::size_t length = 0; length <= 1400; ++length) {
    // Of exactly its size, so that a sanitizer sees a read outside.
    const std::size_t shift = random() % 64;
    const std::vector<std::uint8_t> memory = random_bytes(shift + length, random);
    const std::uint8_t* bytes = memory.data() + shift;
    const auto before = static_cast<std::uint32_t>(random());
    const std::uint32_t expected = reference(before, bytes, length);
    for (const Kernel& kernel : kernels()) {
      ASSERT_EQ(kernel.function(before, bytes, length), expected) << kernel.name << " " << length;
    }
  }
}

TEST(CrcKernels, AllGiveTheSameBitsAtTheLengthsOfSegments) {
  const std::uint64_t seed = test_seed(std::random_device{}());
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (const std::size_t length : {1408U, 4096U, 8192U, 8896U, 8904U, 65531U}) {
    const std::vector<std::uint8_t> bytes = random_bytes(length, random);
    const std::uint32_t expected = reference(0xffffffffU, bytes.data(), length);
    for (const Kernel& kernel : kernels()) {
      ASSERT_EQ(kernel.function(0xffffffffU, bytes.data(), length), expected)
          << kernel.name << " " << length;
    }
  }
}

TEST(CrcKernels, GiveTheSameWhereverBytesAreCutInTwo) {
  const std::uint64_t seed = test_seed(std::random_device{}());
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  const std::vector<std::uint8_t> bytes = random_bytes(900, random);
  for (const Kernel& kernel : kernels()) {
    const std::uint32_t whole = kernel.function(1, bytes.data(), bytes.size());
    for (std::size_t cut = 0; cut <= bytes.size(); cut += 7) {
      const std::uint32_t first = kernel.function(1, bytes.data(), cut);
      ASSERT_EQ(kernel.function(first, bytes.data() + cut, bytes.size() - cut), whole)
          << kernel.name << " " << cut;
    }
  }
}

}  // namespace
}  // namespace gradcube::protocol
