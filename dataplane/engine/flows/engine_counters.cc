#include "dataplane/engine/flows/engine_counters.h"

namespace gradcube::dataplane {

std::string_view name(DropReason reason) {
  constexpr std::array<std::string_view, kDropReasons> kNames = {
      "not_for_this_server", "unknown_job",     "stale_epoch",         "job_not_running",
      "foreign_thread",      "no_hub",          "not_a_neighbour",     "scattered_payload",
      "outside_window",      "disagreement",    "bad_acknowledgement", "no_such_hop",
      "relay_full",          "wrong_link",      "inbox_full",          "wrong_cluster",
      "unfitting_mail",      "unfitting_chunk", "stray_probe",         "hand_over_full",
      "no_memory",           "bad_fragment",    "stale_message",       "incomplete_message",
      "bad_message"};
  return kNames[static_cast<std::size_t>(reason)];
}

}  // namespace gradcube::dataplane
