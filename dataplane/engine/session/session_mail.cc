// What a session does with messages between trainers: their submissions, withdrawals and ends.

#include "dataplane/engine/session/session.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

Session::Take Session::take_mail(Trainer& trainer, unsigned local,
                                 const shared::Submission& submission) {
  const shared::SubmittedMessage& asked = submission.message;
  if (asked.direction > static_cast<std::uint8_t>(shared::Direction::receive)) {
    return violate(local, "a message is neither sent nor received");
  }
  if (asked.peer >= ranks_) return violate(local, "a message's other rank is none of its job");
  if (!aggregation::is_data_type(submission.dtype)) {
    return violate(local, "a message's element type is unknown");
  }
  if (asked.place >= trainer.mail.size() || trainer.mail[asked.place] != kNoMail) {
    return violate(local, "a message's place is another one's, or there is none");
  }
  const SessionRegion& region = *trainer.region;
  if (const char* violation = region.problem_of(submission.offset, submission.count)) {
    return violate(local, violation);
  }
  const MailRequest mail = {
      .request = submission.request,
      .local = local,
      .sends = asked.direction == static_cast<std::uint8_t>(shared::Direction::send),
      .peer = asked.peer,
      .tag = asked.tag,
      .buffer = region.base() + submission.offset,
      .bytes = submission.count,
      .paths = asked.paths,
      .dtype = static_cast<aggregation::DataType>(submission.dtype),
      .place = asked.place};
  trainer.mail[mail.place] = mail_.add(mail);
  count_taken(trainer);
  return Take::taken;
}

// What no engine has begun takes and gives nothing.
Session::Take Session::take_withdrawal(Trainer& trainer, unsigned local,
                                       const shared::Submission& submission) {
  if (submission.message.place >= trainer.mail.size()) {
    return violate(local, "a withdrawal's place is out of range");
  }
  ++trainer.withdrawals;
  count_taken(trainer);
  const std::uint32_t number = trainer.mail[submission.message.place];
  if (number == kNoMail || mail_.at(number).request != submission.request) return Take::taken;
  if (mail_.is_fresh(number)) {
    end_mail(number, GRADCUBE_ECANCELED, 0);
  } else {
    mail_.withdraw(number);
  }
  return Take::taken;
}

void Session::end_mail(std::uint32_t number, std::int32_t code, std::uint64_t bytes,
                       std::uint32_t notice) {
  const MailRequest& mail = mail_.at(number);
  Trainer& trainer = trainers_[mail.local];
  complete(trainer, mail.request, code, notice, bytes);
  trainer.mail[mail.place] = kNoMail;
  mail_.remove(number);
  publish_completions(trainer);
}

void Session::fail_mail(std::int32_t code, std::uint32_t notice) {
  mail_.for_each([&](std::uint32_t number) { end_mail(number, code, 0, notice); });
}

}  // namespace gradcube::dataplane
