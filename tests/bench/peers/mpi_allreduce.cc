// Open MPI's MPI_Allreduce, in place, as a peer for `gradcube perf allreduce`. Which transport and
// which cores it uses is mpirun's business (scripts/bench.sh: shared memory, nine ranks).

#include <climits>
#include <cstdio>
#include <exception>
#include <mpi.h>
#include <span>
#include <stdexcept>

#include "tests/bench/peers/peer_bench.h"

namespace gradcube::bench {
namespace {

class MpiPeer {
 public:
  MpiPeer(int* argc, char*** argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  ~MpiPeer() { MPI_Finalize(); }
  MpiPeer(const MpiPeer&) = delete;
  MpiPeer& operator=(const MpiPeer&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

  void allreduce_sum(std::span<float> buffer) {
    if (buffer.size() > INT_MAX) throw std::invalid_argument("MPI counts elements in an int");
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), static_cast<int>(buffer.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }

  double max_over_ranks(double seconds) { return over_ranks(seconds, MPI_MAX); }
  double sum_over_ranks(double seconds) { return over_ranks(seconds, MPI_SUM); }

 private:
  static double over_ranks(double seconds, MPI_Op op) {
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
    return seconds;
  }

  int rank_ = 0;
  int ranks_ = 1;
};

}  // namespace
}  // namespace gradcube::bench

int main(int argc, char** argv) {
  gradcube::bench::MpiPeer peer(&argc, &argv);
  try {
    const auto options = gradcube::bench::parse_options({argv, static_cast<std::size_t>(argc)});
    gradcube::bench::run_peer(peer, options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi_allreduce: %s\n", error.what());
    // One rank that leaves alone would let the others wait for ever.
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return 0;
}
