#include "control/plan/plan_json.h"

#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>

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
    fmt::format_to(std::back_inserter(buffer_), ",\"pieces\":{},\"servers\":[", plan_.pieces());
  }

  void server(ServerId server, bool first) {
    text(first ? "{\"address\":[" : ",{\"address\":[");
    digits(plan_.piece_set(server, 0, plan_.steps() - 1));
    text("],\"threads\":[");
    for (unsigned t = 0; t < plan_.threads(); ++t) {
      if (t > 0) text(",");
      fmt::format_to(std::back_inserter(buffer_), "{{\"thread\":{},\"lcore\":{},\"owns\":", t,
                     assignment_.lcore(server, t));
      entry(plan_.piece_set(server, t, plan_.steps() - 1));
      text(",\"steps\":[");
      for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
        for (unsigned w = 0; w < plan_.steps(); ++w) {
          if (stage != Stage::aggregation || w > 0) text(",");
          step(server, t, stage, w);
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

  // The digits of a set's owners, most significant first.
  void digits(const PieceSet& set) {
    for (unsigned l = plan_.steps(); l-- > 0;) {
      if (set.digits[l] == PieceSet::kAnyDigit) {
        text("null");
      } else {
        number(static_cast<unsigned>(set.digits[l]));
      }
      if (l > 0) text(",");
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
    if (set.count(plan_.space()) > kMaxListedPieces) {
      entry(set);
    } else {
      bool first = true;
      set.for_each(plan_.space(), [&](PieceId piece) {
        if (!first) text(",");
        first = false;
        entry(plan_.piece_set(piece.owner, piece.thread, plan_.steps() - 1));
      });
    }
    text("]");
  }

  void step(ServerId server, unsigned thread, Stage stage, unsigned w) {
    fmt::format_to(std::back_inserter(buffer_),
                   "{{\"stage\":\"{}\",\"step\":{},\"level\":{},\"exchanges\":[", stage_name(stage),
                   w, plan_.level(thread, plan_.mirrored(stage, w)));
    bool first = true;
    for (const Exchange& exchange : plan_.exchanges(server, thread, stage, w)) {
      text(first ? "{\"peer\":[" : ",{\"peer\":[");
      first = false;
      digits(plan_.piece_set(exchange.peer, thread, plan_.steps() - 1));
      text("],\"send\":");
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
                     std::optional<ServerId> server) {
  Writer writer(out, plan, assignment);
  writer.begin();
  if (server) {
    writer.server(*server, true);
  } else {
    for (ServerId s = 0; s < plan.servers() && out.good(); ++s) writer.server(s, s == 0);
  }
  writer.end();
}

}  // namespace gradcube::control
