#include "cli/launch/host_group.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "cli/cluster/daemon_process.h"
#include "cli/launch/launch_process.h"
#include "cli/text/json_fields.h"
#include "cli/text/output.h"
#include "cli/text/package_file.h"
#include "control/base/errors.h"
#include "control/base/printable.h"

namespace gradcube::cli {
namespace {

using control::SetupError;
using nlohmann::json;

constexpr auto kStayPatience = std::chrono::seconds(20);
constexpr auto kBesideGrace = std::chrono::seconds(15);  // at-host takes 5 s, and a network some
constexpr std::size_t kMostNamed = 8;
constexpr std::size_t kLongestWords = 300;   // of a launcher, in a message
constexpr std::size_t kLongestError = 1000;  // of a host
constexpr int kNotOnHost = 127;
constexpr int kLostConnection = 255;
constexpr int kWrongWords = 2;
constexpr std::string_view kOurs = "gradcube: ";  // begins what the tool itself says

// What trainers and daemons read. A socket is one host's.
bool is_passed_on(std::string_view variable) {
  if (variable.starts_with("GRADCUBE_SOCKET=") || variable.starts_with(kThisHostAlone))
    return false;
  return variable.starts_with("GRADCUBE") || variable.starts_with("PYTHON") ||
         variable.starts_with("OMP_");
}

LaunchTask task_for(const ClusterHosts& hosts, std::size_t host, std::string input) {
  LaunchTask task{.words = words_to_reach(hosts, host),
                  .environment = own_environment(),
                  .input = std::move(input)};
  try {
    task.file = find_command(task.words.front(), std::getenv("PATH"));
  } catch (const CommandError& error) {
    throw SetupError(fmt::format("host {}: {}: install it, or name another --launcher",
                                 hosts.names[host], error.what()));
  }
  return task;
}

LaunchSettings settings_for(const ClusterHosts& hosts, std::chrono::nanoseconds grace) {
  LaunchSettings settings{.grace = grace, .keeps_output = true, .each_alone = true};
  for (std::size_t host = 0; host < hosts.names.size(); ++host) {
    settings.tasks.push_back(task_for(hosts, host, ""));
  }
  return settings;
}

// Why a launcher has ended without an answer.
std::string end_of_launcher(const ClusterHosts& hosts, std::size_t host, const ProcessEnd& end,
                            const std::string& errors) {
  const std::string said = last_words(errors);
  const std::string tail = said.empty() ? "" : ": " + said;
  if (!end.by_signal && end.number == kNotOnHost) {
    return fmt::format(
        "there is no {} there: install the same version of Gradcube, or say by --program where it "
        "is{}",
        hosts.program, tail);
  }
  if (!end.by_signal && end.number == kWrongWords &&
      control::last_line(errors).starts_with(kOurs)) {
    return fmt::format("{} is another version there: install the same on all hosts{}",
                       hosts.program, tail);
  }
  return fmt::format("{} {} before it answered{}", words_to_reach(hosts, host).front(),
                     end.by_signal ? fmt::format("was ended by signal {}", end.number)
                                   : fmt::format("ended with exit code {}", end.number),
                     tail);
}

// Of what ended a command on a host: itself, or what leads there.
std::string end_of_command(const ClusterHosts& hosts, std::size_t host, const ProcessEnd& end) {
  const std::string way = words_to_reach(hosts, host).front();
  if (end.by_signal) {
    return fmt::format("{} was ended by signal {} ({})", way, end.number, strsignal(end.number));
  }
  if (end.number == kLostConnection && way == "ssh") {
    return fmt::format("exit code {}: of the command, or of an ssh that lost its connection",
                       end.number);
  }
  return fmt::format("exit code {}", end.number);
}

}  // namespace

std::string last_words(const std::string& text) {
  const std::string_view last = control::last_line(text);
  return control::printable(last.starts_with(kOurs) ? last.substr(kOurs.size()) : last,
                            kLongestWords);
}

bool is_of_this_host(const std::string& address) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  bool found = false;
  for (const ifaddrs* one = all; one != nullptr && !found; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const auto family = one->ifa_addr->sa_family;
    char text[NI_MAXHOST] = "";  // stays empty where it is no address of IP
    getnameinfo(one->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6), text,
                sizeof text, nullptr, 0, NI_NUMERICHOST);
    found = address == text || (family == AF_INET && address.starts_with("127."));
  }
  freeifaddrs(all);
  return found;
}

