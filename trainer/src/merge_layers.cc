// gradcube_merge_layers(): which layers' gradients travel as one message, by four policies.
//
//   wfbp       each layer alone, as soon as it is ready (MG-WFBP, section II-C)
//   synceasgd  all layers in one message, after the backward pass (section I)
//   mgwfbp     MG-WFBP's Algorithm 1
//   optimal    the messages with which the iteration ends first
//
// The backward pass goes from the last layer to the first. A layer's gradients are ready when its
// part of the pass ends (mu_b, Eq. 6). A message has the gradients of adjacent layers. It leaves
// when the first of them, which comes last in the pass, is ready and the message before has been
// all-reduced (Eq. 7, 15 and 20); an all-reduce of M bytes takes T_ar(M) = a + bM (Eq. 9). The
// iteration ends with its last message (Eq. 8 and 21).
//
// Theorem 1 says that Algorithm 1 finds the least iteration time. It does not: its condition,
// tau_b^(l-2) - tau_c^(l) < a, compares only when the gradients of layer l-1 have travelled, with
// and without layer l among them, and counts on l-1 to travel next. If l-1 is then merged into l-2,
// layer l need not have waited. docs/mg-wfbp.md has the smallest example, with three layers.
//
// `optimal` is exact. Let end(l) be the earliest time at which the layers l..L have travelled. The
// message with layer l has some layers l..m, and an earlier end of those above m never hurts, so
//
//   end(l) = min over m of max(end(m+1), ready(l)) + a + b * bytes(l..m)
//
// Of messages with equal ends it takes the fewest.
//
// Where the text leaves a choice: Algorithm 1 reads tau_b[0], which it never sets; it is the end of
// the backward pass, when layer 1 is ready. The condition of the proof of Theorem 1 has b where the
// theorem has a; a is meant, as C.2 before it shows.
//
// Units: seconds and bytes. Layers count from 0 here, from the first to the last; the paper's l is
// one more. Equal inputs give equal bits, so all trainers merge alike. Steps: O(L) for the first
// two policies, O(L^2) for the others. Any thread; owns nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "trainer/src/abi.h"
#include "trainer/src/base/failure.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

namespace {

constexpr std::size_t kMostLayers = 10'000;  // the policies take O(L^2) steps
// So that no sum of times is infinite.
constexpr double kMostSeconds = 1e9;
constexpr double kMostSecondsPerByte = 1;
// Sums of fewer bytes are exact in a double.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 53;

using Layers = std::span<const gradcube_layer>;
// Of each layer: whether it is the first of a message. The first layer always is.
using Begins = std::vector<bool>;

struct Cost {
  double a = 0;
  double b = 0;

