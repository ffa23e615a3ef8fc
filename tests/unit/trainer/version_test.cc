// What is written down in two places: versions, the layout's magic, codes and their descriptions.
#include <bit>
#include <cstring>
#include <gtest/gtest.h>
#include <string>

#include "trainer/shared_layout.h"

#include "gradcube/gradcube.hpp"

namespace gradcube::trainer {
namespace {

TEST(Version, TheLibraryIsOfTheProjectsVersionAndTheHeaders) {
  EXPECT_EQ(gradcube_version(), GRADCUBE_VERSION_CODE);
  EXPECT_EQ(gradcube::version(),
            GRADCUBE_VERSION_MAJOR * 10000 + GRADCUBE_VERSION_MINOR * 100 + GRADCUBE_VERSION_PATCH);
  EXPECT_EQ(std::to_string(GRADCUBE_VERSION_MAJOR) + "." + std::to_string(GRADCUBE_VERSION_MINOR) +
                "." + std::to_string(GRADCUBE_VERSION_PATCH),
            GRADCUBE_PROJECT_VERSION);
}

TEST(Version, TheRegionsMagicSpellsTheProjectsName) {
  static_assert(std::endian::native == std::endian::little);
  char letters[sizeof(shared::kMagic) + 1] = {};
  std::memcpy(letters, &shared::kMagic, sizeof(shared::kMagic));
  EXPECT_STREQ(letters, "GRADCUBE");
}

TEST(Codes, EveryCodeHasADescriptionOfItsOwn) {
  for (int code = GRADCUBE_ECORRUPT; code <= GRADCUBE_OK; ++code) {
    for (int other = code + 1; other <= GRADCUBE_OK + 1; ++other) {
      EXPECT_STRNE(gradcube_strerror(code), gradcube_strerror(other)) << code;
    }
  }
  EXPECT_STREQ(gradcube_strerror(GRADCUBE_EPROTOCOL), "protocol error between trainer and daemon");
  EXPECT_STREQ(gradcube_strerror(GRADCUBE_ESYSTEM), "system call failed");
  EXPECT_STREQ(gradcube_strerror(1), "unknown code");
}

}  // namespace
}  // namespace gradcube::trainer