std::vector<std::string> words_to_reach(const ClusterHosts& hosts, std::size_t host) {
  const std::string& name = hosts.names[host];
  std::vector<std::string> words;
  const bool is_here = hosts.launcher == "ssh" && name.find('@') == std::string::npos &&
                       is_of_this_host(hosts.address(host));
  if (is_here) {
    words.push_back(own_program().string());
  } else {
    std::istringstream text(launcher_command(hosts.launcher));
    for (std::string word; text >> word;) {
      for (std::size_t at = 0; (at = word.find(kHostMark, at)) != std::string::npos;) {
        word.replace(at, kHostMark.size(), name);
        at += name.size();
      }
      words.push_back(word);
    }
    words.push_back(hosts.program);
  }
  words.emplace_back("at-host");
  return words;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) all.emplace_back(*variable);
  return all;
}

json first_request() {
  json environment = json::object();
  for (const std::string& variable : own_environment()) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || !is_passed_on(variable)) continue;
    environment[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  if (environment.contains("GRADCUBE_RUN")) {
    environment["GRADCUBE_RUN"] = control::RunDirectory::from_environment().path().string();
  }
  return {{"version", GRADCUBE_VERSION}, {"environment", environment}};
}

HostGroup::HostGroup(const ClusterHosts& hosts, std::chrono::nanoseconds grace,
                     std::string_view at_interrupt)
    : hosts_(hosts),
      at_interrupt_(at_interrupt),
      settings_(settings_for(hosts, grace)),
      launcher_(settings_, signals_),
      states_(hosts.names.size()) {}

HostGroup::~HostGroup() {
  launcher_.stop();
  launcher_.finish();
}

HostGroup::Answers HostGroup::ask(const json& request, std::chrono::seconds patience) {
  return ask(std::vector<json>(states_.size(), request), patience);
}

HostGroup::Answers HostGroup::ask(const std::vector<json>& requests,
                                  std::chrono::seconds patience) {
  Answers answers = collect(requests, patience);
  if (launcher_.interrupted_by() != 0) end_by_signal();
  return answers;
}

HostGroup::Answers HostGroup::collect(const std::vector<json>& requests,
                                      std::chrono::seconds patience) {
  for (std::size_t host = 0; host < states_.size(); ++host) {
    Host& state = states_[host];
    json request = requests[host];
    if (state.asked++ == 0) request.update(first_request());
    state.answer = nullptr;
    launcher_.tell(host, json_text(request) + "\n");
  }
  launcher_.run_until([this] { return all_spoke(); }, std::chrono::steady_clock::now() + patience);
  Answers answers;
  for (std::size_t host = 0; host < states_.size(); ++host) {
    Host& state = states_[host];
    if (const auto stays = flag_field(state.answer, "stays")) state.stays = *stays;
    answers.failures.push_back(failure_of(host, patience));
    answers.values.push_back(std::move(state.answer));
  }
  return answers;
}

void HostGroup::Answers::note_failed_commands(std::string_view let_be) {
  for (std::size_t host = 0; host < values.size(); ++host) {
    if (!failures[host].empty() || count_field(values[host], "exit_code") == 0) continue;
    const std::string errors = text_field(values[host], "errors").value_or("");
    if (let_be.empty() || errors.find(let_be) == std::string::npos) {
      failures[host] = last_words(errors);
    }
  }
}

void HostGroup::Answers::require_all(const ClusterHosts& hosts) const {
  std::vector<std::string> failed;
  std::size_t count = 0;
  for (std::size_t host = 0; host < failures.size(); ++host) {
    if (failures[host].empty()) continue;
    if (++count <= kMostNamed) {
      failed.push_back(fmt::format("host {}: {}", hosts.names[host], failures[host]));
    }
  }
  if (count == 0) return;
  throw SetupError(fmt::format(
      "{}{}", fmt::join(failed, "; "),
      count > kMostNamed ? fmt::format("; and {} more hosts", count - kMostNamed) : ""));
}

