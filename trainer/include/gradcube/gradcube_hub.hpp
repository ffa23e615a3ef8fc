// gradcube_hub.hpp: the C++ binding of gradcube_hub.h, on top of gradcube.hpp.
//
//     gradcube::Hub hub(session, {{"fc.weight", 7840}, {"fc.bias", 10}},
//                       {.optimizer = "momentum:lr=0.1,momentum=0.9"});
//     std::vector<gradcube::Request> requests;
//     for (std::size_t k = 0; k < 2; ++k) requests.push_back(hub.init(k, std::span(weights[k])));
//     for (auto& request : requests) request.wait();
//     ... in each iteration, as soon as the gradients of key k are there:
//     auto request = hub.push_pull(k, gradients[k].span(), std::span(weights[k]));
//     ... other work ...
//     request.wait(std::chrono::seconds(60));
//     hub.free();
//
// A key is named by its place in the list that the hub was made with. What is pushed and what gets
// weights has the key's type and length, or the call throws. Errors, requests, threads and forks
// are as in gradcube.hpp.
//
// Lifetime. free() waits for the job's other trainers. A hub that is destroyed without it waits for
// them, too, but three seconds at most, and not at all where an exception is on its way; nothing is
// thrown then. Requests keep what they need: one may be waited for when its hub is gone.
#ifndef GRADCUBE_HUB_HPP_
#define GRADCUBE_HUB_HPP_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <gradcube/gradcube.hpp>
#include <gradcube/gradcube_hub.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gradcube {

// A tensor of weights: see gradcube_hub_key.
struct HubKey {
  std::string name;
  std::size_t elements = 0;
  gradcube_dtype dtype = GRADCUBE_FLOAT32;
};

// See gradcube_hub_settings, which has the same fields and defaults.
struct HubSettings {
  std::string optimizer = "sgd";
  std::size_t chunk_bytes = 0;
  unsigned lane = 0;
  std::uint64_t aggregator = GRADCUBE_HUB_NO_AGGREGATOR;
  std::uint64_t staleness = GRADCUBE_HUB_SYNCHRONOUS;
  std::vector<std::uint64_t> aggregators = {};
  std::uint64_t accumulate = 0;
};

class Hub {
 public:
  // The optimizer's own learning rate, of a push.
  static constexpr double kRate = GRADCUBE_HUB_RATE;

  // All trainers of the job make it, and it throws on all of them alike: see gradcube_hub_create().
  // A negative `timeout` means no limit.
  Hub(Session& session, std::vector<HubKey> keys, const HubSettings& settings = {},
      std::chrono::duration<double, std::milli> timeout = std::chrono::milliseconds(-1))
      : keys_(std::move(keys)), made_(std::make_shared<Made>()) {
    std::vector<gradcube_hub_key> given;
    for (const HubKey& key : keys_) given.push_back({key.name.c_str(), key.elements, key.dtype});
    gradcube_hub_settings wanted = GRADCUBE_HUB_SETTINGS_INIT;
    wanted.keys = given.data();
    wanted.key_count = given.size();
    wanted.optimizer = settings.optimizer.c_str();
    wanted.chunk_bytes = settings.chunk_bytes;
    wanted.lane = settings.lane;
    wanted.aggregator = settings.aggregator;
    wanted.staleness = settings.staleness;
    if (!settings.aggregators.empty()) wanted.aggregators = settings.aggregators.data();
    wanted.aggregator_count = settings.aggregators.size();
    wanted.accumulate = settings.accumulate;
    made_->session = session.session_;
    check(
        gradcube_hub_create(session.handle(), &wanted, detail::milliseconds(timeout), &made_->hub));
  }
  Hub(Hub&&) noexcept = default;
  Hub& operator=(Hub&& other) noexcept {
    if (this != &other) {
      end();
      keys_ = std::move(other.keys_);
      made_ = std::move(other.made_);
    }
    return *this;
  }
  ~Hub() { end(); }

  const std::vector<HubKey>& keys() const { return keys_; }

  // Each starts a round of the key: see gradcube_hub_init() and those that follow it. `memory`
  // belongs to the daemon until the request's end was reported, and `weights`, which get the new
  // ones then, may be the same.

  template <typename T>
  requires Element<std::remove_const_t<T>> Request init(std::size_t key, std::span<T> memory) {
    expect(key, memory);
    std::uint64_t number = 0;
    check(gradcube_hub_init(hub(), key, memory.data(), &number));
    return request(number);
  }

  template <typename T>
  requires Element<std::remove_const_t<T>> Request push(std::size_t key, std::span<T> memory,
                                                        double rate = kRate) {
    expect(key, memory);
    std::uint64_t number = 0;
    check(gradcube_hub_push(hub(), key, memory.data(), rate, &number));
    return request(number);
  }

  template <typename T, Element Weight>
  requires Element<std::remove_const_t<T>> Request push_pull(std::size_t key, std::span<T> memory,
                                                             std::span<Weight> weights,
                                                             double rate = kRate) {
    expect(key, memory);
    expect(key, weights);
    std::uint64_t number = 0;
    check(gradcube_hub_push_pull(hub(), key, memory.data(), weights.data(), rate, &number));
    return request(number);
  }

