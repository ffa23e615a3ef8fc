#include "bcube_forwarding/address.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace gradcube::bcube {

AddressSpace::AddressSpace(std::span<const unsigned> radices, Joint joint) : joint_(joint) {
  if (radices.empty() || radices.size() > kMaxLevels) {
    throw std::invalid_argument("an address must have 1.." + std::to_string(kMaxLevels) +
                                " levels, not " + std::to_string(radices.size()));
  }
  levels_ = static_cast<unsigned>(radices.size());
  std::uint64_t servers = 1;
  for (unsigned level = 0; level < levels_; ++level) {
    if (radices[level] < 2 || radices[level] > kMaxRadix) {
      throw std::invalid_argument("the radix of level " + std::to_string(level) + " is " +
                                  std::to_string(radices[level]) + ", but it must be 2.." +
                                  std::to_string(kMaxRadix));
    }
    if (cabled() && radices[level] < kLeastRing) {
      throw std::invalid_argument("a ring of " + std::to_string(radices[level]) +
                                  " servers would have two cables between the same two; a ring "
                                  "has 3 or more, and bcube:2,k joins two by one link");
    }
    radices_[level] = radices[level];
    weights_[level] = static_cast<std::uint32_t>(servers);
    servers *= radices[level];
    if (servers > kMaxServers) {
      throw std::invalid_argument("too many servers: at most " + std::to_string(kMaxServers) +
                                  ", because a server's number has 16 bits on the wire");
    }
  }
  servers_ = addresses_ = static_cast<std::uint32_t>(servers);
}

AddressSpace AddressSpace::without(std::span<const ServerId> absent) const {
  auto marks = std::make_shared<Absent>(addresses_, false);
  for (const ServerId server : absent) {
    if (server >= addresses_) {
      throw std::invalid_argument("server " + std::to_string(server) + " is not among the " +
                                  std::to_string(addresses_) + " addresses");
    }
    (*marks)[server] = true;
  }
  AddressSpace rest = *this;
  rest.servers_ = static_cast<std::uint32_t>(std::count(marks->begin(), marks->end(), false));
  if (rest.servers_ == 0) throw std::invalid_argument("all servers would be absent");
  rest.absent_ = rest.is_whole() ? nullptr : std::move(marks);
  return rest;
}

AddressSpace AddressSpace::with_ports(const std::vector<unsigned>& ports) const {
  if (ports.size() != addresses_) throw std::invalid_argument("expected the ports of each server");
  const unsigned most = *std::max_element(ports.begin(), ports.end());
  if (*std::min_element(ports.begin(), ports.end()) < 1 || most > kMostRails) {
    throw std::invalid_argument("a server has 1.." + std::to_string(kMostRails) + " ports");
  }
  if (most > 1 && (levels_ > 1 || cabled())) {
    throw std::invalid_argument("servers have several ports on a switch only where it joins all");
  }
  if (most * radices_[0] > kMaxRadix) {
    throw std::invalid_argument("with " + std::to_string(most) + " ports, a server can have " +
                                std::to_string(kMaxRadix / most - 1) + " neighbours at most, not " +
                                std::to_string(radices_[0] - 1));
  }
  AddressSpace railed = *this;
  railed.rails_ = most;
  railed.port_counts_ = most == 1 ? nullptr : std::make_shared<const std::vector<unsigned>>(ports);
  return railed;
}

unsigned AddressSpace::addresses_one_digit_away() const {
  unsigned count = 0;
  for (unsigned level = 0; level < levels_; ++level) count += radices_[level] - 1;
  return count;
}

std::vector<ServerId> AddressSpace::server_list() const {
  std::vector<ServerId> list;
  list.reserve(servers_);
  for (ServerId server = 0; server < addresses_; ++server) {
    if (!is_absent(server)) list.push_back(server);
  }
  return list;
}