void HostGroup::stay() {
  // A signal does not end this process here: some may have been told.
  const Answers answers =
      collect(std::vector<json>(states_.size(), json{{"stay", true}}), kStayPatience);
  for (std::size_t host = 0; host < states_.size(); ++host) {
    if (answers.failures[host].empty() && states_[host].stays) launcher_.release(host);
  }
  if (launcher_.interrupted_by() != 0) throw SetupError("interrupted");
  answers.require_all(hosts_);
}

bool HostGroup::all_spoke() {
  bool all = true;
  for (std::size_t host = 0; host < states_.size(); ++host) {
    take_answer(host);
    all = all && (!states_[host].answer.is_null() || launcher_.end_of(host).has_value());
  }
  return all;
}

void HostGroup::take_answer(std::size_t host) {
  std::string& output = launcher_.output(host);
  for (std::size_t end = 0; (end = output.find('\n')) != std::string::npos;) {
    const std::string line = output.substr(0, end);
    output.erase(0, end + 1);
    Host& state = states_[host];
    if (line.starts_with(kAnswerMark)) {
      json answer = json::parse(line, nullptr, false);
      // One that comes late is not of this request; behind an error comes nothing more.
      const bool is_late = ++state.answered < state.asked;
      if (!is_late || flag_field(answer, "ok") == false) state.answer = std::move(answer);
    } else {
      state.chatter = line.substr(0, kLongestWords);
    }
  }
}

std::string HostGroup::failure_of(std::size_t host, std::chrono::seconds patience) {
  take_answer(host);
  const json& answer = states_[host].answer;
  if (answer.is_null()) {
    const std::string& errors = launcher_.errors(host);
    if (const auto& end = launcher_.end_of(host)) {
      return end_of_launcher(hosts_, host, *end, errors);
    }
    const std::string said = last_words(errors);
    // What a login shell prints must end with a newline, and leave the input alone.
    const std::string& instead = states_[host].chatter;
    return fmt::format(
        "{} has not answered within {} s{}{}", words_to_reach(hosts_, host).front(),
        patience.count(), said.empty() ? "" : ": " + said,
        instead.empty() ? "" : fmt::format("; what came instead: {}", control::printable(instead)));
  }
  if (flag_field(answer, "ok").value_or(false)) return "";
  return control::printable(
      text_field(answer, "error")
          .value_or("it answered something unexpected: is it another version?"),
      kLongestError);
}

void HostGroup::end_by_signal() {
  launcher_.finish();
  complain(fmt::format("interrupted: {}", at_interrupt_));
  flush_output();
  raise(launcher_.interrupted_by());  // still blocked: it ends this process when `signals_` is gone
  throw SetupError("interrupted");
}

int run_on_hosts(const ClusterHosts& hosts, const std::vector<std::string>& words,
                 const std::vector<std::size_t>& which, std::chrono::nanoseconds grace) {
  LaunchSettings settings{.grace = grace + kBesideGrace};
  json request = first_request();
  if (words.front() == "run") request["directory"] = std::filesystem::current_path().string();
  request["words"] = words;
  request["last"] = true;
  request["grace"] = grace.count();
  for (const std::size_t host : which) {
    request["host"] = hosts.names[host];
    settings.tasks.push_back(task_for(hosts, host, json_text(request) + "\n"));
  }
  const LaunchSignals signals;
  const LaunchReport report = Launcher(settings, signals).finish();
  if (report.first_failure) {
    const std::size_t host = which[*report.first_failure];
    complain(fmt::format("host {}: {}{}", hosts.names[host],
                         end_of_command(hosts, host, report.ends[*report.first_failure]),
                         which.size() > 1 ? "; it was ended on the other hosts" : ""));
    return report.exit_code;
  }
  if (report.output_error != 0) {
    throw SetupError(
        fmt::format("cannot write to standard output: {}", std::strerror(report.output_error)));
  }
  flush_output();
  if (report.interrupted_by != 0) {
    complain("interrupted: all processes were ended");
    raise(report.interrupted_by);
  }
  return 0;
}

}  // namespace gradcube::cli
