// Gloo's ring all-reduce (the one torch.distributed's gloo backend runs) over TCP, as a peer for
// `gradcube perf allreduce`: over loopback, or wherever --address is this rank's. One process per
// rank, which meet through files in --store, an empty directory that the launcher makes and removes
// (scripts/bench_peers.py).

#include <cstdio>
#include <exception>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <memory>
#include <span>
#include <stdexcept>

#include "tests/bench/peers/peer_bench.h"

namespace gradcube::bench {
namespace {

class GlooPeer {
 public:
  explicit GlooPeer(const PeerOptions& options) {
    if (options.rank >= options.ranks) throw std::invalid_argument("--rank: less than --ranks");
    if (options.store.empty()) throw std::invalid_argument("--store: a directory is needed");
    gloo::rendezvous::FileStore store(options.store);
    auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.ranks);
    auto device =
        gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(options.address.c_str()));
    context->connectFullMesh(store, device);
    context_ = context;
  }

  int rank() const { return context_->rank; }
  int ranks() const { return context_->size; }

  void barrier() {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }

  void allreduce_sum(std::span<float> buffer) { allreduce(buffer, &gloo::sum<float>); }

  double max_over_ranks(double seconds) {
    allreduce(std::span<double>(&seconds, 1), &gloo::max<double>);
    return seconds;
  }
  double sum_over_ranks(double seconds) {
    allreduce(std::span<double>(&seconds, 1), &gloo::sum<double>);
    return seconds;
  }

 private:
  template <typename T>
  void allreduce(std::span<T> buffer, void (*add)(void*, const void*, const void*, std::size_t)) {
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setOutput(buffer.data(), buffer.size());  // no input: in place
    options.setReduceFunction(add);
    gloo::allreduce(options);
  }

  std::shared_ptr<gloo::Context> context_;
};

}  // namespace
}  // namespace gradcube::bench

int main(int argc, char** argv) {
  try {
    const auto options = gradcube::bench::parse_options({argv, static_cast<std::size_t>(argc)});
    gradcube::bench::GlooPeer peer(options);
    gradcube::bench::run_peer(peer, options);
    peer.barrier();  // leave together: a rank that goes early resets its peers' connections
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo_ring: %s\n", error.what());
    return 2;
  }
  return 0;
}
