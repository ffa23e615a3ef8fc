#include "control/plan/plan_json.h"

#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace gradcube::control {
namespace {

// Collects text and hands it to the stream in large parts.
class Writer {
 public:
  Writer(std::ostream& out, const Plan& plan, const Assignment& assignment)
      : out_(out), plan_(plan), assignment_(assignment) {}

  void begin() {
    text("{\"topology\":");
    text(topology_json(plan_.topology()).dump());
    text(",\"algorithm\":");
    text(nlohmann::json(plan_.algorithm()).dump());
    if (const unsigned trainers = plan_.placement().trainers_per_server(); trainers > 1) {
      fmt::format_to(std::back_inserter(buffer_), ",\"trainers_per_server\":{}", trainers);
    }
    fmt::format_to(std::back_inserter(buffer_), ",\"pieces\":{},\"servers\":[", plan_.pieces());
  }

  void rank(Rank rank, bool first) {
    const ServerId server = plan_.placement().server(rank);
    text(first ? "{\"address\":[" : ",{\"address\":[");
    address(server);
    text("],\"threads\":[");
    for (unsigned t = 0; t < plan_.threads(); ++t) {
      if (t > 0) text(",");
      fmt::format_to(std::back_inserter(buffer_),
                     "{{\"thread\":{},\"lcore\":{},\"weight\":{},\"owns\":", t,
                     assignment_.lcore(server, t), plan_.thread(t).weight);
      const PieceSet owned = plan_.owned(rank, t);
      if (owned.none) {
        text("null");
      } else {
        entry(owned);
      }
      text(",\"steps\":[");
      for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
        for (unsigned w = 0; w < plan_.steps(t); ++w) {
          if (stage != Stage::aggregation || w > 0) text(",");
          step(rank, t, stage, w);
        }
      }
      text("]}");
    }
    text("]}");
    if (buffer_.size() >= kFlushBytes) flush();
  }

  void end() {
    text("]}\n");
    flush();
  }

 private:
  static constexpr std::size_t kFlushBytes = 1 << 16;

  void text(std::string_view part) { buffer_.append(part.data(), part.data() + part.size()); }

  void number(unsigned value) {
    const fmt::format_int digits(value);
    buffer_.append(digits.data(), digits.data() + digits.size());
  }

  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  // The digits of a server, most significant first.
  void address(ServerId server) {
    for (unsigned l = plan_.space().levels(); l-- > 0;) {
      number(plan_.space().digit(server, l));
      if (l > 0) text(",");
    }
  }

  // The digits of a set's owners, most significant first.
  void digits(const PieceSet& set) {
    for (unsigned i = 0; i < set.size; ++i) {
      if (i > 0) text(",");
      if (set.digits[i].value == PieceSet::kAnyDigit) {
        text("null");
      } else {
        number(static_cast<unsigned>(set.digits[i].value));
      }
    }
  }

  void entry(const PieceSet& set) {
    text("[");
    number(set.thread);
    text(",");
    digits(set);
    text("]");
  }

  void list(const PieceSet& set) {
    text("[");
    if (set.count() > kMaxListedPieces) {
      entry(set);
    } else {
      bool first = true;
      set.for_each([&](PieceId piece) {
        if (!first) text(",");
        first = false;
        entry(plan_.owned(piece.owner, piece.thread));
      });
    }
    text("]");
  }

  void step(Rank rank, unsigned thread, Stage stage, unsigned w) {
    const std::optional<unsigned> level = plan_.level(thread, plan_.mirrored(thread, stage, w));
    fmt::format_to(std::back_inserter(buffer_),
                   "{{\"stage\":\"{}\",\"step\":{},\"level\":{},\"exchanges\":[", stage_name(stage),
                   w, level ? std::to_string(*level) : "null");
    const bool ring = plan_.step(thread, plan_.mirrored(thread, stage, w)).is_ring();
    bool first = true;
    for (const Exchange& exchange : plan_.exchanges(rank, thread, stage, w)) {
      text(first ? "{\"peer\":[" : ",{\"peer\":[");
      first = false;
      address(plan_.placement().server(exchange.peer));
      if (ring) {
        text("],\"source\":[");
        address(plan_.placement().server(exchange.source));
        fmt::format_to(std::back_inserter(buffer_), "],\"round\":{},\"send\":", exchange.round);
      } else {
        text("],\"send\":");
      }
      list(exchange.send);
      text(",\"receive\":");
      list(exchange.receive);
      text("}");
      if (buffer_.size() >= kFlushBytes) flush();
    }
    text("]}");
  }

  std::ostream& out_;
  const Plan& plan_;
  const Assignment& assignment_;
  fmt::memory_buffer buffer_;
};

}  // namespace

void write_plan_json(std::ostream& out, const Plan& plan, const Assignment& assignment,
                     std::optional<Rank> rank) {
  Writer writer(out, plan, assignment);
  writer.begin();
  if (rank) {
    writer.rank(*rank, true);
  } else {
    for (Rank r = 0; r < plan.ranks() && out.good(); ++r) writer.rank(r, r == 0);
  }
  writer.end();
}

}  // namespace gradcube::control