std::vector<ServerId> AddressSpace::absent_list() const {
  std::vector<ServerId> list;
  for (ServerId server = 0; server < addresses_; ++server) {
    if (is_absent(server)) list.push_back(server);
  }
  return list;
}

bool AddressSpace::operator==(const AddressSpace& other) const {
  if (radices_ != other.radices_ || levels_ != other.levels_ || joint_ != other.joint_) {
    return false;
  }
  if (rails_ != other.rails_ || (rails_ > 1 && *port_counts_ != *other.port_counts_)) return false;
  if (absent_ == nullptr || other.absent_ == nullptr) return absent_ == other.absent_;
  return *absent_ == *other.absent_;
}

std::array<unsigned, kMaxLevels> AddressSpace::digits(ServerId server) const {
  std::array<unsigned, kMaxLevels> result{};
  for (unsigned i = 0; i < levels_; ++i) result[i] = digit(server, levels_ - 1 - i);
  return result;
}

std::string AddressSpace::joined(ServerId server, char separator) const {
  std::string result;
  const auto all = digits(server);
  for (unsigned i = 0; i < levels_; ++i) {
    if (i > 0) result += separator;
    result += std::to_string(all[i]);
  }
  return result;
}

std::string AddressSpace::text(ServerId server) const {
  std::string result(1, '[');
  result += joined(server, ',');
  result += ']';
  return result;
}

std::string AddressSpace::joint_text(ServerId server, unsigned port) const {
  const unsigned level = level_of_port(port);
  if (cabled()) {
    const unsigned own = digit(server, level);
    const bool forward = port % 2 == 0;
    const ServerId from = forward ? server : with_digit(server, level, previous_digit(level, own));
    const ServerId to = forward ? with_digit(server, level, next_digit(level, own)) : server;
    return std::to_string(level) + '/' + text(from) + '-' + text(to);
  }
  std::string result = std::to_string(level) + "/[";
  const auto all = digits(server);
  for (unsigned i = 0; i < levels_; ++i) {
    if (i > 0) result += ',';
    result += levels_ - 1 - i == level ? "*" : std::to_string(all[i]);
  }
  return result + ']';
}

std::string AddressSpace::suffix(ServerId server) const { return joined(server, '-'); }

ServerId AddressSpace::parse(std::string_view text) const {
  std::string quoted(1, '"');
  quoted.append(text).append(1, '"');
  const std::string example = std::string(", for example ").append(joined(addresses_ - 1, ','));
  const std::string expected =
      levels_ == 1 ? "expected a number from 0 to " + std::to_string(addresses_ - 1)
                   : "expected " + std::to_string(levels_) +
                         " digits separated by commas, the highest level first" + example;
  std::string_view rest = text;
  if (rest.size() >= 2 && rest.front() == '[' && rest.back() == ']') {
    rest = rest.substr(1, rest.size() - 2);
  }
  ServerId server = 0;
  for (unsigned i = 0; i < levels_; ++i) {
    const unsigned level = levels_ - 1 - i;
    unsigned value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    const bool last = i + 1 == levels_;
    const bool ends_well =
        last ? end == rest.data() + rest.size() : end != rest.data() + rest.size() && *end == ',';
    const bool is_no_digit = error != std::errc() || value >= radices_[level];
    if (error == std::errc::invalid_argument || !ends_well || (is_no_digit && levels_ == 1)) {
      throw std::invalid_argument(quoted + " is not a server's address: " + expected);
    }
    if (is_no_digit) {
      throw std::invalid_argument(quoted + " is not a server's address: its digit at level " +
                                  std::to_string(level) + " must be 0.." +
                                  std::to_string(radices_[level] - 1) + example);
    }
    server += value * weights_[level];
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + (last ? 0 : 1));
  }
  if (is_absent(server)) {
    throw std::invalid_argument(quoted + " is absent: the cluster has no server at this address");
  }
  return server;
}

}  // namespace gradcube::bcube