  // Steps of two kinds of rounds: see gradcube_hub_accumulate().
  template <typename T>
  requires Element<std::remove_const_t<T>> Request accumulate(std::size_t key,
                                                              std::span<T> memory) {
    expect(key, memory);
    std::uint64_t number = 0;
    check(gradcube_hub_accumulate(hub(), key, memory.data(), &number));
    return request(number);
  }
  double norm() {
    double norm = 0;
    check(gradcube_hub_norm(hub(), &norm));
    return norm;
  }
  template <Element Weight>
  Request apply(std::size_t key, std::span<Weight> weights, double scale = 1, double rate = kRate) {
    expect(key, weights);
    return apply_to(key, weights.data(), scale, rate);
  }
  // The new weights stay at the server.
  Request apply(std::size_t key, double scale = 1, double rate = kRate) {
    return apply_to(key, nullptr, scale, rate);
  }

  // Copies the key's weights, which are here already. Not while a push of the key is in flight.
  template <Element T>
  void pull(std::size_t key, std::span<T> weights) {
    expect(key, weights);
    check(gradcube_hub_pull(hub(), key, weights.data()));
  }

  // The key's weights where they lie: only while no push of the key is in flight, and not after
  // free().
  template <Element T>
  std::span<const T> weights(std::size_t key) {
    expect_type<T>(key);
    const void* const weights = gradcube_hub_weights(hub(), key);
    if (weights == nullptr) check(gradcube_last_code(made_->session.get()));
    return {static_cast<const T*>(weights), keys_[key].elements};
  }

  // Begins to write what this server owns, and goes on: see gradcube_hub_begin_checkpoint().
  void begin_checkpoint(const std::string& path, std::uint64_t step) {
    check(gradcube_hub_begin_checkpoint(hub(), path.c_str(), step));
  }
  // Waits until all servers have written theirs: then it counts.
  void end_checkpoint(
      std::chrono::duration<double, std::milli> timeout = std::chrono::milliseconds(-1)) {
    check(gradcube_hub_end_checkpoint(hub(), detail::milliseconds(timeout)));
  }
  // Takes back the newest checkpoint that all servers have, in place of init(), and returns its
  // step; nothing where no server has one.
  std::optional<std::uint64_t> restore(
      const std::string& path,
      std::chrono::duration<double, std::milli> timeout = std::chrono::milliseconds(-1)) {
    std::uint64_t step = 0;
    check(gradcube_hub_restore(hub(), path.c_str(), detail::milliseconds(timeout), &step));
    if (step == GRADCUBE_HUB_NO_STEP) return std::nullopt;
    return step;
  }

  // Waits until all trainers of the job have called it, and frees the hub. Throws with
  // GRADCUBE_EAGAIN, and frees nothing, while pushes are in flight; it is freed with all other
  // errors.
  void free(std::chrono::duration<double, std::milli> timeout = std::chrono::milliseconds(-1)) {
    const int limit = detail::milliseconds(timeout);
    hub();  // throws where it was freed before
    check(made_->free(limit));
  }

 private:
  // Lives as long as the hub and its requests.
  struct Made {
    Made() = default;
    Made(const Made&) = delete;
    Made& operator=(const Made&) = delete;
    // Where its requests have outlived the hub.
    ~Made() { free(0); }

    int free(int milliseconds) {
      if (hub == nullptr) return GRADCUBE_OK;
      const int code = gradcube_hub_free(hub, milliseconds);
      if (code != GRADCUBE_EAGAIN) hub = nullptr;
      return code;
    }

    std::shared_ptr<gradcube_session> session;
    gradcube_hub* hub = nullptr;
  };

  static constexpr int kPatience = 3000;  // milliseconds

  void end() noexcept {
    if (made_ != nullptr) made_->free(std::uncaught_exceptions() > exceptions_ ? 0 : kPatience);
    made_.reset();
  }

  gradcube_hub* hub() const {
    if (made_ == nullptr || made_->hub == nullptr) {
      throw Error(GRADCUBE_EINVAL, "this hub was freed: make another one");
    }
    return made_->hub;
  }

  void check(int code) const { detail::check(code, made_->session.get()); }

  Request apply_to(std::size_t key, void* weights, double scale, double rate) {
    std::uint64_t number = 0;
    check(gradcube_hub_apply(hub(), key, weights, scale, rate, &number));
    return request(number);
  }

  Request request(std::uint64_t number) const {
    return Request(std::shared_ptr<gradcube_session>(made_, made_->session.get()), number);
  }

  template <typename T>
  void expect_type(std::size_t key) const {
    if (key >= keys_.size()) {
      throw Error(GRADCUBE_EINVAL, "the hub has no key " + std::to_string(key) +
                                       ": expected 0 to " + std::to_string(keys_.size() - 1));
    }
    if (detail::DtypeOf<std::remove_const_t<T>>::value == keys_[key].dtype) return;
    throw Error(GRADCUBE_EINVAL, "key \"" + keys_[key].name + "\" of the hub has another type");
  }

  template <typename T>
  void expect(std::size_t key, std::span<T> memory) const {
    expect_type<T>(key);
    if (memory.size() == keys_[key].elements) return;
    throw Error(GRADCUBE_EINVAL, "key \"" + keys_[key].name + "\" of the hub has " +
                                     std::to_string(keys_[key].elements) + " elements, and " +
                                     std::to_string(memory.size()) + " were given");
  }

  std::vector<HubKey> keys_;
  std::shared_ptr<Made> made_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace gradcube

#endif  // GRADCUBE_HUB_HPP_
