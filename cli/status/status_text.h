// The daemon's status as people read it. Keys that this version does not know are left out, and
// missing ones are shown as "-", because the tool and the daemon may be of different versions.
#ifndef GRADCUBE_CLI_STATUS_STATUS_TEXT_H_
#define GRADCUBE_CLI_STATUS_STATUS_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace gradcube::cli {

struct StatusView {
  bool all_flows = false;  // flows are many; without this they are listed only when they are few
  bool rates = false;      // show each port's packets and bits per second since `before`
  nlohmann::json before = nullptr;  // an earlier status
};
std::string status_text(const nlohmann::json& status, const StatusView& view);

// The first lines of it: what runs, with which settings.
std::string status_summary(const nlohmann::json& status);

// Of a status, or of the daemon's answer to "impair": "loss 1 %, reorder 5 %, seed 7; 2 links
// differ (1 down)"; "on 2 links (1 down), else none"; "down, ..." when all links are down but those
// that differ; "none" without any.
std::string impairments_summary(const nlohmann::json& status);
// A table of the links that differ; empty when there are none.
std::string impaired_links_text(const nlohmann::json& status);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_STATUS_STATUS_TEXT_H_
