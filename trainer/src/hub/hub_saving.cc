#include "trainer/src/hub/hub_saving.h"

#include <csignal>
#include <unistd.h>
#include <utility>
#define XXH_INLINE_ALL  // no library of it is needed
#include <xxhash.h>

#include "control/base/errors.h"
#include "trainer/src/base/failure.h"
#include "trainer/src/base/quoted.h"

#include "gradcube/gradcube.h"

namespace gradcube::trainer {

namespace {

// A file that grows beyond `ulimit -f` is an error of this thread's, and not the trainer's end.
void block_file_size_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

std::uint64_t digest_of_pushes(const Hub& hub) {
  std::vector<std::uint64_t> pushes;
  for (std::size_t number = 0; number < hub.size(); ++number) {
    pushes.push_back(hub.key_by_name(number).pushes);
  }
  return XXH3_64bits(pushes.data(), pushes.size() * sizeof(pushes[0])) | 1;
}

}  // namespace

HubCopy copy_of_owned(const Hub& hub) {
  HubCopy copy;
  for (const Hub::Owned& owned : hub.owned()) {
    copy.ranges.push_back({owned.key, owned.first_element, owned.elements});
    for (std::size_t i = 0; i < hub.arrays(); ++i) {
      copy.arrays.emplace_back(owned.arrays[i], owned.arrays[i] + owned.elements);
    }
  }
  return copy;
}

HubSaving::HubSaving(const Hub& hub, HubCopy copy, std::string base, const CheckpointFile& file)
    : base_(std::move(base)),
      file_(file),
      pushes_digest_(digest_of_pushes(hub)),
      arrays_(std::move(copy.arrays)) {
  header_.settings = hub.optimizer();
  header_.step = file.version.step;
  header_.part = file.part;
  header_.parts = file.parts;
  header_.run = hub.run;
  header_.keys = hub.keys_by_name();
  for (std::size_t number = 0; number < hub.size(); ++number) {
    header_.steps.push_back(hub.key_by_name(number).steps);
  }
  header_.ranges = std::move(copy.ranges);
  writing_ = std::async(std::launch::async, [this] {
    block_file_size_signal();
    remove_orphans(base_);
    auto writer = std::make_unique<control::CheckpointWriter>(path_of(base_, file_), header_);
    for (const std::vector<float>& array : arrays_) writer->write(array);
    arrays_ = {};
    writer->finish();
    return writer;
  });
}

HubSaving::~HubSaving() {
  if (is_prepared_) ::unlink(path_of(base_, file_).c_str());
}

void publish_checkpoint(const std::string& base, CheckpointFile& file) {
  CheckpointFile published = file;
  published.prepared = false;
  control::rename_durably(path_of(base, file), path_of(base, published));
  file = published;
}

bool HubSaving::wait(const Deadline& deadline) {
  if (deadline.never()) {
    writing_.wait();
    return true;
  }
  return writing_.wait_until(deadline.time_point()) == std::future_status::ready;
}

std::uint64_t HubSaving::finish() {
  try {
    written_ = writing_.get();
  } catch (const std::exception& error) {
    throw Failure(GRADCUBE_ESYSTEM, error.what());
  }
  return next_generation(base_, file_.version.step);
}

void HubSaving::prepare(std::uint64_t generation) {
  file_.version.generation = generation;
  const std::string published = path_of(base_, file_);
  file_.prepared = true;
  try {
    written_->commit(path_of(base_, file_));
  } catch (const control::SetupError& error) {
    throw Failure(GRADCUBE_ESYSTEM, error.what());
  }
  is_prepared_ = true;
  // Who else has had the prepared name since this one's generation was chosen has published.
  if (::access(published.c_str(), F_OK) != 0) return;
  throw Failure(GRADCUBE_ESYSTEM, "checkpoint " + in_quotes(published) +
                                      " was written by another run at the same time: give each "
                                      "run a path of its own");
}

void HubSaving::publish() {
  keep();  // all are prepared: it stays, under one name or the other
  try {
    publish_checkpoint(base_, file_);
  } catch (const control::SetupError& error) {
    throw Failure(GRADCUBE_ESYSTEM, error.what());
  }
}

}  // namespace gradcube::trainer
