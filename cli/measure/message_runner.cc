#include "cli/measure/message_runner.h"

#include <fmt/format.h>
#include <span>

#include "cli/measure/oracle.h"
#include "cli/measure/perf_inputs.h"

namespace gradcube::cli {
namespace {

void fill(std::uint64_t seed, control::Rank from, std::span<std::byte> memory) {
  fill_input(aggregation::DataType::bytes, aggregation::Operation::sum, seed, from, 0,
             memory.size(), memory.data());
}

}  // namespace

MessageRunner::MessageRunner(const std::vector<PerfTrainer>& trainers, const std::string& job,
                             const PerfSettings& settings, const MessageEnds& ends)
    : settings_(settings),
      ends_(ends),
      harness_(trainers, static_cast<std::uint32_t>(trainers.size()), job, settings) {}

PerfRow MessageRunner::run(std::uint64_t bytes) {
  Memory sent;
  Memory received;
  for (unsigned i = 0; i < settings_.in_flight; ++i) {
    sent.push_back(harness_.session(ends_.from).buffer<std::byte>(bytes));
    received.push_back(harness_.session(ends_.to).buffer<std::byte>(bytes));
  }
  PerfRow row;
  row.kind = std::nullopt;
  row.type = aggregation::DataType::bytes;
  row.count = bytes;
  row.in_flight = settings_.in_flight;
  std::uint64_t wrong = 0;
  harness_.measures(fmt::format("a message of {} bytes", bytes));
  for (unsigned iteration = 0; iteration < settings_.warmup + settings_.iterations; ++iteration) {
    for (unsigned i = 0; i < settings_.in_flight; ++i) {
      fill(seed_of(iteration, i), ends_.from, sent[i].span());
    }
    const double seconds = exchange(sent, received);
    if (iteration >= settings_.warmup) row.seconds.push_back(seconds);
    for (unsigned i = 0; settings_.check && i < settings_.in_flight; ++i) {
      fill(seed_of(iteration, i), ends_.from, sent[i].span());
      wrong += count_wrong(row.type, sent[i].data(), received[i].data(), bytes);
    }
  }
  if (settings_.check) row.wrong = wrong;
  return row;
}

double MessageRunner::exchange(const Memory& sent, const Memory& received) {
  harness_.look_up();
  std::vector<std::uint64_t> sends(sent.size());
  std::vector<std::uint64_t> receives(sent.size());
  const auto begin = Harness::Clock::now();
  const auto deadline = harness_.deadline();
  for (std::size_t i = 0; i < received.size(); ++i) {
    harness_.require(
        ends_.to, gradcube_recv(harness_.handle(ends_.to), received[i].data(), received[i].size(),
                                ends_.from, i, nullptr, &receives[i]));
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    gradcube_message message = GRADCUBE_MESSAGE_INIT;
    message.peer = ends_.to;
    message.buffer = sent[i].data();
    message.bytes = sent[i].size();
    message.tag = i;
    message.paths = ends_.paths;
    harness_.require(ends_.from,
                     gradcube_submit_message(harness_.handle(ends_.from), &message, &sends[i]));
  }
  for (const std::uint64_t request : receives) harness_.wait(ends_.to, request, deadline);
  for (const std::uint64_t request : sends) harness_.wait(ends_.from, request, deadline);
  return std::chrono::duration<double>(Harness::Clock::now() - begin).count();
}

}  // namespace gradcube::cli
