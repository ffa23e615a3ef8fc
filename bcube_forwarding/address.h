// Addresses of servers: a server's digits [v(k-1),...,v1,v0], one per level, in mixed radix (BML,
// section 3.1).
//
// Everywhere except in text, a server is its number (ServerId): the address read as a mixed-radix
// number whose digit at level 0 is the least significant. On the wire the number takes 16 bits and
// a digit 8 bits, so an address space has at most 65536 servers and a radix of at most 256.
//
// An AddressSpace is a small immutable value, which allocates only for text. Any thread may use it.
// Functions that take a server or a level do not check its range: check outside input with
// contains() or parse() first.
#ifndef GRADCUBE_BCUBE_FORWARDING_ADDRESS_H_
#define GRADCUBE_BCUBE_FORWARDING_ADDRESS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gradcube::bcube {

using ServerId = std::uint32_t;

inline constexpr unsigned kMaxLevels = 8;
inline constexpr unsigned kMaxRadix = 256;
inline constexpr std::uint32_t kMaxServers = 65536;

class AddressSpace {
 public:
  // radices[l] is the radix of level l, level 0 first. Throws std::invalid_argument with a message
  // if there are no levels or more than kMaxLevels, a radix is not in 2..kMaxRadix, or there would
  // be more than kMaxServers servers.
  explicit AddressSpace(std::span<const unsigned> radices);

  std::uint32_t servers() const { return servers_; }
  unsigned levels() const { return levels_; }
  unsigned radix(unsigned level) const { return radices_[level]; }

  // How much the server's number grows when its digit at `level` grows by 1.
  std::uint32_t weight(unsigned level) const { return weights_[level]; }

  bool contains(ServerId server) const { return server < servers_; }

  unsigned digit(ServerId server, unsigned level) const {
    return server / weights_[level] % radices_[level];
  }

  ServerId with_digit(ServerId server, unsigned level, unsigned digit_value) const {
    return server + (digit_value - digit(server, level)) * weights_[level];
  }

  // The server's digits, most significant level first, as in text. Only the first levels() are
  // meaningful.
  std::array<unsigned, kMaxLevels> digits(ServerId server) const;

  std::string text(ServerId server) const;    // "[2,1]"
  std::string suffix(ServerId server) const;  // "2-1": in names of files and sockets

  // The switch that joins the server at this level, by what its servers share: "1/[*,2]".
  std::string switch_text(ServerId server, unsigned level) const;

  // Reads "2,1" or "[2,1]". Throws std::invalid_argument with a message that says what is
  // accepted.
  ServerId parse(std::string_view text) const;

  bool operator==(const AddressSpace&) const = default;

 private:
  std::string joined(ServerId server, char separator) const;

  std::array<std::uint32_t, kMaxLevels> radices_{};
  std::array<std::uint32_t, kMaxLevels> weights_{};
  unsigned levels_ = 0;
  std::uint32_t servers_ = 1;
};

}  // namespace gradcube::bcube

#endif  // GRADCUBE_BCUBE_FORWARDING_ADDRESS_H_
