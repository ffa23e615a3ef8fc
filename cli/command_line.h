// The tool as a whole: parses the command line, runs the command, and turns failures into a
// message and an exit code.
#ifndef GRADCUBE_CLI_COMMAND_LINE_H_
#define GRADCUBE_CLI_COMMAND_LINE_H_

namespace gradcube::cli {

// Returns the exit code: 0; 1 when something failed, a result is wrong or the output cannot be
// written; 2 when the command line, or a file that it names, is wrong; of `run`, that of what it
// ran. After SIGINT, SIGTERM or SIGHUP most commands end by that signal (interrupt.h): a shell
// tells 130, 143 or 129.
int run_command_line(int argc, const char* const* argv);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_COMMAND_LINE_H_
