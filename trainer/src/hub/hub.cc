#include "trainer/src/hub/hub.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>
#include <sys/mman.h>
#include <sys/stat.h>
#include <utility>
#define XXH_INLINE_ALL  // no library of it is needed
#include <xxhash.h>

#include "control/base/errors.h"
#include "control/checkpoint/hub_key.h"
#include "trainer/shared_layout.h"
#include "trainer/src/base/elements.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/base/quoted.h"
#include "trainer/src/base/sized.h"
#include "trainer/src/hub/hub_saving.h"

namespace gradcube::trainer {
namespace {

using control::kLongestKeyName;
using control::kMostKeys;

constexpr std::size_t kLongestOptimizer = std::size_t{1} << 20;  // keys may have their own
constexpr std::size_t kAlignment = 64;

[[noreturn]] void refuse_hub(const std::string& what) { throw Failure(GRADCUBE_EINVAL, what); }

[[noreturn]] void refuse_memory() {
  throw Failure(GRADCUBE_EPROTOCOL,
                "the daemon made another hub than it was asked for: use the library that came with "
                "the daemon");
}

// The keys by name, which begin to be checked here.
std::vector<control::HubKey> ordered(const gradcube_hub_key* given, std::size_t count) {
  std::vector<control::HubKey> keys;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string which = "key " + std::to_string(i) + " of the hub";
    if (given[i].name == nullptr) refuse_hub("the name of " + which + " is NULL");
    const std::size_t length = std::strlen(given[i].name);
    if (length == 0 || length > kLongestKeyName) {
      refuse_hub("the name of " + which + " has " + std::to_string(length) +
                 " bytes: expected 1 to " + std::to_string(kLongestKeyName));
    }
    if (element_size(given[i].dtype) == 0) {
      refuse_hub("the dtype of " + which + ", " + in_quotes(given[i].name) + ", is " +
                 std::to_string(given[i].dtype) +
                 ": expected GRADCUBE_FLOAT32, GRADCUBE_FLOAT16 or GRADCUBE_BFLOAT16");
    }
    keys.push_back(
        {given[i].name, given[i].elements, static_cast<aggregation::DataType>(given[i].dtype)});
  }
  try {
    return control::ordered_keys(std::move(keys), "the keys of the hub");
  } catch (const control::UsageError& error) {
    refuse_hub(error.what());
  }
}

std::vector<std::uint32_t> aggregators_of(const gradcube_hub_settings& settings) {
  std::span<const std::uint64_t> given(&settings.aggregator, 1);
  if (settings.aggregators != nullptr || settings.aggregator_count != 0) {
    if (settings.aggregator != GRADCUBE_HUB_NO_AGGREGATOR || settings.aggregators == nullptr ||
        settings.aggregator_count == 0 || settings.aggregator_count > shared::kMostAggregators) {
      refuse_hub("the hub has " + std::to_string(settings.aggregator_count) +
                 " aggregators: expected a list of 1 to " +
                 std::to_string(shared::kMostAggregators) + ", and no other aggregator beside it");
    }
    given = {settings.aggregators, settings.aggregator_count};
  } else if (settings.aggregator == GRADCUBE_HUB_NO_AGGREGATOR) {
    return {};
  }
  std::vector<std::uint32_t> aggregators;
  for (const std::uint64_t server : given) {
    if (server >= UINT32_MAX) {
      refuse_hub("the aggregator of the hub is " + std::to_string(server) +
                 ": expected the number of a server, or GRADCUBE_HUB_NO_AGGREGATOR");
    }
    aggregators.push_back(static_cast<std::uint32_t>(server));
  }
  std::ranges::sort(aggregators);
  const auto twice = std::ranges::adjacent_find(aggregators);
  if (twice != aggregators.end()) {
    refuse_hub("the hub has the aggregator " + std::to_string(*twice) + " twice");
  }
  return aggregators;
}

template <typename T>
void append(std::vector<char>& to, const T& value) {
  const auto* bytes = reinterpret_cast<const char*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

}  // namespace

Hub::Hub(const gradcube_hub_settings& given, std::uint32_t number) : number_(number) {
  gradcube_hub_settings settings = GRADCUBE_HUB_SETTINGS_INIT;
  constexpr std::size_t kFirst =
      offsetof(gradcube_hub_settings, lane) + sizeof(gradcube_hub_settings::lane);
  const std::string problem =
      read_sized(&given, kFirst, "gradcube_hub_settings", "GRADCUBE_HUB_SETTINGS_INIT", settings);
  if (!problem.empty()) refuse_hub(problem);
  if (settings.keys == nullptr) refuse_hub("the keys of the hub are NULL");
  if (settings.key_count == 0 || settings.key_count > kMostKeys) {
    refuse_hub("a hub with " + std::to_string(settings.key_count) + " keys: expected 1 to " +
               std::to_string(kMostKeys));
  }
  lane_ = settings.lane;
  chunk_bytes_ = settings.chunk_bytes;
  if (settings.reserved != 0) refuse_hub("a reserved field of the hub is not 0");
  aggregators_ = aggregators_of(settings);
  if (settings.staleness != GRADCUBE_HUB_SYNCHRONOUS) {
    if (!has_aggregator()) refuse_hub("only a hub with an aggregator can be asynchronous");
    if (settings.staleness >= shared::kSynchronous) {
      refuse_hub("the staleness of the hub is " + std::to_string(settings.staleness) +
                 ": expected at most " + std::to_string(shared::kSynchronous - 1) +
                 ", or GRADCUBE_HUB_SYNCHRONOUS");
    }
    staleness_ = static_cast<std::uint32_t>(settings.staleness);
  }
  if (settings.accumulate > 1) {
    refuse_hub("accumulate of the hub is " + std::to_string(settings.accumulate) +
               ": expected 0 or 1");
  }
  accumulates_ = settings.accumulate != 0;
  if (accumulates_ && is_asynchronous()) refuse_hub("an asynchronous hub cannot accumulate");
  optimizer_ = settings.optimizer == nullptr ? "sgd" : settings.optimizer;
  if (optimizer_.size() > kLongestOptimizer) refuse_hub("the optimizer's text is too long");
  ordered_ = ordered(settings.keys, settings.key_count);
  by_name_.resize(ordered_.size());
  keys_.resize(ordered_.size());
  for (std::size_t place = 0; place < keys_.size(); ++place) {
    const auto found = std::lower_bound(
        ordered_.begin(), ordered_.end(), settings.keys[place].name,
        [](const control::HubKey& key, const char* name) { return key.name < name; });
    Key& key = keys_[place];
    key.name = found->name;
    key.elements = found->elements;
    key.dtype = static_cast<int>(found->type);
    key.bytes = found->bytes();
    key.number = static_cast<std::uint32_t>(found - ordered_.begin());
    by_name_[key.number] = place;
  }
  for (const std::size_t place : by_name_) {
    keys_[place].begin = bytes_;
    bytes_ += (keys_[place].bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
}

// What was read of the daemon's memory before.
static bool is_there(const std::uint32_t& readable) {
  std::atomic_thread_fence(std::memory_order_acquire);
  return __atomic_load_n(&readable, __ATOMIC_RELAXED) != 0;
}

HubMapping::~HubMapping() {
  private_in_child_.reset();
  if (shown_ != nullptr) ::munmap(shown_, bytes_);
  ::munmap(base_, bytes_);
}

const std::byte* HubMapping::show(std::size_t bytes, const std::uint32_t& readable) {
  const std::lock_guard lock(mutex_);
  if (shown_ != nullptr) return shown_;
  void* view = ::mremap(base_, 0, bytes_, MREMAP_MAYMOVE);  // of shared memory: a second view
  if (view == MAP_FAILED) return nullptr;
  auto* const shown = static_cast<std::byte*>(view);
  try {
    private_in_child_.emplace(std::span(shown, bytes_), [this, shown, bytes] {
      if (!has_weights_) throw std::bad_alloc();
      return std::vector<std::span<const std::byte>>{{shown, bytes}};
    });
  } catch (...) {
    ::munmap(view, bytes_);
    throw;
  }
  shown_bytes_ = bytes;
  readable_ = &readable;
  return shown_ = shown;
}

void HubMapping::set_has_weights(bool has_weights) {
  const std::lock_guard lock(mutex_);
  has_weights_ = has_weights;
}

void HubMapping::keep_shown() noexcept {
  const std::lock_guard lock(mutex_);
  if (shown_ == nullptr || is_closed_) return;
  if (!has_weights_) return close_shown(lock);
  void* copy = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return close_shown(lock);
  std::memcpy(copy, base_, shown_bytes_);
  bool is_kept = is_there(*readable_) && ::mprotect(copy, bytes_, PROT_READ) == 0;
  if (is_kept) {
    private_in_child_->end([&] {
      is_kept = ::mremap(copy, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, shown_) != MAP_FAILED;
    });
  }
  if (!is_kept) {
    ::munmap(copy, bytes_);
    return close_shown(lock);
  }
  is_closed_ = true;
}

void HubMapping::close_shown() noexcept {
  const std::lock_guard lock(mutex_);
  close_shown(lock);
}

void HubMapping::close_shown(const std::lock_guard<std::mutex>&) noexcept {
  if (shown_ == nullptr || std::exchange(is_closed_, true)) return;
  private_in_child_->end([this] {
    constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    // Where the kernel refuses, what was shown stays.
    [[maybe_unused]] const void* nothing = ::mmap(shown_, bytes_, PROT_NONE, kNothing, -1, 0);
  });
}

Hub::~Hub() {
  if (mapping_ != nullptr) mapping_->close_shown();
}

void Hub::disown() noexcept {
  [[maybe_unused]] const HubSaving* parents = saving.release();
  mapping_.reset();
}

std::vector<char> Hub::table() const {
  std::vector<char> table;
  append(table, shared::HubTable{chunk_bytes_, static_cast<std::uint32_t>(keys_.size()),
                                 static_cast<std::uint32_t>(optimizer_.size()),
                                 static_cast<std::uint32_t>(aggregators_.size()), staleness_,
                                 accumulates_ ? 1U : 0U, 0});
  table.insert(table.end(), optimizer_.begin(), optimizer_.end());
  for (const std::uint32_t aggregator : aggregators_) append(table, aggregator);
  for (const control::HubKey& key : ordered_) {
    append(table, shared::HubTableKey{key.elements, static_cast<std::uint32_t>(key.name.size()),
                                      static_cast<std::uint32_t>(key.type)});
    table.insert(table.end(), key.name.begin(), key.name.end());
  }
  return table;
}

// Against accidents, not against trainers of the same job.
std::uint64_t Hub::digest() const {
  std::vector<char> told = table();
  append(told, lane_);
  append(told, number_);
  return XXH3_64bits(told.data(), told.size());
}

std::vector<Hub::Owned> Hub::to_restore() const {
  if (!has_aggregator()) return owned_;
  std::vector<Owned> all;
  for (std::size_t number = 0; number < size(); ++number) {
    all.push_back({static_cast<std::uint32_t>(number), 0, key_by_name(number).elements, {}});
  }
  return all;
}

std::size_t Hub::bytes_to_restore(const Key& key) const {
  const std::size_t size = element_size(key.dtype);
  const std::size_t states = aggregation::optimizer_states(settings_.rule);
  return shared::restored_array(key.elements, size, shared::restored_arrays(size, states));
}

void Hub::map_memory(int descriptor) {
  struct stat file {};
  if (::fstat(descriptor, &file) != 0) {
    throw Failure(GRADCUBE_ESYSTEM, with_system_error("cannot look at the hub's memory", errno));
  }
  const auto bytes = static_cast<std::size_t>(file.st_size);
  if (bytes < bytes_) refuse_memory();
  void* mapping = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  if (mapping == MAP_FAILED) {
    throw Failure(GRADCUBE_ESYSTEM, with_system_error("cannot map the hub's memory", errno));
  }
  mapping_ = std::make_shared<HubMapping>(static_cast<std::byte*>(mapping), bytes);
  read_state();
}

int Hub::end_code(std::uint32_t& notice) const {
  const int code = __atomic_load_n(&state().end_code, __ATOMIC_ACQUIRE);
  notice = __atomic_load_n(&state().end_notice, __ATOMIC_RELAXED);
  return code;
}

bool Hub::is_readable() const { return is_there(state().readable); }

void Hub::read_state() {
  const auto require = [](bool right) {
    if (!right) refuse_memory();
  };
  const std::size_t all = mapping_->bytes();
  require(all - bytes_ >= sizeof(shared::HubHeader));
  const shared::HubHeader& its = state();
  const std::size_t room = all - bytes_ - sizeof(shared::HubHeader);
  require(its.rule < aggregation::kOptimizerRules);
  require(its.ranges <= room / sizeof(shared::HubRange));
  const double* const numbers = its.settings;
  settings_ = {.rule = static_cast<aggregation::OptimizerRule>(its.rule),
               .learning_rate = numbers[0],
               .momentum = numbers[1],
               .dampening = numbers[2],
               .beta1 = numbers[3],
               .beta2 = numbers[4],
               .epsilon = numbers[5],
               .weight_decay = numbers[6],
               .clip = numbers[7]};
  const auto* const ranges = reinterpret_cast<const shared::HubRange*>(&its + 1);
  for (std::uint32_t i = 0; i < its.ranges; ++i) {
    const shared::HubRange& range = ranges[i];
    require(range.key < keys_.size());
    const std::uint64_t elements = key_by_name(range.key).elements;
    require(range.elements != 0 && range.elements <= elements &&
            range.first_element <= elements - range.elements);
    if (i != 0) {
      const Owned& before = owned_.back();
      require(before.key < range.key ||
              (before.key == range.key &&
               before.first_element + before.elements <= range.first_element));
    }
    Owned& owned = owned_.emplace_back();
    owned.key = range.key;
    owned.first_element = range.first_element;
    owned.elements = range.elements;
    for (std::size_t a = 0; a < arrays(); ++a) {
      const std::uint64_t at = range.arrays[a];
      require(at % sizeof(float) == 0 && at <= all && range.elements <= (all - at) / sizeof(float));
      owned.arrays[a] = reinterpret_cast<const float*>(memory() + at);
    }
  }
}

}  // namespace gradcube::trainer
