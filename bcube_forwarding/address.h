// Addresses of servers: a server's digits [v(k-1),...,v1,v0], one per level, in mixed radix (BML,
// section 3.1).
//
// Everywhere except in text, a server is its number (ServerId): the address read as a mixed-radix
// number whose digit at level 0 is the least significant. On the wire the number takes 16 bits and
// a digit 8 bits, so an address space has at most 65536 servers and a radix of at most 256.
//
// The servers that differ in a level's digit alone are joined by a switch, each with one port, or
// in a ring of cables, each with two ports (a torus: HiPS, section 4.2). Then port 2l leads to the
// next digit of level l, and port 2l+1 to the one before, modulo the radix. A ring has at least 3
// servers: of two, both cables would join the same ones, and a hop would not say which it takes.
//
// Where one switch joins all servers, some may have several ports on it. Between two servers there
// are then as many RAILS as the one with more ports has: rail r joins port r of each, modulo its
// ports. A hop names its rail by its digit (route.h): that of the server, plus r times the radix.
//
// Some addresses may have no server (a partial BCube: BCube, section 5.1): they are ABSENT. The
// others keep their addresses and numbers, and who is bought later changes nobody's. Whoever goes
// through all servers takes server_list(); a table that a server's number indexes has addresses()
// entries.
//
// An AddressSpace is a small immutable value, which allocates only for text and lists. Any thread
// may use it. Functions that take a server or a level do not check its range: check outside input
// with contains() or parse() first.
#ifndef GRADCUBE_BCUBE_FORWARDING_ADDRESS_H_
#define GRADCUBE_BCUBE_FORWARDING_ADDRESS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradcube::bcube {

using ServerId = std::uint32_t;

inline constexpr unsigned kMaxLevels = 8;
inline constexpr unsigned kMaxRadix = 256;
inline constexpr std::uint32_t kMaxServers = 65536;
inline constexpr unsigned kLeastRing = 3;

// Of one server on one switch. Their link addresses (neighbours.h) have room for as many.
inline constexpr unsigned kMostRails = 16;

enum class Joint : std::uint8_t { switches, cables };

class AddressSpace {
 public:
  // radices[l] is the radix of level l, level 0 first. Throws std::invalid_argument with a message
  // if there are no levels or more than kMaxLevels, a radix is not in 2..kMaxRadix (3..kMaxRadix in
  // a ring), or there would be more than kMaxServers servers.
  explicit AddressSpace(std::span<const unsigned> radices, Joint joint = Joint::switches);

  // The same addresses where these have no server, and all others have one. Throws
  // std::invalid_argument if one is no address of the space, or no server would be left.
  AddressSpace without(std::span<const ServerId> absent) const;

  // The same addresses where server s has ports[s] ports on the one switch; as many numbers as
  // there are addresses. Throws std::invalid_argument if one is not in 1..kMostRails, or the hops
  // over all rails are more than a digit can name, or there is more than one switch.
  AddressSpace with_ports(const std::vector<unsigned>& ports) const;

  // Every number below is an address.
  std::uint32_t addresses() const { return addresses_; }
  // How many of them have a server, and which, ascending.
  std::uint32_t servers() const { return servers_; }
  std::vector<ServerId> server_list() const;
  bool is_whole() const { return servers_ == addresses_; }
  std::vector<ServerId> absent_list() const;

  unsigned levels() const { return levels_; }
  unsigned radix(unsigned level) const { return radices_[level]; }
  // Addresses that differ from a given one in one digit.
  unsigned addresses_one_digit_away() const;

  // How much the server's number grows when its digit at `level` grows by 1.
  std::uint32_t weight(unsigned level) const { return weights_[level]; }

  // Of any number: whether there is this server.
  bool contains(ServerId server) const { return server < addresses_ && !is_absent(server); }
  // Of an address.
  bool is_absent(ServerId server) const { return absent_ != nullptr && (*absent_)[server]; }

  unsigned digit(ServerId server, unsigned level) const {
    return server / weights_[level] % radices_[level];
  }

