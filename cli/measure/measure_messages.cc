#include "cli/measure/measure_messages.h"

#include <chrono>
#include <fmt/format.h>
#include <span>
#include <vector>

#include "cli/measure/oracle.h"
#include "cli/measure/perf_inputs.h"

namespace gradcube::cli {
namespace {

using Messages = std::vector<Buffer<std::byte>>;

void fill_message(std::uint64_t seed, control::Rank from, std::span<std::byte> memory) {
  fill_input(aggregation::DataType::bytes, aggregation::Operation::sum, seed, from, 0,
             memory.size(), memory.data());
}

// Its seconds.
double exchange(const Harness& harness, const MessageEnds& ends, const Messages& sent,
                const Messages& received) {
  harness.look_up();
  std::vector<std::uint64_t> sends(sent.size());
  std::vector<std::uint64_t> receives(sent.size());
  const auto begin = Harness::Clock::now();
  const auto deadline = harness.deadline();
  for (std::size_t i = 0; i < received.size(); ++i) {
    harness.require(ends.to,
                    gradcube_recv(harness.handle(ends.to), received[i].data(), received[i].size(),
                                  ends.from, i, nullptr, &receives[i]));
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    gradcube_message message = GRADCUBE_MESSAGE_INIT;
    message.peer = ends.to;
    message.buffer = sent[i].data();
    message.bytes = sent[i].size();
    message.tag = i;
    message.paths = ends.paths;
    harness.require(ends.from,
                    gradcube_submit_message(harness.handle(ends.from), &message, &sends[i]));
  }
  for (const std::uint64_t request : receives) harness.wait(ends.to, request, deadline);
  for (const std::uint64_t request : sends) harness.wait(ends.from, request, deadline);
  return std::chrono::duration<double>(Harness::Clock::now() - begin).count();
}

}  // namespace

PerfRow measure_messages(Harness& harness, const PerfSettings& settings, const MessageEnds& ends,
                         std::uint64_t bytes) {
  Messages sent;
  Messages received;
  for (unsigned i = 0; i < settings.in_flight; ++i) {
    sent.push_back(harness.session(ends.from).buffer<std::byte>(bytes));
    received.push_back(harness.session(ends.to).buffer<std::byte>(bytes));
  }
  PerfRow row;
  row.kind = std::nullopt;
  row.type = aggregation::DataType::bytes;
  row.count = bytes;
  row.in_flight = settings.in_flight;
  if (settings.check) row.wrong = 0;
  harness.measures(fmt::format("a message of {} bytes", bytes));
  for (unsigned iteration = 0; iteration < settings.warmup + settings.iterations; ++iteration) {
    for (unsigned i = 0; i < settings.in_flight; ++i) {
      fill_message(seed_of(iteration, i), ends.from, sent[i].span());
    }
    const double seconds = exchange(harness, ends, sent, received);
    if (iteration >= settings.warmup) row.seconds.push_back(seconds);
    for (unsigned i = 0; row.wrong && i < settings.in_flight; ++i) {
      fill_message(seed_of(iteration, i), ends.from, sent[i].span());
      *row.wrong += count_wrong(row.type, sent[i].data(), received[i].data(), bytes);
    }
  }
  return row;
}

}  // namespace gradcube::cli
