// What a session does with messages between trainers: their submissions, withdrawals and ends.

#include "dataplane/engine/session.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

Session::Take Session::take_mail(Seat& seat, unsigned local, const shared::Submission& submission) {
  MailRequest mail;
  mail.request = submission.request;
  mail.local = local;
  mail.sends = submission.kind == static_cast<std::uint8_t>(shared::Kind::send);
  mail.peer = submission.root;
  mail.tag = submission.tag;
  mail.bytes = submission.count;
  mail.paths = submission.paths;
  mail.place = submission.place;
  mail.dtype = static_cast<aggregation::DataType>(submission.dtype);
  if (mail.peer >= ranks_) return violate(local, "a message's other rank is none of its job");
  if (!aggregation::is_data_type(submission.dtype)) {
    return violate(local, "a message's element type is unknown");
  }
  if (mail.place >= seat.mail.size() || seat.mail[mail.place] != kNoMail) {
    return violate(local, "a message's place is another one's, or there is none");
  }
  CollectiveRequest memory;
  memory.carrier = {aggregation::DataType::bytes, aggregation::Operation::sum};
  if (const char* violation = check_buffer(*seat.region, submission, memory)) {
    return violate(local, violation);
  }
  mail.buffer = memory.buffer;
  seat.mail[mail.place] = mail_.add(mail);
  count_taken(seat);
  return Take::taken;
}

// What no engine has begun takes and gives nothing.
Session::Take Session::take_withdrawal(Seat& seat, unsigned local,
                                       const shared::Submission& submission) {
  if (submission.place >= seat.mail.size()) {
    return violate(local, "a withdrawal's place is out of range");
  }
  ++seat.withdrawals;
  count_taken(seat);
  const std::uint32_t number = seat.mail[submission.place];
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
  Seat& seat = seats_[mail.local];
  seat.region->completion(seat.completions_written++) = {mail.request, code, notice, bytes};
  seat.mail[mail.place] = kNoMail;
  mail_.remove(number);
  publish_completions(seat);
}

void Session::fail_mail(std::int32_t code, std::uint32_t notice) {
  mail_.for_each([&](std::uint32_t number) { end_mail(number, code, 0, notice); });
}

}  // namespace gradcube::dataplane
