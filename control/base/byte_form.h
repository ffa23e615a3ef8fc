// The fields of a message or of a file's header as bytes, both ways by one list: a form that was
// made of bytes reads each field out of them, one that was made of none writes it. Numbers are
// little-endian and need no alignment.
//
// Bytes that are read are hostile. A field that ends beyond them or breaks a rule makes the whole
// form bad, and nothing further is read: the fields that follow keep their values. A form that
// writes goes on, so that tests have bytes to refuse. The caller asks good() or done() at the end.
//
// For one thread at a time; the bytes outlive a form that reads them.
#ifndef GRADCUBE_CONTROL_BASE_BYTE_FORM_H_
#define GRADCUBE_CONTROL_BASE_BYTE_FORM_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gradcube::control {

// sizeof(T) bytes at `from`. Compilers make one move of it.
template <std::unsigned_integral T>
constexpr T load_little(const std::uint8_t* from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(T{from[i]} << (8 * i));
  return value;
}

template <std::unsigned_integral T>
constexpr void store_little(std::uint8_t* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

class ByteForm {
 public:
  ByteForm() = default;
  explicit ByteForm(std::span<const std::uint8_t> bytes) : rest_(bytes), reads_(true) {}

  bool reads() const { return reads_; }

  // `what` says what is wrong where the rule does not hold: broken() is that of the first.
  void check(bool holds, std::string_view what = "") {
    if (good_ && !holds) broken_ = what;
    good_ = good_ && holds;
  }

  template <std::integral T>
  void number(T& value) {
    using Unsigned = std::make_unsigned_t<T>;
    if (!reads_) {
      written_.resize(written_.size() + sizeof(T));
      store_little(written_.data() + written_.size() - sizeof(T), static_cast<Unsigned>(value));
    } else if (const auto bytes = taken(sizeof(T)); good_) {
      value = static_cast<T>(load_little<Unsigned>(bytes.data()));
    }
  }

  // A number that is 0.
  template <std::integral T>
  void zero(std::string_view what = "") {
    T value = 0;
    number(value);
    check(value == 0, what);
  }

  // So many bytes, as its own size when it is written.
  void bytes(std::string& value, std::size_t length) {
    if (!reads_) {
      written_.insert(written_.end(), value.begin(), value.end());
    } else if (const auto bytes = taken(length); good_) {
      value.assign(bytes.begin(), bytes.end());
    }
  }

  bool good() const { return good_; }
  const std::string& broken() const { return broken_; }
  // All fields were good, and nothing follows them.
  bool done() const { return good_ && rest_.empty(); }
  // What was written.
  std::vector<std::uint8_t> take() { return std::move(written_); }

 private:
  std::span<const std::uint8_t> taken(std::size_t length) {
    check(length <= rest_.size(), "it ends within its lists");
    if (!good_) return {};
    const auto bytes = rest_.first(length);
    rest_ = rest_.subspan(length);
    return bytes;
  }

  std::span<const std::uint8_t> rest_;  // that is to be read
  std::vector<std::uint8_t> written_;
  bool reads_ = false;
  bool good_ = true;
  std::string broken_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_BYTE_FORM_H_
