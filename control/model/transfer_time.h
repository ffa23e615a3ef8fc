// The time that one link takes for some bytes: what every model counts in. The papers call it T_F
// for the whole gradient (BML, Table 1), W/B (HiPS, Table 2), n/w (BlueConnect, Eq. 1) and, for one
// byte, beta (MG-WFBP, Table I).
#ifndef GRADCUBE_CONTROL_MODEL_TRANSFER_TIME_H_
#define GRADCUBE_CONTROL_MODEL_TRANSFER_TIME_H_

namespace gradcube::control::model {

// Seconds: 8 * bytes / bits_per_second. Throws std::invalid_argument unless the bytes are a finite
// number of at least 0 and the rate one above 0. Bytes may be a fraction: a share of a gradient.
double transfer_seconds(double bytes, double bits_per_second);

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_TRANSFER_TIME_H_
