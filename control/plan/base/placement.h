// Where the ranks of a job are: which server has which rank.
//
// Ranks ascend with the numbers of the servers. Most often the servers of a job form a grid: at
// every level of the topology they have some of the digits, and every combination of these digits
// is one of them. All servers of a whole topology form a grid; so do the servers under one switch,
// and any rectangle. Others do not, such as all servers of most partial topologies: then a
// placement has no dimensions, and only algorithms that need none run on it (requirements.h).
//
// The ranks of a grid form the LOGICAL GRID. It has a dimension for each level at which the servers
// have more than one digit; a level with a single digit vanishes. A rank's digit in a dimension is
// the place of the server's digit among those of its level.
//
// A job may have several trainers on each of its servers: then they are the innermost dimension,
// below all that the plan's steps number. The ranks of a plan stay those of servers; a trainer's is
// its server's rank times the trainers per server plus its number there (local_stage.h).
//
// Of a grid only the digits are kept, so that a placement of 65536 servers takes as little memory
// as the sum of the radices. Immutable after construction; any thread may read it, and nothing
// allocates then.
#ifndef GRADCUBE_CONTROL_PLAN_BASE_PLACEMENT_H_
#define GRADCUBE_CONTROL_PLAN_BASE_PLACEMENT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/plan/base/step_pattern.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// A dimension of the logical grid.
struct GridDimension {
  unsigned level = 0;  // of grid_space(), and so the topology's dimension
  unsigned radix = 0;
  std::uint32_t stride = 0;  // how much the rank grows with the digit

  bool operator==(const GridDimension&) const = default;
};

// Of a job on one server.
inline constexpr unsigned kMaxLocalTrainers = 16;
// A root has 16 bits on the wire.
inline constexpr std::uint32_t kMaxTrainers = 1 << 16;

// A trainer's place: its server, and its number among the job's trainers there.
struct TrainerPlace {
  ServerId server = 0;
  unsigned local = 0;

  bool operator==(const TrainerPlace&) const = default;
};

class Placement {
 public:
  // Every server of the topology. Its rank is its number, if none is absent.
  static Placement all(const Topology& topology);

  // The servers `members`, in any order. Throws a UsageError, which begins with `where`, when there
  // is none, or one does not exist or is named twice.
  static Placement of(const Topology& topology, std::span<const ServerId> members,
                      std::string_view where);

  const AddressSpace& space() const { return space_; }  // of the topology
  std::uint32_t ranks() const { return ranks_; }

  bool is_grid() const { return servers_.empty(); }
  // The smallest grid that has all of the servers; some of its own may be absent.
  Placement surrounding_grid() const;
  // Of no grid: the servers that are missing to one, "[1,1] is", "[0,1] [1,0] are".
  std::string missing_text() const;

  // By ascending level, and so by ascending stride. Empty for a single rank, and for no grid.
  const std::vector<GridDimension>& dimensions() const { return dimensions_; }

  // The same servers with so many trainers on each. Throws a UsageError, which begins with `where`,
  // unless they are 1 to kMaxLocalTrainers, and at most kMaxTrainers in all.
  Placement with_trainers(std::uint32_t per_server, std::string_view where) const;
  unsigned trainers_per_server() const { return trainers_per_server_; }
  std::uint32_t trainers() const { return ranks_ * trainers_per_server_; }

  // Of a trainer's rank, below trainers().
  TrainerPlace place(Rank trainer) const {
    return {server(trainer / trainers_per_server_), trainer % trainers_per_server_};
  }
  // Of a rank below ranks().
  ServerId server(Rank rank) const;

  // Nothing if this server, any number, has none.
  std::optional<Rank> rank(ServerId server) const;

  bool operator==(const Placement&) const = default;

 private:
  using DigitsByLevel = std::vector<std::vector<std::uint16_t>>;

  Placement(const AddressSpace& space, const AddressSpace& grid, DigitsByLevel digits);

  Placement(const AddressSpace& space, const AddressSpace& grid, std::vector<ServerId> servers);

  static DigitsByLevel digits_of(const AddressSpace& grid, std::span<const ServerId> members);

  AddressSpace space_;
  AddressSpace grid_;              // whose levels the dimensions are
  std::vector<ServerId> servers_;  // [rank], ascending: of no grid, which has no digits below
  DigitsByLevel digits_;           // [level]: ascending
  DigitsByLevel digit_indices_;    // [level][digit]: its place in digits_, or kNoIndex
  std::vector<GridDimension> dimensions_;
  std::uint32_t ranks_ = 1;
  unsigned trainers_per_server_ = 1;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_BASE_PLACEMENT_H_
