// The fields of a message between daemons (message_fields.h) as bytes: fixed-width integers; flags
// and what is optional as a byte 0 or 1; texts and lists behind a count of 16 bits.
//
// A list grows as its elements are read, so that a count alone reserves no memory.
#ifndef GRADCUBE_CONTROL_JOBS_MESSAGE_FORM_H_
#define GRADCUBE_CONTROL_JOBS_MESSAGE_FORM_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/base/byte_form.h"

namespace gradcube::control {

class MessageForm : public ByteForm {
 public:
  // `servers`: of the cluster; outlives the form.
  explicit MessageForm(const bcube::AddressSpace& servers) : servers_(servers) {}
  MessageForm(std::span<const std::uint8_t> bytes, const bcube::AddressSpace& servers)
      : ByteForm(bytes), servers_(servers) {}

  // The number of a server that is there.
  void server(std::uint32_t& value) {
    narrow<std::uint16_t>(value);
    check(servers_.contains(value));
  }

  // The rank of a server among those that are there.
  void rank(std::uint32_t& value) {
    narrow<std::uint16_t>(value);
    check(value < servers_.servers());
  }

  // Of few things: a number below `bound`, in one byte.
  void small(std::uint32_t& value, unsigned bound) {
    narrow<std::uint8_t>(value);
    check(value < bound);
  }

  template <typename Enum>
  void choice(Enum& value, Enum last) {
    auto number = static_cast<std::uint32_t>(value);
    small(number, static_cast<unsigned>(last) + 1);
    if (good()) value = static_cast<Enum>(number);
  }

  void flag(bool& value) {
    std::uint8_t number{value};
    this->number(number);
    check(number <= 1);
    if (good()) value = number == 1;
  }

  // Longer than `most`: bad.
  void name(std::string& value, std::size_t most) { bytes(value, count(value.size(), most)); }

  // Longer than `most`: cut when it is written.
  void text(std::string& value, std::size_t most) {
    constexpr std::string_view kCut = "...";
    if (!reads() && value.size() > most) value.replace(most - kCut.size(), value.npos, kCut);
    name(value, most);
  }

  template <typename T, typename Each>
  void list(std::vector<T>& values, std::size_t most, Each each) {
    const std::size_t elements = count(values.size(), most);
    if (!reads()) {
      for (T& value : values) each(value);
      return;
    }
    for (std::size_t i = 0; good() && i < elements; ++i) each(values.emplace_back());
  }

  template <typename T, typename Each>
  void maybe(std::optional<T>& value, Each each) {
    bool has_value = value.has_value();
    flag(has_value);
    if (reads() && good() && has_value) value.emplace();
    if (value.has_value()) each(*value);
  }

  // One of several: its place among them as a byte, then it.
  template <typename... T, typename Each>
  void one_of(std::variant<T...>& value, Each each) {
    auto place = static_cast<std::uint8_t>(value.index());
    number(place);
    check(place < sizeof...(T));
    if (reads() && !good()) return;
    if (reads()) begin(value, place, std::index_sequence_for<T...>());
    std::visit(each, value);
  }

 private:
  template <std::unsigned_integral Narrow>
  void narrow(std::uint32_t& value) {
    auto read = static_cast<Narrow>(value);
    number(read);
    if (reads()) value = read;
  }

  // How many bytes or elements follow.
  std::size_t count(std::size_t own, std::size_t most) {
    auto number = static_cast<std::uint16_t>(own);
    this->number(number);
    if (reads()) own = number;
    check(own <= most);
    return own;
  }

  template <typename Variant, std::size_t... kPlaces>
  static void begin(Variant& value, std::size_t place, std::index_sequence<kPlaces...>) {
    ((place == kPlaces ? void(value.template emplace<kPlaces>()) : void()), ...);
  }

  const bcube::AddressSpace& servers_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_MESSAGE_FORM_H_
