#include "control/cli/command_line.h"

int main(int argc, char** argv) { return gradcube::cli::run_command_line(argc, argv); }
