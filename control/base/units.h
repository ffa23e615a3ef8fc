// Quantities as people write them: rates, sizes, durations, probabilities.
//
// Each parser takes the text and where it comes from ("--rate", "cluster.toml, line 7, rate"), and
// throws a UsageError whose message begins with that. In every size that Gradcube reads, K, M and G
// are decimal and Ki, Mi and Gi are binary. Letters may be of either case.
#ifndef GRADCUBE_CONTROL_BASE_UNITS_H_
#define GRADCUBE_CONTROL_BASE_UNITS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace gradcube::control {

// The rates that a link can have. The emulated switches' arithmetic takes none below the least
// (LinkClock::kMinRate).
inline constexpr std::uint64_t kLeastRate = 1'000'000;
inline constexpr std::uint64_t kMostRate = 10'000'000'000'000;

// Bits per second, kLeastRate to kMostRate: "200mbit", "2.5gbit". A unit is required: a bare 200
// could be bits, megabits or bytes.
std::uint64_t parse_rate(std::string_view text, std::string_view where);

// Bytes: "1K", "12.5M", "128KB", "64Ki", "1G", "4096". The text must stand for a whole number of
// bytes, at most 10^15.
std::uint64_t parse_size(std::string_view text, std::string_view where);

// Nanoseconds: "500ns", "50us", "1ms", "2s"; 0 needs no unit.
std::int64_t parse_duration(std::string_view text, std::string_view where);

// 0..1: "0.01".
double parse_probability(std::string_view text, std::string_view where);

// A plain whole number in lowest..highest.
std::uint64_t parse_integer(std::string_view text, std::string_view where, std::uint64_t lowest,
                            std::uint64_t highest);

// The shortest form that reads back as the same number: "2.5gbit", "12.5M", "50us".
std::string format_rate(std::uint64_t bits_per_second);
std::string format_size(std::uint64_t bytes);
std::string format_duration(std::int64_t nanoseconds);

// "1 link", "2 links"
std::string counted(std::uint64_t count, std::string_view thing);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_UNITS_H_
