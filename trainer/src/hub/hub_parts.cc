#include "trainer/src/hub/hub_parts.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "aggregation/element.h"
#include "control/base/errors.h"
#include "trainer/shared_layout.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/base/quoted.h"
#include "trainer/src/hub/hub_saving.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {
namespace {

using aggregation::DataType;
using control::CheckpointRange;

control::CheckpointReader open_file(const std::string& path) {
  return {control::open_checkpoint(path), "checkpoint " + in_quotes(path)};
}

// Calls with(first, elements) for all that the server owns of the range. What it owns ascends.
template <typename With>
void for_each_owned(const std::vector<Hub::Owned>& owned, const CheckpointRange& range,
                    const With& with) {
  const std::uint64_t end = range.first_element + range.elements;
  auto each = std::partition_point(owned.begin(), owned.end(), [&range](const Hub::Owned& its) {
    return std::pair(its.key, its.first_element + its.elements) <=
           std::pair(range.key, range.first_element);
  });
  for (; each != owned.end() && each->key == range.key && each->first_element < end; ++each) {
    const std::uint64_t first = std::max(each->first_element, range.first_element);
    with(first, std::min(each->first_element + each->elements, end) - first);
  }
}

// Elements that the server owns and the ranges have.
std::uint64_t in_both(const std::vector<Hub::Owned>& owned,
                      const std::vector<CheckpointRange>& ranges) {
  std::uint64_t elements = 0;
  for (const CheckpointRange& range : ranges) {
    for_each_owned(owned, range, [&](std::uint64_t, std::uint64_t count) { elements += count; });
  }
  return elements;
}

std::uint64_t elements_of(const std::vector<Hub::Owned>& owned) {
  std::uint64_t elements = 0;
  for (const Hub::Owned& each : owned) elements += each.elements;
  return elements;
}

void write_weight(DataType type, std::byte* to, float value) {
  if (type == DataType::float32) {
    std::memcpy(to, &value, sizeof(value));
    return;
  }
  const std::uint16_t bits = type == DataType::float16 ? aggregation::float32_to_float16(value)
                                                       : aggregation::float32_to_bfloat16(value);
  std::memcpy(to, &bits, sizeof(bits));
}

}  // namespace

HubParts::HubParts(const Hub& hub, const std::string& base, const CheckpointFile& own)
    : hub_(hub), wanted_(hub.to_restore()), arrays_(hub.arrays()), values_(arrays_) {
  try {
    choose(base, own);
    if (found_ != elements_of(wanted_) || steps_.empty()) {  // also where it owns nothing
      throw Failure(GRADCUBE_ESYSTEM,
                    "checkpoint " + in_quotes(base) + " of step " +
                        std::to_string(own.version.step) +
                        ": this server owns other parts of the model than when it was written, "
                        "and does not see the files of all parts: expected them in one folder");
    }
    for (const CheckpointFile& file : chosen_) open_file(path_of(base, file)).check_rest();
    for (const CheckpointFile& file : chosen_) files_.push_back({open_file(path_of(base, file))});
  } catch (const control::UsageError& error) {
    throw Failure(GRADCUBE_EINVAL, error.what());
  } catch (const control::SetupError& error) {
    throw Failure(GRADCUBE_ESYSTEM, error.what());
  }
}

void HubParts::choose(const std::string& base, const CheckpointFile& own) {
  std::vector<CheckpointFile> files = without_doubles(checkpoint_files(base));
  std::erase_if(files, [&](const CheckpointFile& file) { return file.version != own.version; });
  const auto mine = std::find_if(files.begin(), files.end(),
                                 [&own](const CheckpointFile& file) { return file.is_part(own); });
  if (mine != files.end() && add(base, *mine)) {
    // Also where it owns nothing of the model: the next checkpoint replaces it.
    if (chosen_.empty()) chosen_.push_back(*mine);
    return;
  }
  // One number of parts after the other, the own one first.
  std::sort(files.begin(), files.end(), [&own](const CheckpointFile& a, const CheckpointFile& b) {
    const auto order = [&own](const CheckpointFile& file) {
      return std::tuple(file.parts != own.parts, file.parts, file.part);
    };
    return order(a) < order(b);
  });
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i == 0 || files[i].parts != files[i - 1].parts) {
      chosen_.clear();
      found_ = 0;
    }
    if (add(base, files[i])) return;
  }
}

// True: nothing is missing any more.
bool HubParts::add(const std::string& base, const CheckpointFile& file) {
  const control::CheckpointReader reader = open_file(path_of(base, file));
  const control::CheckpointHeader& header = reader.header();
  if (header.step != file.version.step || header.part != file.part || header.parts != file.parts) {
    throw Failure(GRADCUBE_EINVAL, "checkpoint " + in_quotes(path_of(base, file)) +
                                       ": it has the name of another step or part");
  }
  reader.require_same_hub(hub_.keys_by_name(), hub_.optimizer().rule);
  if (found_ != 0 && header.run != run_) {
    throw Failure(GRADCUBE_EINVAL, "checkpoint " + in_quotes(path_of(base, file)) +
                                       ": another run has written it than the other parts");
  }
  if (found_ != 0 && header.steps != steps_) {
    throw Failure(GRADCUBE_EINVAL, "checkpoint " + in_quotes(path_of(base, file)) +
                                       ": it has keys after other pushes than the other parts");
  }
  const std::uint64_t found = in_both(wanted_, header.ranges);
  steps_ = header.steps;
  run_ = header.run;
  if (found != 0) chosen_.push_back(file);
  found_ += found;
  return found_ == elements_of(wanted_);
}

void HubParts::read_key(Session& session, std::size_t number, std::byte* to) {
  try {
    for (File& file : files_) {
      const std::vector<CheckpointRange>& ranges = file.reader.header().ranges;
      for (; file.next < ranges.size() && ranges[file.next].key <= number; ++file.next) {
        for (std::vector<float>& values : values_) {
          values.resize(file.reader.elements());
          file.reader.read(values);
        }
        if (ranges[file.next].key == number) {
          session.require_touch(to, [&] { take(hub_.key_by_name(number), ranges[file.next], to); });
        }
      }
    }
  } catch (const Failure&) {  // the session's memory is gone
    throw;
  } catch (const std::runtime_error& error) {  // the file was whole a moment ago
    throw Failure(GRADCUBE_ESYSTEM, error.what());
  }
}

void HubParts::take(const Hub::Key& key, const CheckpointRange& range, std::byte* to) const {
  const auto type = static_cast<DataType>(key.dtype);
  const std::size_t size = aggregation::element_bytes(type);
  const std::size_t first_array = size == sizeof(float) ? 1 : 0;
  for_each_owned(wanted_, range, [&](std::uint64_t first, std::uint64_t count) {
    const std::uint64_t from = first - range.first_element;
    for (std::uint64_t i = 0; i < count; ++i) {
      write_weight(type, to + (first + i) * size, values_[0][from + i]);
    }
    for (std::size_t a = first_array; a < arrays_; ++a) {
      std::byte* array = to + shared::restored_array(key.elements, size, a - first_array);
      std::memcpy(array + first * sizeof(float), &values_[a][from], count * sizeof(float));
    }
  });
}

}  // namespace gradcube::trainer
