// What goes wrong on a link: the probabilities that a frame is harmed, how long it may be, and
// whether the link is up.
// The settings name them, `gradcube impair` changes them, emulated switches draw by them.
#ifndef GRADCUBE_CONTROL_SETTINGS_IMPAIRMENTS_H_
#define GRADCUBE_CONTROL_SETTINGS_IMPAIRMENTS_H_

#include <cstdint>

namespace gradcube::control {

// What goes wrong, by chance, with the frames that a switch takes from one of its ports: each is a
// probability per frame, 0..1, drawn independently of the others.
struct Impairments {
  double loss = 0;
  double duplicate = 0;
  double reorder = 0;
  double corrupt = 0;
  // Of the same frames: bytes of the longest IP packet that passes; 0: any.
  std::uint32_t mtu = 0;
  // False: the link is down. Nothing comes in and nothing goes out at this port.
  bool up = true;

  bool operator==(const Impairments&) const = default;
};

struct Probability {
  const char* name;
  double Impairments::*member;
};
inline constexpr Probability kProbabilities[] = {{"loss", &Impairments::loss},
                                                 {"duplicate", &Impairments::duplicate},
                                                 {"reorder", &Impairments::reorder},
                                                 {"corrupt", &Impairments::corrupt}};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_SETTINGS_IMPAIRMENTS_H_
