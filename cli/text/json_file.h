// A file with JSON that an option names, which another program may have written.
#ifndef GRADCUBE_CLI_TEXT_JSON_FILE_H_
#define GRADCUBE_CLI_TEXT_JSON_FILE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace gradcube::cli {

class JsonFile {
 public:
  // `expected` ends each message: what the file should be.
  JsonFile(std::string option, std::string path, std::string expected);

  // Throws a UsageError if the file cannot be read, is empty, has more than 16 MiB, or is no JSON.
  // Waits for nobody to open a pipe at its other end: one without a writer is empty.
  nlohmann::json content() const;

  // Throws the UsageError "OPTION "PATH": WHAT; expected EXPECTED".
  [[noreturn]] void refuse(std::string_view what) const;

 private:
  std::string option_;
  std::string path_;
  std::string expected_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_JSON_FILE_H_
