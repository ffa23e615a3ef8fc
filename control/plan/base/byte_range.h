// Ranges of a buffer, in bytes and in units of 64 bytes, and how a range is divided.
//
// A buffer is divided in whole units, so that every range begins and ends on a 64-byte boundary or
// at the end of the buffer, whose last unit may be partial. A range of U units has n parts: part i
// is [U*i/n, U*(i+1)/n), and any of them may be empty. Unequal shares are several such parts
// together. Segments are slices: of equal length, but for the last one that is not empty. The plan,
// the verifier and the data path all divide with part() and slice(): there is no other division of
// a buffer.
//
// Plain values and arithmetic. No product overflows: any number of bytes is allowed.
#ifndef GRADCUBE_CONTROL_PLAN_BASE_BYTE_RANGE_H_
#define GRADCUBE_CONTROL_PLAN_BASE_BYTE_RANGE_H_

#include <algorithm>
#include <cstdint>

namespace gradcube::control {

inline constexpr std::uint64_t kUnitBytes = 64;

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  bool operator==(const ByteRange&) const = default;
};

struct UnitRange {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;

  bool operator==(const UnitRange&) const = default;
};

// All units of a buffer.
constexpr UnitRange units_of(std::uint64_t bytes) {
  return {0, bytes / kUnitBytes + (bytes % kUnitBytes != 0 ? 1 : 0)};
}

// The bytes of some units of a buffer of `buffer_bytes`.
constexpr ByteRange bytes_of(UnitRange units, std::uint64_t buffer_bytes) {
  // Only the last unit can be partial: its end is the buffer's end.
  const auto clamp = [buffer_bytes](std::uint64_t unit) {
    return unit > buffer_bytes / kUnitBytes ? buffer_bytes : unit * kUnitBytes;
  };
  return {clamp(units.begin), clamp(units.begin + units.count)};
}

// Part `index` of `parts`: 0 <= index < parts <= 2^32.
constexpr UnitRange part(UnitRange whole, std::uint64_t index, std::uint64_t parts) {
  // U = each * parts + rest. As rest < parts, the ends of the part differ by `each` or `each` + 1.
  const std::uint64_t each = whole.count / parts;
  const std::uint64_t rest = whole.count - each * parts;
  const std::uint64_t extra = rest * index / parts;
  const bool one_more = rest * index - extra * parts + rest >= parts;
  return {whole.begin + each * index + extra, each + (one_more ? 1 : 0)};
}

// The parts `from` to before `to` of `of`, together.
struct PartRange {
  std::uint32_t from = 0;
  std::uint32_t to = 1;
  std::uint32_t of = 1;

  bool operator==(const PartRange&) const = default;
};

constexpr UnitRange part(UnitRange whole, PartRange parts) {
  const std::uint64_t each = whole.count / parts.of;
  const std::uint64_t rest = whole.count - each * parts.of;
  const std::uint64_t begin = each * parts.from + rest * parts.from / parts.of;
  const std::uint64_t end = each * parts.to + rest * parts.to / parts.of;
  return {whole.begin + begin, end - begin};
}

// Slice `index` of `slices`: 0 <= index < slices <= 2^32.
constexpr UnitRange slice(UnitRange whole, std::uint64_t index, std::uint64_t slices) {
  const std::uint64_t each = whole.count / slices + (whole.count % slices != 0 ? 1 : 0);
  const std::uint64_t begin = std::min(each * index, whole.count);
  return {whole.begin + begin, std::min(each, whole.count - begin)};
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_BASE_BYTE_RANGE_H_
