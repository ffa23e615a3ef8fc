// The network of a simulated cluster, its time, and its chance.
#include <algorithm>

#include "control/jobs/message_codec.h"
#include "tests/unit/control/job_simulation.h"

namespace gradcube::control {
namespace {

using bcube::ServerId;
using std::chrono::milliseconds;

}  // namespace

void JobSimulation::at(Instant when, std::function<void()> run) {
  due_.push({when, order_++, std::move(run)});
}

void JobSimulation::on_node(ServerId server, Incarnation incarnation,
                            std::function<void(Node&)> run) {
  Node& node = nodes_[server];
  if (node.control == nullptr || node.incarnation != incarnation) return;
  if (node.stopped) {
    node.missed.push_back(std::move(run));
  } else {
    run(node);
  }
}

// As it arrives in another process.
NodeMessage JobSimulation::through_bytes(const NodeMessage& message) {
  const auto arrived = decode_message(encode_message(message, space_), space_);
  if (arrived != message) complain("a message does not come out of its bytes as it went in");
  return arrived.value_or(message);
}

bool JobSimulation::crosses(ServerId from, ServerId to) {
  const bool broken = std::any_of(broken_.begin(), broken_.end(), [&](const Broken& link) {
    return link.from == from && link.to == to;
  });
  return !broken && !cut_.contains({from, to}) && !chance(loss_);
}

Instant JobSimulation::delay() {
  if (!options_.message_faults) return milliseconds(1);
  return milliseconds(chance(0.02) ? any(1500) : 1 + any(40));
}

void JobSimulation::send(ServerId from, ServerId to, std::function<void(Node&)> deliver) {
  for (unsigned copies = chance(doubled_) ? 2 : 1; copies > 0; --copies) {
    if (!crosses(from, to)) continue;
    at(now_ + delay(), [this, to, deliver] { on_node(to, nodes_[to].incarnation, deliver); });
  }
}

void JobSimulation::tell(const NodeMessage& message, std::function<void(Node&)> deliver) {
  NodeMessage told = through_bytes(message);
  told.sender = nodes_[told.from].incarnation;
  send(told.from, told.to, [this, told, deliver](Node& there) {
    if (!admits(there, told)) return;
    JobActions out;
    there.control->on_heard(told.from, told.sender, now_, out);
    perform(told.to, std::move(out));
    deliver(there);
  });
}

bool JobSimulation::admits(Node& node, const NodeMessage& message) {
  NodeMessages replies;
  const bool admitted = node.introductions->admits(message, now_, replies);
  for (const NodeMessage& reply : replies) tell(reply, [](Node&) {});
  return admitted;
}

bool JobSimulation::chance(double probability) {
  return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
}

unsigned JobSimulation::any(unsigned below) { return static_cast<unsigned>(random_() % below); }

}  // namespace gradcube::control
