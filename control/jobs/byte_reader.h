// Reads the fields of a message (message_fields.h) from hostile bytes, as a ByteWriter has written
// them.
//
// A field that ends beyond the bytes or breaks a rule makes the whole message bad, and nothing
// further is read: the fields that follow keep their values. A list grows as its elements are read,
// so that a count alone reserves no memory.
#ifndef GRADCUBE_CONTROL_JOBS_BYTE_READER_H_
#define GRADCUBE_CONTROL_JOBS_BYTE_READER_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bcube_forwarding/address.h"
#include "protocol/bytes.h"

namespace gradcube::control {

class ByteReader {
 public:
  // `servers`: of the cluster; outlives the reader.
  ByteReader(std::span<const std::uint8_t> bytes, const bcube::AddressSpace& servers)
      : rest_(bytes), servers_(servers) {}

  void check(bool holds) { good_ = good_ && holds; }

  template <std::integral T>
  void number(T& value) {
    using Unsigned = std::make_unsigned_t<T>;
    check(rest_.size() >= sizeof(T));
    if (!good_) return;
    value = static_cast<T>(protocol::load_little<Unsigned>(rest_.data()));
    rest_ = rest_.subspan(sizeof(T));
  }

  void server(std::uint32_t& value) {
    narrow<std::uint16_t>(value, servers_.addresses());
    check(good_ && servers_.contains(value));
  }

  void rank(std::uint32_t& value) { narrow<std::uint16_t>(value, servers_.servers()); }

  void small(std::uint32_t& value, unsigned bound) { narrow<std::uint8_t>(value, bound); }

  template <typename Enum>
  void choice(Enum& value, Enum last) {
    std::uint32_t read = 0;
    small(read, static_cast<unsigned>(last) + 1);
    if (good_) value = static_cast<Enum>(read);
  }

  void flag(bool& value) {
    std::uint8_t read = 0;
    number(read);
    check(read <= 1);
    if (good_) value = read == 1;
  }

  void name(std::string& value, std::size_t most) {
    std::uint16_t length = 0;
    number(length);
    check(length <= most && length <= rest_.size());
    if (!good_) return;
    const auto read = rest_.first(length);
    value.assign(read.begin(), read.end());
    rest_ = rest_.subspan(length);
  }

  void text(std::string& value, std::size_t most) { name(value, most); }

  template <typename T, typename Each>
  void list(std::vector<T>& values, std::size_t most, Each each) {
    std::uint16_t count = 0;
    number(count);
    check(count <= most);
    for (; good_ && count > 0; --count) each(values.emplace_back());
  }

  template <typename T, typename Each>
  void maybe(std::optional<T>& value, Each each) {
    bool has_value = false;
    flag(has_value);
    if (good_ && has_value) each(value.emplace());
  }

  template <typename... T, typename Each>
  void one_of(std::variant<T...>& value, Each each) {
    std::uint8_t place = 0;
    number(place);
    check(place < sizeof...(T));
    if (!good_) return;
    begin(value, place, std::index_sequence_for<T...>());
    std::visit(each, value);
  }

  // All fields were good, and nothing follows them.
  bool done() const { return good_ && rest_.empty(); }

 private:
  template <std::unsigned_integral Narrow>
  void narrow(std::uint32_t& value, std::uint32_t bound) {
    Narrow read = 0;
    number(read);
    check(read < bound);
    if (good_) value = read;
  }

  template <typename Variant, std::size_t... kPlaces>
  static void begin(Variant& value, std::size_t place, std::index_sequence<kPlaces...>) {
    ((place == kPlaces ? void(value.template emplace<kPlaces>()) : void()), ...);
  }

  std::span<const std::uint8_t> rest_;
  const bcube::AddressSpace& servers_;
  bool good_ = true;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_BYTE_READER_H_
