#include "tests/support/random_message.h"

#include <array>
#include <string_view>
#include <utility>

namespace gradcube::control {
namespace {

class Maker {
 public:
  Maker(std::mt19937_64& random, const bcube::AddressSpace& space)
      : random_(random), space_(space) {}

  NodeMessage message(std::size_t kind) {
    NodeMessage message;
    message.from = server();
    do {
      message.to = server();
    } while (message.to == message.from);
    if (kind == 0) {
      message.body = Greeting{random_(), flag()};
    } else if (kind > kJobBodies) {
      set_other(message, kind - kJobBodies);
    } else {
      message.body = JobMessage{{message.from, random_(), few()},
                                {message.to, random_(), few()},
                                word(),
                                name(),
                                body(kind - 1, std::make_index_sequence<kJobBodies>()),
                                {random_(), random_()}};
    }
    return message;
  }

 private:
  static constexpr std::size_t kJobBodies = std::variant_size_v<JobBody>;

  // Of those behind the job message, from 1 on.
  void set_other(NodeMessage& message, std::size_t which) {
    const HubName hub{word(), word()};
    const std::uint32_t parts = 1 + below(kMostStatusParts);
    switch (which) {
      case 1:
        message.body = StatusAsk{random_(), below(kMostStatusParts)};
        return;
      case 2:
        message.body = StatusPart{random_(), below(parts), parts, std::string(below(500), '\xff')};
        return;
      case 3:
        message.body = HubCall{hub,
                               {random_(), random_()},
                               word(),
                               word(),
                               name(),
                               {server()},
                               1 + below(16),
                               1 + below(1000),
                               word(),
                               word(),
                               1 + below(1 << 25),
                               flag()};
        return;
      case 4:
        message.body = HubAsk{hub, below(2048)};
        return;
      case 5:
        message.body = HubPart{hub, below(2048), std::string(below(500), '\xff')};
        return;
      case 6:
        message.body = HubState{hub, static_cast<HubState::Progress>(below(3)), code(), text()};
        return;
      case 7:
        message.body = HubEnd{hub};
        return;
      case 8:
        message.body = Challenge{random_()};
        return;
      default:
        message.body = Response{random_()};
    }
  }
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  bool flag() { return below(2) == 0; }
  std::uint32_t word() { return static_cast<std::uint32_t>(random_()) | 1; }
  std::uint64_t few() { return below(3); }
  std::int32_t code() { return static_cast<std::int32_t>(random_()); }
  bcube::ServerId server() { return space_.server_list()[below(space_.servers())]; }
  std::uint32_t rank() { return below(space_.servers()); }
  std::uint32_t lane() { return below(8); }

  std::string name() {
    constexpr std::string_view kCharacters = "abzABZ019._-";
    std::string name;
    for (std::uint32_t length = 1 + below(63); length > 0; --length) {
      name += kCharacters[below(kCharacters.size())];
    }
    return name;
  }
  std::string text() {
    std::string text(below(4) == 0 ? below(4097) : below(20), ' ');
    for (char& character : text) character = static_cast<char>(random_());
    return text;
  }
  std::vector<bcube::ServerId> servers() {
    std::vector<bcube::ServerId> servers;
    for (const bcube::ServerId each : space_.server_list()) {
      if (flag()) servers.push_back(each);
    }
    return servers;
  }
  LaneNumbers numbers() {
    LaneNumbers numbers(below(9));
    for (std::uint64_t& number : numbers) number = random_();
    return numbers;
  }
  JobOptions options() {
    JobOptions options;
    for (std::uint32_t lanes = 1 + below(8); lanes > 0; --lanes) {
      options.lanes.push_back({std::string(below(56), 'a'), code()});
    }
    options.weight = 1 + below(1000);
    options.members = servers();
    options.reproducible = flag();
    options.trainers = 1 + below(16);
    return options;
  }
  TrainerInfo trainer() { return {code(), word()}; }
  TransportFacts transport() { return {word(), word(), flag(), word()}; }
  CollectiveName collective() { return {lane(), random_()}; }
  Disagreement disagreement(std::uint32_t lane) {
    const auto cause = static_cast<Disagreement::Cause>(below(3));
    return {lane, random_(), code(), text(), cause};
  }
  template <typename T>
  std::optional<T> maybe(T value) {
    if (flag()) return std::nullopt;
    return value;
  }

  void fill(Join& join) { join = {trainer(), options(), maybe(rank()), transport(), word()}; }
  void fill(Pending& pending) { pending = {text()}; }
  void fill(Refused& refused) { refused = {text()}; }
  void fill(Seek&) {}
  void fill(Elsewhere& elsewhere) { elsewhere = {trainer(), options()}; }
  void fill(Prepare& prepare) {
    prepare.job = {word(), name(), options(), flag(), {}, transport(), word()};
    for (const bcube::ServerId each : servers()) {
      prepare.job.members.push_back({each, rank(), random_(), random_()});
    }
  }
  void fill(Armed& armed) { armed = {word()}; }
  void fill(Start& start) { start = {word()}; }
  void fill(Started& started) { started = {word()}; }
  void fill(Disagree& disagree) { disagree = {word(), disagreement(lane())}; }
  void fill(Hold& hold) { hold = {word(), text(), maybe(collective())}; }
  void fill(Held& held) {
    held = {word(), numbers(), numbers(), {}, maybe(collective()), text(), numbers()};
    for (std::uint32_t lane = 0; lane < 8; ++lane) {
      if (flag()) held.disagreements.push_back(disagreement(lane));
    }
  }
  void fill(Reset& reset) { reset = {word(), {numbers(), numbers(), code(), text()}}; }
  void fill(Leave& leave) { leave = {text(), flag(), word(), maybe(numbers())}; }
  void fill(Left& left) {
    left.first = word();
    for (std::uint32_t count = below(9); count > 0; --count) {
      left.departures.push_back({server(), word(), text(), numbers()});
    }
  }
  void fill(Noted& noted) { noted = {word()}; }
  void fill(Abort& abort) {
    abort = {text(), servers(), maybe(numbers()), maybe(numbers()), flag()};
  }
  void fill(Unknown&) {}
  void fill(Ask& ask) { ask = {random_()}; }
  void fill(Counts& counts) { counts = {random_(), code(), numbers(), numbers()}; }

  template <std::size_t... kPlaces>
  JobBody body(std::size_t place, std::index_sequence<kPlaces...>) {
    const std::array<JobBody, sizeof...(kPlaces)> empty = {
        JobBody(std::in_place_index<kPlaces>)...};
    JobBody body = empty[place];
    std::visit([this](auto& each) { this->fill(each); }, body);
    return body;
  }

  std::mt19937_64& random_;
  const bcube::AddressSpace& space_;
};

}  // namespace

NodeMessage random_message(std::size_t kind, std::mt19937_64& random,
                           const bcube::AddressSpace& space) {
  return Maker(random, space).message(kind);
}

}  // namespace gradcube::control
