// What joins ports: a cable two, a switch all that are at it. A joint is a set of ports that hear
// each other and nobody else, each of another host.
//
// An immutable value, once it is made.
#ifndef GRADCUBE_CLI_SETUP_JOINTS_H_
#define GRADCUBE_CLI_SETUP_JOINTS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/setup/cables.h"

namespace gradcube::cli {

class Joints {
 public:
  using Joint = std::vector<HostPort>;  // ascending

  // faults() says what keeps the ports from being joined as above, hosts from having as many ports
  // in use as the others, or from being joined at all.
  explicit Joints(const Cables& cables);

  const std::vector<std::string>& faults() const { return faults_; }

  // The rest is for joints without faults.
  std::size_t hosts() const { return of_host_.size(); }
  std::size_t count() const { return joints_.size(); }
  const Joint& operator[](std::size_t joint) const { return joints_[joint]; }
  // By the host's ports in use, ascending.
  const std::vector<std::size_t>& of_host(std::size_t host) const { return of_host_[host]; }
  std::optional<std::size_t> between(std::size_t one, std::size_t other) const;
  std::optional<std::size_t> port_at(std::size_t joint, std::size_t host) const;
  bool are_cables() const;  // all of them

  std::string text(std::size_t joint) const;  // "node1 eth1, node2 eth3"

 private:
  void join();
  void check_joint(const Joint& joint);
  void check_silence();
  void check_pairs();
  void check_whole();

  const Cables& cables_;
  std::vector<Joint> joints_;
  std::vector<std::vector<std::size_t>> of_host_;
  std::vector<std::string> faults_;
};

// Sets of numbers below `size` that are put together two at a time.
class Parts {
 public:
  explicit Parts(std::size_t size);
  void join(std::size_t one, std::size_t other);
  // [number]: its part. Parts are numbered by their least numbers.
  std::vector<std::size_t> numbers();

 private:
  std::size_t root(std::size_t number);

  std::vector<std::size_t> above_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_SETUP_JOINTS_H_
