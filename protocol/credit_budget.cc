#include "protocol/credit_budget.h"

namespace gradcube::protocol {

bool CreditBudget::loses_too_much() {
  judged_arrivals_ += arrived_;
  judged_losses_ += sent_again_;
  if (judged_arrivals_ < 2 * kDamage) return false;
  const bool too_much = judged_losses_ * kDamage > judged_arrivals_;
  judged_arrivals_ = 0;
  judged_losses_ = 0;
  return too_much;
}

bool CreditBudget::end_round() {
  const std::uint64_t before = now_;
  const std::uint64_t share = marked_ * kWhole / arrived_;
  share_marked_ = (share_marked_ * (kRoundsSmoothed - 1) + share) / kRoundsSmoothed;
  if (loses_too_much()) {
    now_ /= 2;
  } else if (marked_ != 0) {
    // At least one segment less: a small budget would not shrink otherwise.
    now_ -= std::max<std::uint64_t>(now_ * share_marked_ / (2 * kWhole), 1);
  } else {
    ++now_;
  }
  now_ = std::clamp(now_, kLeast, most_);
  arrived_ = 0;
  marked_ = 0;
  sent_again_ = 0;
  return now_ != before;
}

}  // namespace gradcube::protocol
