#include "control/base/hkdf.h"

#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <set>
#include <string>

namespace gradcube::control {
namespace {

std::string hex(const std::array<std::uint8_t, 32>& bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

TEST(Sha256, IsWhatTheStandardSays) {  // FIPS 180-4
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

// What Python's hmac makes of RFC 5869's two steps: all daemons of a cluster derive the same keys.
TEST(DerivedSecrets, AreThoseOfHkdf) {
  Secret secret{};
  for (unsigned i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(hex(derived_secret(secret, "label", "context")),
            "03676e51e90221360baa53b6167da9ba980142f6cc47f73e399bbdd1b6996498");
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
