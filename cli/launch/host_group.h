// The hosts of a cluster, each with `gradcube at-host` (cli/up/at_host_command.cc) at the other end
// of a launcher: ssh, srun, mpirun, or what the user says.
//
// A request is a line of JSON to a launcher's standard input, an answer a line on its standard
// output that begins with kAnswerMark; what a login shell prints besides is passed over. When the
// input closes, because this process, a launcher or a connection has ended, the other end undoes
// what it has begun and ends. So nothing is left behind, and there is no second way to end things.
//
//   request                                      answer
//   {"version":.., "environment":{..}, ...}      begins every first request
//   {"start":{"server":"2,1","host":"node2",     {"ok":true,"pid":..,"run_directory":..,"log":..,
//     "hosts":..}}                                 "stays":false}; the daemon ends with the input
//   {"stay":true}                                {"ok":true}: it does not. Then at-host ends, or
//                                                  stays until the daemon ends, if "stays"
//   {"ports":{"names":[..]}}                     {"ok":true,"ports":[{"name":"eth1","mtu":1500,
//                                                  "up":true,"carrier":true}]}; opens them
//   {"ports":{"setup":7,"greet":3}}              {"ok":true}: as host 3, once from each port
//   {"ports":{"setup":7}}                        {"ok":true,"heard":[[0,2,1]],"ports":[..]}: port
//                                                  0 has heard host 2's port 1
//   {"words":["check","--json"]}                 {"ok":true,"exit_code":0,"output":"..",
//                                                  "errors":".."}; of no words nothing is done
//   {"words":["down"],"cluster":"93ab.."}        the same, where the daemon is of that `up`
//   {"words":[..],"last":true,"host":"node2",    none: what the command writes, and its exit code,
//     "grace":5000000000}                          or an error in words. It has that time (ns), and
//                                                  5 s, to end
//   any                                          {"ok":false,"error":".."}
//
// One thread. Errors are control::SetupError and name the hosts.
#ifndef GRADCUBE_CLI_LAUNCH_HOST_GROUP_H_
#define GRADCUBE_CLI_LAUNCH_HOST_GROUP_H_

#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/cluster_hosts.h"
#include "cli/launch/launch.h"
#include "cli/launch/launch_signals.h"

namespace gradcube::cli {

inline constexpr std::string_view kAnswerMark = "{\"gradcube\":";

// Whether this host has this address.
bool is_of_this_host(const std::string& address);

// The command line that reaches a host: the launcher's words, and the program that it is to run.
// Without a launcher where ssh would lead to this host.
std::vector<std::string> words_to_reach(const ClusterHosts& hosts, std::size_t host);

// The last line of what a command has written: without the tool's name, fit for a message.
std::string last_words(const std::string& text);

// All variables of this process, as execve() takes them.
std::vector<std::string> own_environment();

// What every first request says: this program's version, and the variables that concern Gradcube,
// Python and OpenMP.
nlohmann::json first_request();

class HostGroup {
 public:
  // From the end of a launcher's input to SIGKILL. A daemon has 10 s of them to end.
  static constexpr std::chrono::seconds kGrace{20};

  // What is said of the hosts where a signal has ended what was asked of them.
  static constexpr std::string_view kAllEnded = "what was started on the hosts was ended";

  // Starts the launchers.
  explicit HostGroup(const ClusterHosts& hosts, std::chrono::nanoseconds grace = kGrace,
                     std::string_view at_interrupt = kAllEnded);
  // What was not told to stay is undone first. Bounded.
  ~HostGroup();
  HostGroup(const HostGroup&) = delete;
  HostGroup& operator=(const HostGroup&) = delete;

  // Asks all at once. Their answers, in the hosts' order; or a text for each that has none, empty
  // for those that have. Ends this process, as a shell expects, if a signal has come meanwhile.
  struct Answers {
    std::vector<nlohmann::json> values;
    std::vector<std::string> failures;
    // A command that has failed is a failure, by its last words, unless these are in what it said.
    void note_failed_commands(std::string_view let_be = {});
    // Throws a SetupError that names all that failed.
    void require_all(const ClusterHosts& hosts) const;
  };
  Answers ask(const std::vector<nlohmann::json>& requests, std::chrono::seconds patience);
  // The same request to all.
  Answers ask(const nlohmann::json& request, std::chrono::seconds patience);

  // What was started is to live on. Throws where a host was lost before it could be told, or after
  // a signal, which does not end this process here.
  void stay();
  int interrupted_by() const { return launcher_.interrupted_by(); }

 private:
  struct Host {
    unsigned asked = 0;
    unsigned answered = 0;  // of these, in their order
    bool stays = false;     // its launcher has to live on
    nlohmann::json answer;
    std::string chatter;  // the last line that was no answer
  };

  Answers collect(const std::vector<nlohmann::json>& requests, std::chrono::seconds patience);
  bool all_spoke();
  void take_answer(std::size_t host);
  std::string failure_of(std::size_t host, std::chrono::seconds patience);
  [[noreturn]] void end_by_signal();

  const ClusterHosts& hosts_;
  const std::string_view at_interrupt_;
  const LaunchSignals signals_;
  const LaunchSettings settings_;
  Launcher launcher_;
  std::vector<Host> states_;
};

// Runs a command of ours on all hosts at the same time, as if it had been typed on each; passes on
// what they write. The first that fails ends it on all; returns its exit code. grace: what the
// command gives those that it has started to end.
int run_on_hosts(const ClusterHosts& hosts, const std::vector<std::string>& words,
                 const std::vector<std::size_t>& which, std::chrono::nanoseconds grace);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_LAUNCH_HOST_GROUP_H_