  // The digit may be that of a hop.
  ServerId with_digit(ServerId server, unsigned level, unsigned digit_value) const {
    return server + (digit_value % radices_[level] - digit(server, level)) * weights_[level];
  }

  // A server's ports, which are numbered by ascending level. ports(): what all have, at least.
  bool cabled() const { return joint_ == Joint::cables; }
  unsigned ports_of_level() const { return cabled() ? 2 : 1; }
  unsigned ports() const { return levels_ * ports_of_level(); }
  unsigned ports(ServerId server) const { return rails_ == 1 ? ports() : (*port_counts_)[server]; }
  unsigned most_ports() const { return rails_ == 1 ? ports() : rails_; }
  unsigned level_of_port(unsigned port) const { return levels_ == 1 ? 0 : port / ports_of_level(); }

  // Between two servers, and the most between any two.
  unsigned rails(ServerId one, ServerId other) const {
    return rails_ == 1 ? 1 : std::max(ports(one), ports(other));
  }
  unsigned rails() const { return rails_; }
  // Those of hops over a level are below this number.
  unsigned hop_digits(unsigned level) const { return radices_[level] * rails_; }
  unsigned hop_digit(ServerId to, unsigned level, unsigned rail) const {
    return digit(to, level) + rail * radices_[level];
  }
  // Of the hop that leads back over the rail of one from this server.
  unsigned digit_back(ServerId from, unsigned level, unsigned to) const {
    return hop_digit(from, level, to / radices_[level]);
  }

  // The digit that follows at a level, and the one before.
  unsigned next_digit(unsigned level, unsigned digit_value) const {
    return digit_value + 1 == radices_[level] ? 0 : digit_value + 1;
  }
  unsigned previous_digit(unsigned level, unsigned digit_value) const {
    return (digit_value == 0 ? radices_[level] : digit_value) - 1;
  }

  // Whether a server with one digit at the level reaches the other in one hop, and its port that
  // leads there if it does.
  bool joins(unsigned level, unsigned from, unsigned to) const {
    if (!cabled()) return from != to % radices_[level];
    return to == next_digit(level, from) || to == previous_digit(level, from);
  }
  unsigned port_to(unsigned level, unsigned from, unsigned to) const {
    if (!cabled()) return level;
    return 2 * level + (to == next_digit(level, from) ? 0 : 1);
  }
  // The server's port that leads to this digit of a hop.
  unsigned port_of(ServerId server, unsigned level, unsigned to) const {
    if (rails_ > 1) return to / radices_[level] % ports(server);
    return port_to(level, digit(server, level), to);
  }

  // The server's digits, most significant level first, as in text. Only the first levels() are
  // meaningful.
  std::array<unsigned, kMaxLevels> digits(ServerId server) const;

  std::string text(ServerId server) const;    // "[2,1]"
  std::string suffix(ServerId server) const;  // "2-1": in names of files and sockets

  // What the server's port leads to. A switch goes by what its servers share: "1/[*,2]". A cable
  // goes by its ends, first the one whose next digit the other has: "1/[2,0]-[0,0]".
  std::string joint_text(ServerId server, unsigned port) const;

  // Reads "2,1" or "[2,1]". Throws std::invalid_argument with a message that says what is
  // accepted, or that the server is absent.
  ServerId parse(std::string_view text) const;

  bool operator==(const AddressSpace& other) const;

 private:
  using Absent = std::vector<bool>;  // by address

  std::string joined(ServerId server, char separator) const;

  std::array<std::uint32_t, kMaxLevels> radices_{};
  std::array<std::uint32_t, kMaxLevels> weights_{};
  unsigned levels_ = 0;
  Joint joint_ = Joint::switches;
  std::uint32_t addresses_ = 1;
  std::uint32_t servers_ = 1;
  std::shared_ptr<const Absent> absent_;  // null: nobody is
  unsigned rails_ = 1;
  std::shared_ptr<const std::vector<unsigned>> port_counts_;  // by server; null: of one rail
};

}  // namespace gradcube::bcube

#endif  // GRADCUBE_BCUBE_FORWARDING_ADDRESS_H_
