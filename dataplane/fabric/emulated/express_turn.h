// Which lane of a wire has the next frame: the express lane, in which short collectives travel
// (dataplane/fabric/port.h), or the plain one.
//
// As long as frames wait in both, each lane has half of the bytes, but the express lane has them
// first: it may be ahead by kAhead. So a frame that seldom comes waits for the one on the wire
// alone, also where it is one of several, and nobody starves who has much to send. What one lane
// does not use is the other's; nothing is saved or owed.
//
// Plain values; one thread.
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_EXPRESS_TURN_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_EXPRESS_TURN_H_

#include <cstdint>

namespace gradcube::dataplane {

class ExpressTurn {
 public:
  static constexpr std::int64_t kAhead = 4096;  // bytes

  // Whether the next frame is the express lane's. Frames must wait in one of the lanes.
  bool is_express(bool express_waits, bool plain_waits) {
    contended_ = express_waits && plain_waits;
    if (!contended_) express_lead_ = 0;
    return express_waits && express_lead_ < kAhead;
  }
  // The frame that is_express() has chosen has so many bytes.
  void count(bool express, std::uint32_t bytes) {
    if (contended_) express_lead_ += express ? std::int64_t{bytes} : -std::int64_t{bytes};
  }

 private:
  std::int64_t express_lead_ = 0;  // bytes by which the express lane is ahead
  bool contended_ = false;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_EXPRESS_TURN_H_
