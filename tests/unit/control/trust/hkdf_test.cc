#include "control/base/hkdf.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <set>
#include <string>

namespace gradcube::control {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string counting(unsigned from, unsigned to) {
  std::string bytes;
  for (unsigned value = from; value < to; ++value) bytes += static_cast<char>(value);
  return bytes;
}

TEST(Hkdf, IsWhatTheStandardSays) {  // RFC 5869, appendices A.1 to A.3
  EXPECT_EQ(hex(hkdf_sha256(std::string(22, '\x0b'), counting(0, 13), counting(0xf0, 0xfa), 42)),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
  EXPECT_EQ(hex(hkdf_sha256(counting(0, 0x50), counting(0x60, 0xb0), counting(0xb0, 0x100), 82)),
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41"
            "c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87");
  EXPECT_EQ(hex(hkdf_sha256(std::string(22, '\x0b'), "", "", 42)),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

TEST(Hmac, TakesKeysThatAreLongerThanABlock) {  // RFC 4231, test case 6
  EXPECT_EQ(fmt::format("{:02x}", fmt::join(hmac_sha256(std::string(131, '\xaa'),
                                                        "Test Using Larger Than Block-Size Key - "
                                                        "Hash Key First"),
                                            "")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(DerivedSecrets, DifferWithTheSecretTheLabelAndTheContext) {
  Secret one{};
  Secret other{};
  other[31] = 1;
  const std::set<Secret> all = {derived_secret(one, "a"),        derived_secret(one, "b"),
                                derived_secret(one, "a", "b"),   derived_secret(one, "ab"),
                                derived_secret(other, "a", "b"), derived_secret(one, "a", "c")};
  EXPECT_EQ(all.size(), 6u);
  EXPECT_EQ(all.count(one), 0u);
}

}  // namespace
}  // namespace gradcube::control
