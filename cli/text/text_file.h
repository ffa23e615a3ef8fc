// A file that an option asks for, with the text that a command has made.
#ifndef GRADCUBE_CLI_TEXT_TEXT_FILE_H_
#define GRADCUBE_CLI_TEXT_TEXT_FILE_H_

#include <string>
#include <string_view>

namespace gradcube::cli {

// Replaces what is there. Throws a SetupError that begins with the option where it cannot be
// written.
void write_text_file(std::string_view option, const std::string& path, std::string_view text);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_TEXT_FILE_H_
