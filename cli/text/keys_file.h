// A hub's keys as people write them for `--keys FILE`:
//
//   {"keys": [{"name": "conv1.weight", "elements": 9408, "dtype": "float32"}, ...]}
#ifndef GRADCUBE_CLI_TEXT_KEYS_FILE_H_
#define GRADCUBE_CLI_TEXT_KEYS_FILE_H_

#include <string>
#include <vector>

#include "control/checkpoint/hub_key.h"

namespace gradcube::cli {

// In the order of their names. Throws a UsageError that names the file and what is wrong with it:
// it cannot be read, is empty, has more than 16 MiB, is no JSON, or has other JSON than this.
std::vector<control::HubKey> read_keys_file(const std::string& path);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_KEYS_FILE_H_
