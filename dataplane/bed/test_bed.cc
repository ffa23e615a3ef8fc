#include "dataplane/bed/test_bed.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "control/base/cores.h"
#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "dataplane/bed/ask_servers.h"
#include "dataplane/bed/link_request.h"
#include "dataplane/bed/merged_status.h"
#include "dataplane/bed/network_commands.h"
#include "dataplane/bed/network_namespace.h"
#include "dataplane/bed/run_batch.h"
#include "dataplane/bed/server_settings.h"

namespace gradcube::dataplane {

using bcube::ServerId;
using control::SetupError;
using control::UsageError;
using Json = nlohmann::ordered_json;

namespace {

constexpr auto kNamespacePatience = std::chrono::seconds(10);
constexpr auto kStartPatience = std::chrono::seconds(20);
constexpr auto kStartPatiencePerServer = std::chrono::milliseconds(500);
constexpr auto kAnswerPatience = std::chrono::seconds(2);
constexpr auto kEndPatience = std::chrono::seconds(5);
constexpr auto kLookEvery = std::chrono::milliseconds(200);
constexpr auto kTouchLockEvery = std::chrono::hours(1);

// Runs `step` for a server, whose name begins the message of an error.
template <typename Step>
void for_server(const std::string& name, Step step) {
  try {
    step();
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("server {}: {}", name, error.what()));
  } catch (const SetupError& error) {
    throw SetupError(fmt::format("server {}: {}", name, error.what()));
  }
}

void check(const control::ClusterSettings& settings) {
  const auto& dimensions = settings.topology.dimensions();
  const bool switched =
      std::all_of(dimensions.begin(), dimensions.end(),
                  [](const auto& dimension) { return dimension.link == control::Link::switched; });
  if (!switched) {
    throw UsageError(
        fmt::format("{}: the veth fabric joins servers by switches; expected bcube:n,k "
                    "or star:N",
                    settings.topology.spec()));
  }
}

}  // namespace

TestBed::TestBed(control::ClusterSettings settings, control::RunDirectory directory,
                 const control::DaemonLock& lock, const std::filesystem::path& server_program,
                 std::string version)
    : settings_(std::move(settings)),
      directory_(std::move(directory)),
      lock_(lock),
      version_(std::move(version)),
      ip_(find_network_program("ip")),
      tc_(find_network_program("tc")),
      links_(bed_links(settings_.topology.space())),
      links_up_(links_.size(), true) {
  check(settings_);
  try {
    start(server_program);
  } catch (...) {
    servers_.clear();
    remove_sockets();
    throw;
  }
}

void TestBed::start(const std::filesystem::path& server_program) {
  if (settings_.lcores.empty()) settings_.lcores = control::allowed_cores();
  const NamespaceFailure failure = enter_new_network_namespace();
  if (failure.error != 0) throw SetupError(failure_text(failure));
  start_servers(server_program);
  make_network();
  for (ServerProcess& server : servers_) server.execute();
  await_reports();
  control_ = std::make_unique<ControlServer>(loop_, directory_.control_socket());
  add_commands();
  watch_signals();
  watch_servers();
  loop_.on_tick([this] { tick(); });
}

TestBed::~TestBed() {
  end_servers();
  control_.reset();
  remove_sockets();
}

// Those of daemons that did not end in good order.
void TestBed::remove_sockets() {
  try {
    directory_.remove_stale_sockets(lock_);
  } catch (const SetupError& error) {
    spdlog::warn("{}", error.what());
  }
}

void TestBed::start_servers(const std::filesystem::path& program) {
  const bcube::AddressSpace& space = settings_.topology.space();
  for (ServerId server = 0; server < space.servers(); ++server) {
    const control::ClusterSettings own = server_settings(settings_, server, settings_.lcores);
    servers_.emplace_back(server_program(program.string(), own, server, directory_),
                          directory_.of_server(space.suffix(server)));
  }
  const SteadyClock::time_point deadline = SteadyClock::now() + kNamespacePatience;
  for (ServerId server = 0; server < servers_.size(); ++server) {
    for_server(name_of(server), [&] { servers_[server].await_namespace(deadline); });
  }
}

void TestBed::make_network() {
  std::vector<pid_t> pids;
  for (const ServerProcess& server : servers_) pids.push_back(server.process().pid());
  run_batch(ip_, switch_side_commands(links_, pids, settings_.mtu));
  run_batch(tc_, switch_queue_commands(links_, settings_));
  for (ServerId server = 0; server < servers_.size(); ++server) {
    const int network = servers_[server].network_namespace();
    for_server(name_of(server), [&] {
      run_batch(ip_, server_side_commands(links_of(server)), network);
      run_batch(tc_, server_queue_commands(links_of(server), settings_), network);
    });
  }
}

// All daemons start at the same time.
void TestBed::await_reports() {
  const auto patience = kStartPatience + kStartPatiencePerServer * servers_.size();
  const SteadyClock::time_point deadline = SteadyClock::now() + patience;
  for (;;) {
    std::vector<pollfd> events;
    std::string missing;
    for (ServerId server = 0; server < servers_.size(); ++server) {
      events.push_back({servers_[server].report_descriptor(), POLLIN, 0});
      if (!servers_[server].ready()) missing += " " + name_of(server);
    }
    if (missing.empty()) return;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (left.count() <= 0) {
      throw SetupError(fmt::format(
          "the daemons of these servers were not ready after {} s:{}; their logs are in {}",
          std::chrono::duration_cast<std::chrono::seconds>(patience).count(), missing,
          directory_.path().string()));
    }
    poll(events.data(), events.size(), static_cast<int>(left.count()));
    for (ServerId server = 0; server < servers_.size(); ++server) {
      if (events[server].revents == 0) continue;
      for_server(name_of(server), [&] { servers_[server].read_report(); });
    }
  }
}

