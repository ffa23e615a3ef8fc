// What an engine counts. Written by the engine's thread alone; read by the control thread through
// Poller::call(). The control thread counts by the same reasons what it drops of the frames that
// engines hand to it (dataplane/daemon/messages/message_courier.h).
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_ENGINE_COUNTERS_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_ENGINE_COUNTERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dataplane/host/counter_table.h"
#include "protocol/frame_error.h"

namespace gradcube::dataplane {

// Why a well-formed frame was dropped. Malformed ones are counted by protocol::FrameError.
enum class DropReason : std::uint8_t {
  not_for_this_server,  // its last hop led here, and its destination is another server
  unknown_job,
  stale_epoch,
  job_not_running,    // the job is halted: about to be reset, or aborted
  foreign_thread,     // a thread of another queue than the frame's, or that the plan lacks
  no_hub,             // of a hub that is not here: not yet, or no more
  not_a_neighbour,    // the source is no peer of this thread in this step
  scattered_payload,  // the payload is not in one piece of memory
  outside_window,     // beyond what was granted
  disagreement,       // does not fit this server's own request
  bad_acknowledgement,
  no_such_hop,      // to be relayed over a level or to a digit that there is not, or to this server
  relay_full,       // to be relayed through a port for which too many frames wait
  wrong_link,       // tells of a link that there is not, or comes over another than it names
  inbox_full,       // a message for which the control thread has left no room
  wrong_cluster,    // a greeting of a server with other settings: of another cluster, perhaps
  unfitting_mail,   // a segment of a message between trainers that fits no receive of this server
  unfitting_chunk,  // a segment of a hub that does not fit what can come of its chunk
  stray_probe,      // a path probe whose route leads nowhere, or an answer that nobody awaits
  hand_over_full,   // for a sibling for which too many frames wait
  no_memory,        // the first mail of a server, for which the host has no memory
  // Found by the control thread, in messages between daemons:
  bad_fragment,  // no part of a message, or of another than the parts that have come
  // Of a daemon that does not speak for its server, or one that has come before (introductions.h).
  stale_message,
  incomplete_message,  // a message of which a part has not come in time, or had no room
  bad_message,         // it cannot be read, or is from or to another server than its frame
};
inline constexpr std::size_t kDropReasons = static_cast<std::size_t>(DropReason::bad_message) + 1;
std::string_view name(DropReason reason);

// Frames that were dropped, by reason.
struct FrameDrops {
  std::array<std::uint64_t, protocol::kFrameErrorCount> malformed{};
  std::array<std::uint64_t, kDropReasons> dropped{};

  void drop(protocol::FrameError error) { ++malformed[static_cast<std::size_t>(error)]; }
  void drop(DropReason reason, std::uint64_t frames = 1) {
    dropped[static_cast<std::size_t>(reason)] += frames;
  }

  template <typename Visit, typename... Objects>
  static void for_each(Visit&& visit, Objects&... objects) {
    constexpr std::string_view kGroup = "dropped";
    // The first frame error is none.
    for (std::size_t i = 1; i < protocol::kFrameErrorCount; ++i) {
      visit(CounterEntry{protocol::name(static_cast<protocol::FrameError>(i)), Merge::sum, kGroup},
            objects.malformed[i]...);
    }
    for (std::size_t i = 0; i < kDropReasons; ++i) {
      visit(CounterEntry{name(static_cast<DropReason>(i)), Merge::sum, kGroup},
            objects.dropped[i]...);
    }
  }
};

struct EngineCounters : FrameDrops {
  std::uint64_t segments_sent = 0;  // first transmissions
  std::uint64_t resent = 0;
  std::uint64_t acknowledgements_sent = 0;  // frames that carry nothing else
  std::uint64_t credit_requests = 0;        // those of them that a ready segment made necessary
  std::uint64_t segments_received = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t relayed = 0;        // frames of other servers that were sent on
  std::uint64_t handed_over = 0;    // frames that were passed on to the engine they are for
  std::uint64_t reroutes = 0;       // times that a flow took another route
  std::uint64_t path_failures = 0;  // that relays told of
  // That answer none of this server's last ones: recorded, or of a neighbour that does not hear it.
  std::uint64_t stale_greetings = 0;
  std::uint64_t path_probes = 0;  // that were sent
  std::uint64_t path_moves = 0;   // times that a flow moved to a path that has more left
  std::uint64_t congestion_marks = 0;
  std::uint64_t no_packet_memory = 0;  // sends put off because the pool was empty
  std::uint64_t collectives = 0;       // completed at this server; counted by its leader engine
  std::uint64_t hub_rounds = 0;        // rounds of a hub's keys that have ended; the same

  template <typename Visit, typename... Objects>
  static void for_each(Visit&& visit, Objects&... objects) {
    visit(CounterEntry{"segments_sent"}, objects.segments_sent...);
    visit(CounterEntry{"resent"}, objects.resent...);
    visit(CounterEntry{"segments_received"}, objects.segments_received...);
    visit(CounterEntry{"acknowledgements_sent"}, objects.acknowledgements_sent...);
    visit(CounterEntry{"credit_requests"}, objects.credit_requests...);
    visit(CounterEntry{"duplicates"}, objects.duplicates...);
    visit(CounterEntry{"relayed"}, objects.relayed...);
    visit(CounterEntry{"handed_over"}, objects.handed_over...);
    visit(CounterEntry{"reroutes"}, objects.reroutes...);
    visit(CounterEntry{"path_failures"}, objects.path_failures...);
    visit(CounterEntry{"stale_greetings"}, objects.stale_greetings...);
    visit(CounterEntry{"path_probes"}, objects.path_probes...);
    visit(CounterEntry{"path_moves"}, objects.path_moves...);
    visit(CounterEntry{"congestion_marks"}, objects.congestion_marks...);
    visit(CounterEntry{"no_packet_memory"}, objects.no_packet_memory...);
    visit(CounterEntry{"collectives"}, objects.collectives...);
    visit(CounterEntry{"hub_rounds"}, objects.hub_rounds...);
    FrameDrops::for_each(visit, objects...);
  }
};

// The table of what a flow's send window counts; the protocol knows no tables.
struct FlowCounters {
  template <typename Visit, typename... Counters>
  static void for_each(Visit&& visit, Counters&... counters) {
    visit(CounterEntry{"resent"}, counters.resent...);
    visit(CounterEntry{"probes"}, counters.probes...);
    visit(CounterEntry{"timeouts"}, counters.timeouts...);
    visit(CounterEntry{"credit_probes"}, counters.credit_probes...);
    visit(CounterEntry{"spurious"}, counters.spurious...);
    visit(CounterEntry{"refused"}, counters.refused...);
  }
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_ENGINE_COUNTERS_H_
