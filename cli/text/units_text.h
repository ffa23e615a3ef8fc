// Numbers with their units, as people read them. Pure functions.
#ifndef GRADCUBE_CLI_TEXT_UNITS_TEXT_H_
#define GRADCUBE_CLI_TEXT_UNITS_TEXT_H_

#include <cstdint>
#include <string>

namespace gradcube::cli {

// 1234567 -> "1.23 MB", decimal; below 1000 "999 B".
std::string human_bytes(double bytes);
// The same, and the number where that is rounded: 10239 -> "10.2 KB (10,239 bytes)".
std::string exact_bytes(std::uint64_t bytes);

// 200000000 -> "200 Mbit/s".
std::string human_rate(double bits_per_second);

// 0.00123 -> "1.23 ms"; from a minute on "2 min 5 s", and from 10^15 s on "1e+21 s".
std::string human_seconds(double seconds);

// 1234567 -> "1,234,567".
std::string grouped(std::uint64_t number);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_UNITS_TEXT_H_
