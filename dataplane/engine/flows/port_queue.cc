#include "dataplane/engine/flows/port_queue.h"

namespace gradcube::dataplane {

void PortQueue::make_room(const EngineJob& job, const FlowScheduler::Rank& rank) {
  answers.make_room();
  resends.make_room();
  segments.make_room(job, rank);
}

void PortQueue::add_outgoing(const EngineJob& job, const FlowScheduler::Rank& rank, Flow& flow) {
  make_room(job, rank);
  flow.place_out = answers.add(flow);
  resends.add(flow);
  segments.add(job, rank, flow);
  flow.out = this;
}

void PortQueue::add_incoming(protocol::JobId job, const FlowScheduler::Rank& rank, Flow& flow) {
  // To the others a job's mail is another job.
  constexpr protocol::JobId kMail = 0x80000000;
  flow.credit = credit.add(&flow.receive, {.job = job ^ (rank.mail ? kMail : 0),
                                           .weight = rank.weight,
                                           .lane = static_cast<std::uint16_t>(rank.place),
                                           .step = static_cast<std::uint16_t>(rank.step)});
  // A flow among the consumed has credit of its own: else it would give back another's.
  try {
    if (by_credit_.size() <= flow.credit) by_credit_.resize(flow.credit + 1);
    flow.place_in = consumed.add(flow);
  } catch (...) {
    credit.remove(flow.credit);
    throw;
  }
  by_credit_[flow.credit] = &flow;
  flow.in = this;
}

void PortQueue::remove_all_of(const EngineJob& job) {
  const auto leaves = [&](const Flow& flow) { return flow.job == &job; };
  answers.for_each([&](Flow& flow) {
    if (leaves(flow)) flow.out = nullptr;
  });
  for (FlowRotation* flows : {&answers, &resends}) {
    flows->remove_if(leaves, [](Flow& flow, std::size_t place) { flow.place_out = place; });
  }
  segments.remove_all_of(job);
  consumed.for_each([&](Flow& flow) {
    if (leaves(flow)) give_back_credit(flow);
  });
  consumed.remove_if(leaves, [](Flow& flow, std::size_t place) { flow.place_in = place; });
}

void PortQueue::remove_outgoing(Flow& flow) {
  const auto leaves = [&](const Flow& each) { return &each == &flow; };
  for (FlowRotation* flows : {&answers, &resends}) {
    flows->remove_if(leaves, [](Flow& each, std::size_t place) { each.place_out = place; });
  }
  segments.remove(flow);
  flow.out = nullptr;
}

void PortQueue::remove_incoming(Flow& flow) {
  give_back_credit(flow);
  consumed.remove_if([&](const Flow& each) { return &each == &flow; },
                     [](Flow& each, std::size_t place) { each.place_in = place; });
}

void PortQueue::give_back_credit(Flow& flow) {
  credit.remove(flow.credit);
  by_credit_[flow.credit] = nullptr;
  flow.in = nullptr;
}

void PortQueue::distribute_credit(protocol::Nanoseconds now) {
  if (!credit.distribute(now)) return;
  for (const protocol::CreditPool::Handle flow : credit.raised()) wake_answer(*by_credit_[flow]);
}

}  // namespace gradcube::dataplane
