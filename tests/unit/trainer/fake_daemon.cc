#include "tests/unit/trainer/fake_daemon.h"

#include <algorithm>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/trainer/fake_session.h"

namespace gradcube::trainer {

FakeDaemon::FakeDaemon(const std::string& socket_path, int rank, int size)
    : path_(socket_path),
      rank_(rank),
      size_(size),
      listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof(address.sun_path)) throw std::runtime_error("the path is too long");
  std::memcpy(address.sun_path, path_.data(), path_.size());
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener_.get(), 16) != 0) {
    throw std::runtime_error("cannot listen at " + path_);
  }
  thread_ = std::thread([this] { run(); });
}

FakeDaemon::~FakeDaemon() {
  kill();
  ::unlink(path_.c_str());
}

void FakeDaemon::kill() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  sessions_.clear();
  listener_.reset();
}

void FakeDaemon::run() {
  constexpr int kLookUpMilliseconds = 5;  // release() and kill() have no doorbell
  while (!stop_) {
    bool idle = true;
    std::vector<pollfd> waiting{{listener_.get(), POLLIN, 0}};
    for (const auto& session : sessions_) {
      if (session->work(released_)) {
        const std::scoped_lock lock(heard_mutex_);
        heard_.submission = session->last_submission();
      }
      idle = session->about_to_sleep() && idle;
      waiting.push_back({session->socket(), POLLIN, 0});
      waiting.push_back({session->doorbell(), POLLIN, 0});
    }
    ::poll(waiting.data(), waiting.size(), idle ? kLookUpMilliseconds : 0);
    for (const auto& session : sessions_) {
      rings_heard_ += session->awake();
      hear(*session);
    }
    std::erase_if(sessions_, [](const auto& session) { return session->finished(); });
    if ((waiting.front().revents & POLLIN) != 0) accept();
  }
}

void FakeDaemon::hear(FakeSession& session) {
  switch (session.hear()) {
    case FakeSession::Message::nothing:
      break;
    case FakeSession::Message::hello: {
      const std::scoped_lock lock(heard_mutex_);
      heard_.hello = session.hello();
      heard_.members = session.members();
      session.answer();
    } break;
    case FakeSession::Message::mapped: {
      const std::scoped_lock lock(heard_mutex_);
      heard_.seals = session.seals();
      session.welcome();
    } break;
    case FakeSession::Message::grow: {
      const std::scoped_lock lock(heard_mutex_);
      heard_.grows.push_back(session.last_grow());
      heard_.resident_bytes = session.resident_bytes();
    } break;
    case FakeSession::Message::inquiry: {
      const std::scoped_lock lock(heard_mutex_);
      heard_.inquiry = session.last_inquiry();
      ++inquiries_;
    } break;
    case FakeSession::Message::make_hub: {
      const std::scoped_lock lock(heard_mutex_);
      heard_.wishes.push_back(session.last_wish());
      if (session.hub() == nullptr) break;
      heard_.hub_keys = session.hub()->keys();
      heard_.hub_optimizer = session.hub()->optimizer();
      heard_.hub_chunk_bytes = session.hub()->chunk_bytes();
      heard_.hub_aggregators = session.hub()->aggregators();
      heard_.hub_staleness = session.hub()->staleness();
    } break;
    case FakeSession::Message::end_hub: {
      const std::scoped_lock lock(heard_mutex_);
      ++heard_.hub_ends;
    } break;
    case FakeSession::Message::goodbye:
      ++orderly_leaves_;
      break;
    case FakeSession::Message::abort:
      ++aborts_;
      break;
    case FakeSession::Message::death:
      ++deaths_;
      break;
  }
}

void FakeDaemon::accept() {
  Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid()) return;
  auto session = std::make_unique<FakeSession>(std::move(socket), rank_, size_);
  if (turning_away_) {
    session->turn_away();
    return;
  }
  sessions_.push_back(std::move(session));
}

}  // namespace gradcube::trainer