void TestBed::watch_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  signals_ = control::Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (signals_.get() < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot watch signals");
  }
  loop_.add(signals_.get(), [this] {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) != sizeof info) return;
    spdlog::info("ending on signal {}", info.ssi_signo);
    ending_ = true;
  });
}

void TestBed::watch_servers() {
  for (ServerId server = 0; server < servers_.size(); ++server) {
    const int descriptor = servers_[server].process().descriptor();
    loop_.add(descriptor, [this, server, descriptor] {
      if (!servers_[server].note_end()) return;
      loop_.remove(descriptor);
      spdlog::error("server {}: {}", name_of(server), end_text(server));
    });
  }
}

void TestBed::add_commands() {
  for (const char* command : {"status", "status-of-all"}) {
    control_->add(command, [this](const nlohmann::json&) -> Json {
      return {{"status", status()}};
    });
  }
  control_->add("impair", [this](const nlohmann::json& request) { return impair(request); });
  control_->add("down", [this](const nlohmann::json&) -> Json {
    spdlog::info("ending on request");
    ending_ = true;
    return Json::object();
  });
}

void TestBed::end_servers() {
  for (const ServerProcess& server : servers_) server.process().send(SIGTERM);
  const SteadyClock::time_point deadline = SteadyClock::now() + kEndPatience;
  for (ServerId server = 0; server < servers_.size(); ++server) {
    if (servers_[server].process().ends_by(deadline)) continue;
    spdlog::warn("server {} does not end: killing its daemon", name_of(server));
  }
  servers_.clear();
}

void TestBed::tick() {
  const SteadyClock::time_point now = SteadyClock::now();
  control_->tick(now);
  if (now >= next_look_) {
    next_look_ = now + kLookEvery;
    if (!ending_ && !lock_.is_in(directory_)) {
      spdlog::error("the run directory {} was removed or replaced: ending",
                    directory_.path().string());
      ending_ = true;
    }
  }
  if (now >= next_touch_) {
    next_touch_ = now + kTouchLockEvery;
    lock_.touch();
  }
  if (ending_ && control_->all_answered()) loop_.stop();
}

std::span<const BedLink> TestBed::links_of(ServerId server) const {
  const std::size_t levels = settings_.topology.levels();
  return std::span<const BedLink>(links_).subspan(server * levels, levels);
}

std::string TestBed::name_of(ServerId server) const {
  return settings_.topology.space().text(server);
}

std::string TestBed::end_text(ServerId server) const {
  const ServerProcess& process = servers_[server];
  if (!process.end().has_value()) return "";
  const auto ago =
      std::chrono::duration_cast<std::chrono::seconds>(SteadyClock::now() - process.ended_at());
  return fmt::format("its daemon ended {} s ago with {}; its log is {}", ago.count(),
                     *process.end(), process.directory().log_file().string());
}

Json TestBed::status() {
  const bcube::AddressSpace& space = settings_.topology.space();
  std::vector<std::filesystem::path> sockets;
  for (const ServerProcess& server : servers_) {
    sockets.push_back(server.directory().control_socket());
  }
  const std::vector<ServerAnswer> answers =
      ask_servers(sockets, {{"command", "status"}}, kAnswerPatience);
  std::vector<ServerReport> reports;
  for (ServerId server = 0; server < servers_.size(); ++server) {
    const std::string end = end_text(server);
    const ServerAnswer& answer = answers[server];
    reports.push_back(
        {.server = server,
         .socket = directory_.server_socket(space.suffix(server)).string(),
         .pid = servers_[server].process().pid(),
         .status = answer.answer.is_null() ? Json() : answer.answer.value("status", Json()),
         .why = end.empty() ? answer.why : end});
  }
  const std::chrono::duration<double> uptime = SteadyClock::now() - started_;
  const Json head = {{"version", version_},
                     {"pid", getpid()},
                     {"uptime_seconds", uptime.count()},
                     {"topology", control::topology_json(settings_.topology)},
                     {"algorithm", control::default_algorithm(settings_.topology)}};
  return merged_status(head, settings_,
                       link_report(settings_.topology, links_, links_up_, settings_.seed), reports);
}

Json TestBed::impair(const nlohmann::json& request) {
  const LinkRequest change = read_link_request(settings_.topology, links_, request);
  if (change.up.has_value()) {
    std::vector<BedLink> chosen;
    for (const std::size_t link : change.links) chosen.push_back(links_[link]);
    run_batch(ip_, link_state_commands(chosen, *change.up));
    for (const std::size_t link : change.links) links_up_[link] = *change.up;
  }
  Json answer = {{"changed", change.links.size()}};
  answer.update(link_report(settings_.topology, links_, links_up_, settings_.seed));
  return answer;
}

}  // namespace gradcube::dataplane