  double seconds(std::uint64_t bytes) const { return a + b * static_cast<double>(bytes); }
};

[[noreturn]] void refuse(const std::string& what) { throw Failure(GRADCUBE_EINVAL, what); }

// Not so of a NaN.
bool is_time(double seconds, double most) { return seconds >= 0 && seconds <= most; }

void check_layers(const Cost& cost, const gradcube_layer* layers, std::size_t count) {
  if (!is_time(cost.a, kMostSeconds) || !is_time(cost.b, kMostSecondsPerByte)) {
    refuse("alpha and beta are seconds, 0 to 10^9, and seconds per byte, 0 to 1");
  }
  if (layers == nullptr) refuse("the pointer 'layers' is NULL");
  if (count == 0 || count > kMostLayers) {
    refuse(std::to_string(count) + " layers: expected 1 to " + std::to_string(kMostLayers));
  }
  std::uint64_t all_bytes = 0;
  for (std::size_t l = 0; l < count; ++l) {
    if (!is_time(layers[l].backward_seconds, kMostSeconds)) {
      refuse("the backward_seconds of layer " + std::to_string(l) +
             " are no time: expected 0 to 10^9");
    }
    if (layers[l].bytes > kMostBytes - all_bytes) {
      refuse("layers 0 to " + std::to_string(l) + " have more than 2^53 bytes");
    }
    all_bytes += layers[l].bytes;
  }
}

// When each layer's gradients are ready (mu_b).
std::vector<double> ready_seconds(Layers layers) {
  std::vector<double> ready(layers.size());
  double now = 0;
  for (std::size_t l = layers.size(); l-- > 0;) {
    now += layers[l].backward_seconds;
    ready[l] = now;
  }
  return ready;
}

Begins synceasgd(Layers layers) {
  Begins begins(layers.size());
  begins[0] = true;
  return begins;
}

// Algorithm 1, in its names: layers count from 1, and layer l is ready at tau_b[l - 1].
Begins mgwfbp(Layers layers, const Cost& cost) {
  const std::size_t L = layers.size();
  const std::vector<double> tau_b = ready_seconds(layers);
  std::vector<std::uint64_t> p(L + 1);
  std::vector<double> tc(L + 1);
  std::vector<double> tau_c(L + 1);
  for (std::size_t l = 1; l <= L; ++l) {
    p[l] = layers[l - 1].bytes;
    tc[l] = cost.seconds(p[l]);
  }
  const auto calculate_comm_start = [&] {
    tau_c[L] = tau_b[L - 1];
    for (std::size_t l = L - 1; l >= 1; --l) {
      tau_c[l] = std::max(tau_c[l + 1] + tc[l + 1], tau_b[l - 1]);
    }
  };
  calculate_comm_start();
  Begins begins(L, true);
  for (std::size_t l = L; l >= 2; --l) {
    if (tau_b[l - 2] - tau_c[l] >= cost.a) continue;
    begins[l - 1] = false;
    tc[l] = 0;
    p[l - 1] += p[l];
    tc[l - 1] = cost.seconds(p[l - 1]);
    calculate_comm_start();
  }
  return begins;
}

Begins optimal(Layers layers, const Cost& cost) {
  // How the layers from one on travel best.
  struct Best {
    double end = 0;
    std::size_t messages = 0;
    std::size_t last = 0;  // of the message with the layer
  };
  const std::vector<double> ready = ready_seconds(layers);
  std::vector<Best> best(layers.size() + 1);
  for (std::size_t l = layers.size(); l-- > 0;) {
    std::uint64_t bytes = 0;
    for (std::size_t m = l; m < layers.size(); ++m) {
      bytes += layers[m].bytes;
      const Best& above = best[m + 1];
      const double end = std::max(above.end, ready[l]) + cost.seconds(bytes);
      const std::size_t messages = above.messages + 1;
      if (m == l || std::tie(end, messages) < std::tie(best[l].end, best[l].messages)) {
        best[l] = {.end = end, .messages = messages, .last = m};
      }
    }
  }
  Begins begins(layers.size());
  for (std::size_t l = 0; l < layers.size(); l = best[l].last + 1) begins[l] = true;
  return begins;
}

Begins begins_of(int policy, Layers layers, const Cost& cost) {
  switch (policy) {
    case GRADCUBE_WFBP:
      return Begins(layers.size(), true);
    case GRADCUBE_SYNCEASGD:
      return synceasgd(layers);
    case GRADCUBE_MGWFBP:
      return mgwfbp(layers, cost);
    case GRADCUBE_OPTIMAL:
      return optimal(layers, cost);
    default:
      refuse("there is no policy " + std::to_string(policy) + ": see gradcube_merge_policy");
  }
}

void merge_layers(int policy, const Cost& cost, Layers layers, std::size_t* message_of) {
  if (message_of == nullptr) refuse("the pointer 'message_of' is NULL");
  const Begins begins = begins_of(policy, layers, cost);
  std::size_t number = 0;
  for (std::size_t l = layers.size(); l-- > 0;) {
    message_of[l] = number;
    if (begins[l]) ++number;
  }
}

}  // namespace

}  // namespace gradcube::trainer

extern "C" int gradcube_merge_layers(int policy, double alpha, double beta,
                                     const gradcube_layer* layers, size_t count,
                                     size_t* message_of) {
  using gradcube::trainer::abi::fail_on_thread;
  try {
    const gradcube::trainer::Cost cost{.a = alpha, .b = beta};
    gradcube::trainer::check_layers(cost, layers, count);
    gradcube::trainer::merge_layers(policy, cost, {layers, count}, message_of);
    return GRADCUBE_OK;
  } catch (const gradcube::trainer::Failure& failure) {
    return fail_on_thread(failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    return fail_on_thread(GRADCUBE_ENOMEM, "no memory to merge layers");
  }
}
