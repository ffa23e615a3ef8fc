#include "trainer/src/session/collective.h"

#include <cstring>

#include "trainer/src/base/elements.h"
#include "trainer/src/base/sized.h"
#include "trainer/src/session/comparison.h"

namespace gradcube::trainer {
namespace {

constexpr std::size_t kFirstCollectiveSize =
    offsetof(gradcube_collective, lane) + sizeof(gradcube_collective::lane);

bool adds(int kind) {
  return kind == GRADCUBE_ALL_REDUCE || kind == GRADCUBE_REDUCE_SCATTER || kind == GRADCUBE_REDUCE;
}

bool has_root(int kind) { return kind == GRADCUBE_BROADCAST || kind == GRADCUBE_REDUCE; }

bool has_chunks(int kind) { return kind == GRADCUBE_REDUCE_SCATTER || kind == GRADCUBE_ALL_GATHER; }

std::string check_numbers(const gradcube_collective& given, const Place& place) {
  if (given.kind < GRADCUBE_ALL_REDUCE || given.kind > GRADCUBE_COMPARE) {
    return "invalid kind " + std::to_string(given.kind) +
           ": expected GRADCUBE_ALL_REDUCE to GRADCUBE_COMPARE";
  }
  if (given.lane >= place.lanes) {
    return "invalid lane " + std::to_string(given.lane) + ": expected 0 to " +
           std::to_string(place.lanes - 1);
  }
  if (has_root(given.kind) && given.root >= place.size) {
    return "invalid root " + std::to_string(given.root) + ": expected a rank, 0 to " +
           std::to_string(place.size - 1);
  }
  return "";
}

// As in gradcube.h.
std::string constant_of(std::size_t dtype) {
  std::string name = "GRADCUBE_" + type_name(static_cast<int>(dtype));
  for (char& letter : name) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return name;
}

std::string invalid_dtype(int dtype) {
  return "invalid dtype " + std::to_string(dtype) +
         ": expected GRADCUBE_FLOAT32 to GRADCUBE_BYTES, or " +
         constant_of(aggregation::kFirstWideNumber) + " to " +
         constant_of(aggregation::kTypeNumbers - 1);
}

std::string check_elements(const gradcube_collective& given) {
  if (element_size(given.dtype) == 0) {
    return invalid_dtype(given.dtype);
  }
  if (!adds(given.kind)) return "";
  if (!is_combined(given.dtype, GRADCUBE_SUM)) {
    return type_name(given.dtype) +
           " cannot be added: expected another dtype, or the kind GRADCUBE_ALL_GATHER or "
           "GRADCUBE_BROADCAST";
  }
  if (!is_op(given.op)) {
    return "invalid operation " + std::to_string(given.op) +
           ": expected GRADCUBE_SUM to GRADCUBE_MAX";
  }
  if (is_combined(given.dtype, given.op)) return "";
  return given.op == GRADCUBE_AVERAGE
             ? type_name(given.dtype) +
                   " has no average: expected GRADCUBE_SUM, GRADCUBE_MIN or GRADCUBE_MAX, or a "
                   "wider dtype"
             : "complex numbers have no order: expected GRADCUBE_SUM or GRADCUBE_AVERAGE";
}

// Sets how the elements travel, if not as they are.
std::string set_reduction(const gradcube_collective& given, const Place& place,
                          Collective& collective) {
  if (!place.reproducible || !adds(given.kind)) return "";
  const auto type = static_cast<aggregation::DataType>(given.dtype);
  const aggregation::ReproducibleReduction reduction = {
      aggregation::parts_of(type).type,
      aggregation::operation_on_parts(type, static_cast<aggregation::Operation>(given.op)),
      place.size};
  if (!aggregation::carrier_of(reduction).has_value()) {
    return "a reproducible sum of float64 takes at most " +
           std::to_string(aggregation::kMostReproducibleFloat64) + " trainers, of other floats " +
           std::to_string(aggregation::kMostReproducible) + ", and the job has " +
           std::to_string(place.size) + ": expected another dtype, or a job without the option";
  }
  if (!aggregation::travels_unchanged(reduction)) collective.reduction = reduction;
  return "";
}

// Of an element as the daemon gets it.
std::size_t carried_size(const gradcube_collective& given, const Collective& collective) {
  if (!collective.reduction.has_value()) return element_size(given.dtype);
  return aggregation::element_bytes(aggregation::carrier_of(*collective.reduction)->type) *
         aggregation::parts_of(static_cast<aggregation::DataType>(given.dtype)).count;
}

std::string check_pointer(const gradcube_collective& given) {
  if (given.buffer != nullptr || given.count == 0) return "";
  return "the buffer is NULL but the count is " + std::to_string(given.count);
}

std::string check_length(const gradcube_collective& given, const Place& place,
                         std::size_t most_bytes, std::size_t carried) {
  const std::size_t most_elements = most_bytes / carried;
  if (given.count > (has_chunks(given.kind) ? most_elements / place.size : most_elements)) {
    return "a count of " + std::to_string(given.count) +
           (has_chunks(given.kind) ? " for each of " + std::to_string(place.size) + " chunks"
                                   : "") +
           (carried != element_size(given.dtype)
                ? ", which travel in " + std::to_string(carried) + " bytes each,"
                : "") +
           " is larger than the " + std::to_string(most_bytes) +
           " bytes of the shared heap: set GRADCUBE_HEAP to more";
  }
  return "";
}

void set_parts(int kind, const Place& place, std::uint32_t root, Collective& collective) {
  const Part none;
  const Part all{0, collective.bytes};
  const std::size_t chunk = collective.bytes / place.size;
  const Part own{place.rank * chunk, chunk};
  const bool is_root = place.rank == root;
  switch (kind) {
    case GRADCUBE_REDUCE_SCATTER:
      collective.input = all;
      collective.output = own;
      break;
    case GRADCUBE_ALL_GATHER:
      collective.input = own;
      collective.output = all;
      break;
    case GRADCUBE_BROADCAST:
      collective.input = is_root ? all : none;
      collective.output = is_root ? none : all;
      break;
    case GRADCUBE_REDUCE:
      collective.input = all;
      collective.output = is_root ? all : none;
      break;
    default:
      collective.input = all;
      collective.output = all;
  }
}

// To the daemon it is an all-gather of digests, whatever is compared.
std::string set_comparison(const gradcube_collective& given, const Place& place,
                           Collective& collective) {
  const std::size_t element = element_size(given.dtype);
  if (given.count > SIZE_MAX / element) {
    return "a count of " + std::to_string(given.count) + " is larger than any buffer";
  }
  collective.compares = true;
  collective.buffer = static_cast<std::byte*>(given.buffer);
  collective.bytes = given.count * element;
  collective.carried_bytes = place.size * kDigestBytes;
  collective.submission.collective.kind = GRADCUBE_ALL_GATHER;
  collective.submission.collective.gathered = shared::Gathered::digests;
  collective.submission.dtype = GRADCUBE_BYTES;
  collective.submission.count = kDigestBytes;
  collective.input = {place.rank * kDigestBytes, kDigestBytes};
  collective.output = {0, collective.carried_bytes};
  return "";
}

// Where a part of the buffer lies in the copy.
std::size_t carried_offset(const Collective& collective, const Part& part) {
  return part.offset * (collective.carried_bytes / collective.bytes);
}

std::size_t elements_of(const Part& part, const aggregation::ReproducibleReduction& reduction) {
  return part.bytes / aggregation::element_bytes(reduction.type);
}

}  // namespace

void Collective::write_input(std::byte* copy) const {
  if (input.bytes == 0) return;
  if (compares) return write_digest({buffer, bytes}, copy + input.offset);
  const std::byte* from = buffer + input.offset;
  std::byte* to = copy + carried_offset(*this, input);
  if (reduction.has_value()) {
    aggregation::to_carriers(*reduction, from, to, elements_of(input, *reduction));
  } else {
    std::memcpy(to, from, input.bytes);
  }
}

std::string Collective::read_output(const std::byte* copy) const {
  if (output.bytes == 0) return "";
  if (compares) return find_difference({copy, output.bytes});
  std::byte* to = buffer + output.offset;
  const std::byte* from = copy + carried_offset(*this, output);
  if (reduction.has_value()) {
    aggregation::from_carriers(*reduction, from, to, elements_of(output, *reduction));
  } else {
    std::memcpy(to, from, output.bytes);
  }
  return "";
}

std::string read_collective(const gradcube_collective* given, const Place& place,
                            std::size_t most_bytes, Collective& collective) {
  gradcube_collective asked = GRADCUBE_COLLECTIVE_INIT;
  std::string problem = read_sized(given, kFirstCollectiveSize, "gradcube_collective",
                                   "GRADCUBE_COLLECTIVE_INIT", asked);
  if (problem.empty()) problem = check_numbers(asked, place);
  if (!problem.empty()) return problem;
  collective = Collective();
  shared::SubmittedCollective& submitted = collective.submission.collective;
  submitted.kind = static_cast<std::uint8_t>(asked.kind);
  submitted.lane = static_cast<std::uint8_t>(asked.lane);
  if (asked.kind == GRADCUBE_BARRIER) {
    if (asked.count == 0) return "";
    return "the count of a barrier is " + std::to_string(asked.count) + ": expected 0";
  }
  problem = check_elements(asked);
  if (problem.empty()) problem = check_pointer(asked);
  if (problem.empty() && asked.kind == GRADCUBE_COMPARE) {
    return set_comparison(asked, place, collective);
  }
  if (problem.empty()) problem = set_reduction(asked, place, collective);
  if (!problem.empty()) return problem;
  const std::size_t carried = carried_size(asked, collective);
  problem = check_length(asked, place, most_bytes, carried);
  if (!problem.empty()) return problem;
  collective.submission.count = asked.count;
  collective.submission.dtype = static_cast<std::uint8_t>(asked.dtype);
  if (adds(asked.kind)) submitted.op = static_cast<std::uint8_t>(asked.op);
  if (has_root(asked.kind)) submitted.root = asked.root;
  const std::size_t elements = has_chunks(asked.kind) ? asked.count * place.size : asked.count;
  collective.bytes = elements * element_size(asked.dtype);
  collective.carried_bytes = elements * carried;
  if (collective.bytes != 0) collective.buffer = static_cast<std::byte*>(asked.buffer);
  set_parts(asked.kind, place, asked.root, collective);
  return "";
}

std::string read_message(const gradcube_message* given, const Place& place, std::size_t most_bytes,
                         Collective& collective) {
  constexpr std::size_t kFirst =
      offsetof(gradcube_message, received) + sizeof(gradcube_message::received);
  gradcube_message asked = GRADCUBE_MESSAGE_INIT;
  if (std::string problem =
          read_sized(given, kFirst, "gradcube_message", "GRADCUBE_MESSAGE_INIT", asked);
      !problem.empty()) {
    return problem;
  }
  const bool sends = asked.direction == GRADCUBE_SEND;
  if (!sends && asked.direction != GRADCUBE_RECEIVE) {
    return "invalid direction " + std::to_string(asked.direction) +
           ": expected GRADCUBE_SEND or GRADCUBE_RECEIVE";
  }
  if (asked.peer >= place.size) {
    return "invalid rank " + std::to_string(asked.peer) + " of the other trainer: expected 0 to " +
           std::to_string(place.size - 1);
  }
  if (element_size(asked.dtype) == 0) return invalid_dtype(asked.dtype);
  if (asked.buffer == nullptr && asked.bytes != 0) {
    return "the buffer is NULL but the message has " + std::to_string(asked.bytes) + " bytes";
  }
  if (asked.bytes > most_bytes) {
    return "a message of " + std::to_string(asked.bytes) + " bytes is larger than the " +
           std::to_string(most_bytes) + " bytes of the shared heap: set GRADCUBE_HEAP to more";
  }
  collective = Collective();
  collective.submission.type = static_cast<std::uint8_t>(shared::SubmissionType::message);
  collective.submission.dtype = static_cast<std::uint8_t>(asked.dtype);
  collective.submission.count = asked.bytes;
  shared::SubmittedMessage& submitted = collective.submission.message;
  submitted.direction =
      static_cast<std::uint8_t>(sends ? shared::Direction::send : shared::Direction::receive);
  submitted.peer = asked.peer;
  submitted.tag = asked.tag;
  submitted.paths = sends ? asked.paths : 0;
  collective.bytes = asked.bytes;
  collective.carried_bytes = asked.bytes;
  if (asked.bytes != 0) collective.buffer = static_cast<std::byte*>(asked.buffer);
  (sends ? collective.input : collective.output) = {0, asked.bytes};
  return "";
}

std::string type_name(int dtype) {
  return std::string(aggregation::data_type_name(static_cast<aggregation::DataType>(dtype)));
}

std::string text_of_message(const Collective& message) {
  return (message.is_send() ? "the send of " : "the receive of up to ") +
         std::to_string(message.bytes) + " bytes " + (message.is_send() ? "to" : "from") +
         " rank " + std::to_string(message.submission.message.peer) + " with tag " +
         std::to_string(message.submission.message.tag);
}

}  // namespace gradcube::trainer
