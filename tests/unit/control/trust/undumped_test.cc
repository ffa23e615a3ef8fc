#include "control/base/undumped.h"

#include <array>
#include <cstdint>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

namespace gradcube::control {
namespace {

// What the kernel says of the mapping that holds the address.
std::string flags_of(const void* address) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool is_it = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-') {
      is_it = begin <= place && place < end;
    }
    if (is_it && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(Undumped, IsInNoCoreDump) {
  const Undumped<std::array<int, 3>> object(std::array<int, 3>{1, 2, 3});
  EXPECT_EQ((*object)[2], 3);
  EXPECT_NE(flags_of(&*object).find(" dd "), std::string::npos) << flags_of(&*object);
  const int other = 0;
  EXPECT_EQ(flags_of(&other).find(" dd "), std::string::npos) << "other memory is in it";
}

TEST(Undumped, HasPagesOfItsOwnHoweverLargeItIs) {
  const Undumped<std::array<char, 5'000>> one(std::array<char, 5'000>{});
  EXPECT_NE(flags_of(&one->back()).find(" dd "), std::string::npos);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&*one) % 4096, 0U);
}

TEST(Undumped, EndsWhatItHolds) {
  struct Counted {
    explicit Counted(int& ends) : ends(ends) {}
    ~Counted() { ++ends; }
    int& ends;
  };
  int ends = 0;
  { const Undumped<Counted> object(ends); }
  EXPECT_EQ(ends, 1);
}

}  // namespace
}  // namespace gradcube::control
