// Writes the fields of a message (message_fields.h) as bytes: fixed-width integers, little-endian;
// flags and what is optional as a byte 0 or 1; texts and lists behind a count of 16 bits. A
// ByteReader has the same functions and reads what this writes.
//
// A field that breaks a rule makes the whole message bad. It is written all the same, so that tests
// have bytes to refuse.
#ifndef GRADCUBE_CONTROL_JOBS_BYTE_WRITER_H_
#define GRADCUBE_CONTROL_JOBS_BYTE_WRITER_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bcube_forwarding/address.h"
#include "protocol/bytes.h"

namespace gradcube::control {

class ByteWriter {
 public:
  // `servers`: of the cluster; outlives the writer.
  explicit ByteWriter(const bcube::AddressSpace& servers) : servers_(servers) {}

  void check(bool holds) { good_ = good_ && holds; }

  template <std::integral T>
  void number(T value) {
    using Unsigned = std::make_unsigned_t<T>;
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    protocol::store_little<Unsigned>(bytes_.data() + at, static_cast<Unsigned>(value));
  }

  // The number of a server that is there.
  void server(std::uint32_t value) {
    check(servers_.contains(value));
    number(static_cast<std::uint16_t>(value));
  }

  // The rank of a server among those that are there.
  void rank(std::uint32_t value) {
    check(value < servers_.servers());
    number(static_cast<std::uint16_t>(value));
  }

  // Of few things: a number below `bound`, in one byte.
  void small(std::uint32_t value, unsigned bound) {
    check(value < bound);
    number(static_cast<std::uint8_t>(value));
  }

  template <typename Enum>
  void choice(Enum value, Enum last) {
    small(static_cast<std::uint32_t>(value), static_cast<unsigned>(last) + 1);
  }

  void flag(bool value) { number(std::uint8_t{value}); }

  // Longer than `most`: bad.
  void name(std::string_view value, std::size_t most) {
    check(value.size() <= most);
    put(value);
  }

  // Longer than `most`: cut.
  void text(std::string_view value, std::size_t most) {
    if (value.size() <= most) return put(value);
    constexpr std::string_view kCut = "...";
    put(std::string(value.substr(0, most - kCut.size())).append(kCut));
  }

  template <typename T, typename Each>
  void list(const std::vector<T>& values, std::size_t most, Each each) {
    check(values.size() <= most);
    number(static_cast<std::uint16_t>(values.size()));
    for (const T& value : values) each(value);
  }

  template <typename T, typename Each>
  void maybe(const std::optional<T>& value, Each each) {
    flag(value.has_value());
    if (value.has_value()) each(*value);
  }

  // One of several: its place among them as a byte, then it.
  template <typename... T, typename Each>
  void one_of(const std::variant<T...>& value, Each each) {
    number(static_cast<std::uint8_t>(value.index()));
    std::visit(each, value);
  }

  bool good() const { return good_; }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  void put(std::string_view value) {
    number(static_cast<std::uint16_t>(value.size()));
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }

  const bcube::AddressSpace& servers_;
  std::vector<std::uint8_t> bytes_;
  bool good_ = true;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_BYTE_WRITER_H_
