// The message of the exception that a call throws; empty when it throws none.
#ifndef GRADCUBE_TESTS_UNIT_CONTROL_MESSAGE_H_
#define GRADCUBE_TESTS_UNIT_CONTROL_MESSAGE_H_

#include <string>

namespace gradcube::control {

template <typename Error, typename Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_UNIT_CONTROL_MESSAGE_H_
