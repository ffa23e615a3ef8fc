#include "dataplane/engine/port_queue.h"

#include <algorithm>

#include "dataplane/engine/engine_job.h"
#include "dataplane/engine/flow_users.h"

namespace gradcube::dataplane {

void PortQueue::add_outgoing(const EngineJob& job, const FlowScheduler::Rank& rank, Flow& flow) {
  flow.out = this;
  flow.place_out = answers.add(flow);
  resends.add(flow);
  segments.add(job, rank, flow);
}

void PortQueue::add_incoming(const EngineJob& job, const FlowScheduler::Rank& rank, Flow& flow) {
  flow.in = this;
  flow.place_in = consumed.add(flow);
  // To the others a job's mail is another job.
  constexpr protocol::JobId kMail = 0x80000000;
  flow.credit = credit.add(&flow.receive, {.job = job.id() ^ (rank.mail ? kMail : 0),
                                           .weight = rank.weight,
                                           .lane = static_cast<std::uint16_t>(rank.place),
                                           .step = static_cast<std::uint16_t>(rank.step)});
  if (by_credit_.size() <= flow.credit) by_credit_.resize(flow.credit + 1);
  by_credit_[flow.credit] = &flow;
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

bool PortQueue::any_answers() {
  bool any = false;
  answers.for_each_awake([&any](const Flow& flow) {
    any = any || flow.job->moves();
    return FlowRotation::Visit::later;
  });
  return any;
}

protocol::Nanoseconds PortQueue::next_answer() {
  protocol::Nanoseconds next = protocol::kNever;
  answers.for_each_awake([&next](const Flow& flow) {
    if (!flow.job->moves()) return FlowRotation::Visit::later;
    next = std::min(next, flow.receive.acknowledgement_deadline());
    // Its timer is set when it is visited next.
    if (flow.send.deadline() < flow.timer.deadline()) next = std::min(next, flow.send.deadline());
    return FlowRotation::Visit::later;
  });
  return next;
}

void PortQueue::grant_credit(protocol::Nanoseconds now) {
  consumed.for_each_awake([&](Flow& flow) {
    const std::uint64_t before = flow.receive.consumed();
    ask_user(flow, [&](const auto& user) {
      credit.set_consumed(flow.credit, user.consumed(flow), now);
      if (flow.receive.consumed() != before && user.sender_waits(flow, before)) {
        flow.receive.acknowledge_at_once();
      }
    });
    wake_answer(flow);
    return FlowRotation::Visit::nothing;
  });
  if (!credit.distribute(now)) return;
  for (const protocol::CreditPool::Handle flow : credit.raised()) wake_answer(*by_credit_[flow]);
}

}  // namespace gradcube::dataplane
