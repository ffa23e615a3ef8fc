// What set-up throws: a GRADCUBE_E... code with the message for the person who reads it.
//
// Thrown only while a session is opened. Once it is open, failures are codes, and the message lies
// in the session. gradcube.cc turns every exception into a code before it could cross the C ABI.
#ifndef GRADCUBE_TRAINER_SRC_BASE_FAILURE_H_
#define GRADCUBE_TRAINER_SRC_BASE_FAILURE_H_

#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

namespace gradcube::trainer {

class Failure : public std::runtime_error {
 public:
  Failure(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

// "<what>: No such file or directory": `error` is an errno value.
inline std::string with_system_error(const std::string& what, int error) {
  return what + ": " + std::strerror(error);
}

// What make() says; nothing where there is no memory for a text: the code's own words serve then.
template <typename Make>
std::string text_if_any(const Make& make) noexcept {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_BASE_FAILURE_H_
