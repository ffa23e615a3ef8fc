// Runs iproute2's programs.
//
// No shell is in between. The programs are waited for, but not for ever, and die with this process.
// Threads: any, one at a time.
#ifndef GRADCUBE_DATAPLANE_BED_RUN_BATCH_H_
#define GRADCUBE_DATAPLANE_BED_RUN_BATCH_H_

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

namespace gradcube::dataplane {

inline constexpr int kOwnNamespace = -1;
inline constexpr auto kBatchPatience = std::chrono::seconds(20);

// The path of "ip" or "tc". Throws a SetupError that says what to install.
std::filesystem::path find_network_program(std::string_view name);

// Runs `PROGRAM -batch -` on these commands, one a line, in the network namespace that the
// descriptor is of, or in the one of this thread. The program stops at the first command that
// fails; the SetupError names it, and says what the program said.
void run_batch(const std::filesystem::path& program, const std::string& commands,
               int network_namespace = kOwnNamespace,
               std::chrono::milliseconds patience = kBatchPatience);

// The message about a batch that has failed with this text on standard error. Pure.
std::string batch_failure(std::string_view program, std::string_view commands,
                          std::string_view errors);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_RUN_BATCH_H_
