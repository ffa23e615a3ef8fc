#include "cli/perf/perf_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <string_view>

#include "aggregation/element.h"
#include "aggregation/reproducible.h"
#include "cli/measure/perf_collective.h"
#include "cli/perf/perf_messages.h"
#include "cli/perf/perf_sizes.h"
#include "cli/text/closest.h"
#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"

namespace gradcube::cli {
namespace {

using aggregation::DataType;
using aggregation::Operation;
using control::CollectiveKind;
using control::UsageError;

constexpr const char* kDefaultSizes = "1K,64K,1M,12.5M";
constexpr std::uint64_t kMostSizeFactor = 1'000'000;

constexpr const char* kPerfFooter =
    "Collectives: allreduce, reduce_scatter, allgather, broadcast, reduce, barrier. sendrecv is\n"
    "messages from one rank to another, over all parallel paths where they are large, and hub\n"
    "rounds of a parameter hub, with options of its own (`gradcube perf hub --help`).\n"
    "A size is that of the whole buffer. For reduce_scatter and allgather, where each of the N\n"
    "trainers has a chunk of it, it is rounded down to N chunks of whole elements. A barrier\n"
    "has no size, type or operation, and nothing is added in an allgather or a broadcast.\n"
    "K, M and G are decimal, Ki, Mi and Gi binary. A row shows one size:\n"
    "  min, median, max   time of an iteration, from the first start to the last end\n"
    "  algbw              bytes / median time\n"
    "  busbw              algbw x a factor, as in nccl-tests: allreduce 2(N-1)/N, reduce_scatter\n"
    "                     and allgather (N-1)/N, broadcast and reduce 1\n"
    "  bound, eff         time of the plan's busiest link; bound / median. On a whole BCube with\n"
    "                     k ports per server: allreduce, broadcast, reduce 2(N-1)/(kN) x bytes at\n"
    "                     the links' rate, reduce_scatter and allgather (N-1)/(kN)\n"
    "  wrong              elements that differ from the expected bits (--check); of a barrier,\n"
    "                     trainers that left it before the last one came\n"
    "  resent             segments that were sent again\n"
    "With --verbose also, of each operation, warm-up included:\n"
    "  segments, acks     frames that all servers have sent: with a segment; with nothing else\n"
    "  sleeps, cpu        of the trainers here and of this host's daemons: how often their\n"
    "                     threads have slept, and their time on cores\n"
    "Where each server has a daemon of its own on a host of its own, run the same command on\n"
    "all of them with the same --job, by any launcher; the one of rank 0 prints, with its own\n"
    "times.\n"
    "Examples:\n"
    "  gradcube perf allreduce -b 1K -e 16M -f 2\n"
    "  gradcube perf allreduce --sizes 1K,64K,12.5M --iterations 5 --check\n"
    "  gradcube perf allreduce --sizes 97M --dtype bfloat16 --op average --json\n"
    "  gradcube perf allreduce --reproducible --algorithm ring --check\n"
    "  gradcube perf broadcast --root 4 --dtype bytes --sizes 1M\n"
    "  gradcube perf reduce_scatter --members \"0,0 0,1 0,2\"\n"
    "  gradcube perf allreduce -b 1K -e 64M -f 4 --algorithm auto --check\n"
    "  gradcube perf sendrecv --from 0 --to 8 --sizes 1K,16M --check\n"
    "  gradcube perf hub --network lenet5 --optimizer momentum --check";

// The names of the values below `values` that `fits` accepts.
template <typename T, typename Name, typename Fits>
std::string names_of(std::size_t values, Name name, Fits fits) {
  std::string names;
  for (std::size_t i = 0; i < values; ++i) {
    const auto value = static_cast<T>(i);
    if (fits(value)) names += fmt::format("{}{}", names.empty() ? "" : ", ", name(value));
  }
  return names;
}

// Of those that perf takes.
std::string types_with(Operation operation) {
  return names_of<DataType>(
      aggregation::kTypeNumbers, aggregation::data_type_name, [operation](DataType type) {
        return aggregation::is_plain(aggregation::element_type(type)) && supports(type, operation);
      });
}

// Any spelling with or without '-' and '_': "reduce-scatter", "all_reduce".
CollectiveKind parse_collective(const std::string& text) {
  const auto bare = [](std::string_view name) {
    std::string letters(name);
    std::erase_if(letters, [](char c) { return c == '-' || c == '_'; });
    return letters;
  };
  std::vector<std::string> names;
  for (const CollectiveKind kind : control::kCollectiveKinds) {
    if (bare(perf_name(kind)) == bare(text)) return kind;
    names.emplace_back(perf_name(kind));
  }
  names.emplace_back("sendrecv");
  names.emplace_back("hub");
  throw UsageError(fmt::format("perf: there is no collective {}{}; expected {}",
                               control::quoted(text), did_you_mean(text, names),
                               fmt::join(names, ", ")));
}

// Where elements are added, a type whose elements can be.
DataType parse_type(CollectiveKind kind, const std::string& text) {
  const auto fits = [kind](DataType type) {
    if (!aggregation::is_plain(aggregation::element_type(type))) return false;
    return !control::reduces(kind) || supports(type, Operation::sum);
  };
  const std::optional<DataType> type = aggregation::parse_data_type(text);
  if (type && fits(*type)) return *type;
  throw UsageError(fmt::format(
      "--dtype: {} {}; expected {}", control::quoted(text),
      type ? "cannot be added" : "is not known",
      names_of<DataType>(aggregation::kTypeNumbers, aggregation::data_type_name, fits)));
}

Operation parse_operation_of(DataType type, const std::string& text) {
  const auto fits = [type](Operation operation) { return supports(type, operation); };
  const std::string expected =
      names_of<Operation>(aggregation::kOperations, aggregation::operation_name, fits);
  const std::optional<Operation> operation = aggregation::parse_operation(text);
  if (!operation) {
    throw UsageError(
        fmt::format("--op: {} is not known; expected {}", control::quoted(text), expected));
  }
  if (!fits(*operation)) {
    throw UsageError(fmt::format("--op: {} has no {}; expected {}, or another --dtype",
                                 data_type_name(type), text, expected));
  }
  return *operation;
}

// Options that say nothing about this kind are most often meant for another one.
void require_useful(const PerfOptions& options, CollectiveKind kind) {
  const auto refuse = [kind](std::string_view flag, const std::string& text, std::string_view why) {
    if (text.empty()) return;
    throw UsageError(fmt::format("{}: {} {}; expected perf {} without it", flag, with_article(kind),
                                 why, perf_name(kind)));
  };
  if (kind == CollectiveKind::barrier) {
    refuse("--sizes", options.sizes, "has no bytes");
    refuse("--min-bytes", options.min_bytes, "has no bytes");
    refuse("--max-bytes", options.max_bytes, "has no bytes");
    refuse("--dtype", options.dtype, "has no elements");
  }
  if (!takes_operation(kind)) refuse("--op", options.op, "adds nothing");
  if (!control::has_root(kind)) refuse("--root", options.root, "has no root");
  refuse("--from", options.from, "is not between two ranks");
  refuse("--to", options.to, "is not between two ranks");
  refuse("--paths", options.paths, "takes the links of its algorithm");
}

void add_size_options(CLI::App* command, PerfOptions* options) {
  CLI::Option* sizes =
      command->add_option("--sizes", options->sizes, "Bytes of each buffer, as a list")
          ->default_str(kDefaultSizes);
  CLI::Option* least =
      command->add_option("-b,--min-bytes", options->min_bytes, "The first size of a range");
  CLI::Option* most = command->add_option("-e,--max-bytes", options->max_bytes,
                                          "The range's end (default: --min-bytes)");
  CLI::Option* factor = command
                            ->add_option("-f,--factor", options->factor,
                                         "Each size of the range is this many times the last")
                            ->capture_default_str();
  sizes->check(not_empty());
  for (CLI::Option* option : {least, most, factor}) option->check(not_empty())->excludes(sizes);
  factor->needs(least);
}

void add_kind_options(CLI::App* command, PerfOptions* options) {
  add_text(command, "-d,--dtype", options->dtype,
           types_with(Operation::sum) + "; bytes where nothing is added")
      ->default_str("float32");
  add_text(command, "-o,--op", options->op,
           fmt::format("sum, average (of {}), min, max, where something is added",
                       types_with(Operation::average)))
      ->default_str("sum");
  add_text(command, "--root", options->root, "The rank that a broadcast or a reduce is about")
      ->default_str("0");
  add_text(command, "--from", options->from, "The rank that sends, in a sendrecv")
      ->default_str("0");
  add_text(command, "--to", options->to, "The rank that receives")->default_str("the last one");
  add_text(command, "--paths", options->paths,
           "The most paths that a message may take, 1 to 8 (default: one, or all from 64 KiB "
           "on)");
}

}  // namespace

void add_perf_options(CLI::App* command, PerfOptions* options) {
  command->add_option("collective", options->collective, "allreduce, or another of those below");
  add_size_options(command, options);
  add_kind_options(command, options);
  add_number(command, "--in-flight", options->settings.in_flight, 1, 1024, "Collectives at once");
  add_job_options(command, *options, options->settings);
  command->add_flag("--check", options->settings.check,
                    "Compare every element of every result with that of a scalar computation");
  command->add_flag("-v,--verbose", options->settings.counts_work,
                    "Also show what an operation costs: frames, sleeps of threads, CPU time");
  command->add_flag("--reproducible", options->settings.reproducible,
                    "Ask for results that have the same bits whatever the algorithm, the topology "
                    "and the cores; floats take 2 to 8 times their bytes on the links");
  command->footer(kPerfFooter);
}

PerfSettings settings_of(const PerfOptions& options) {
  const auto or_else = [](const std::string& text, const char* otherwise) {
    return text.empty() ? std::string(otherwise) : text;
  };
  PerfSettings settings = options.settings;
  settings.kind = parse_collective(options.collective);
  require_useful(options, settings.kind);
  settings.type = parse_type(settings.kind, or_else(options.dtype, "float32"));
  settings.operation = control::reduces(settings.kind)
                           ? parse_operation_of(settings.type, or_else(options.op, "sum"))
                           : Operation::sum;
  settings.root = static_cast<control::Rank>(
      control::parse_integer(or_else(options.root, "0"), "--root", 0, kMostRank));
  apply_job_options(options, settings);
  return settings;
}

std::vector<std::uint64_t> sizes_of(const PerfOptions& options) {
  if (!measures_messages(options) &&
      parse_collective(options.collective) == CollectiveKind::barrier) {
    return {0};
  }
  if (options.min_bytes.empty() && options.max_bytes.empty()) {
    return parse_size_list(options.sizes.empty() ? kDefaultSizes : options.sizes);
  }
  if (options.min_bytes.empty()) throw UsageError("--max-bytes needs --min-bytes beside it");
  SizeRange range;
  range.least = control::parse_size(options.min_bytes, "--min-bytes");
  range.most = options.max_bytes.empty() ? range.least
                                         : control::parse_size(options.max_bytes, "--max-bytes");
  range.factor = control::parse_integer(options.factor, "--factor", 2, kMostSizeFactor);
  return sizes_of(range);
}

void require_root(const PerfSettings& settings, const control::Plan& plan) {
  const std::uint32_t trainers = plan.placement().trainers();
  if (settings.root < trainers) return;
  throw UsageError(
      fmt::format("--root: there is no rank {}; expected 0 to {}", settings.root, trainers - 1));
}

void require_carrier(const PerfSettings& settings, const control::Plan& plan) {
  if (carried_bytes(settings, plan.placement().trainers()) != 0) return;
  throw UsageError(fmt::format(
      "--reproducible: a sum of float64 takes at most {} trainers, of other floats {}, and the job "
      "has {}; expected another --dtype, or fewer --members",
      aggregation::kMostReproducibleFloat64, aggregation::kMostReproducible,
      plan.placement().trainers()));
}

std::uint64_t elements_of(std::uint64_t size, const PerfSettings& settings, std::uint32_t ranks) {
  const std::uint64_t element = aggregation::element_bytes(settings.type);
  const std::uint64_t chunks = control::is_rank_ordered(settings.kind) ? ranks : 1;
  const std::uint64_t count = size / (element * chunks) * chunks;
  if (size == 0 || count > 0) return count;
  const std::string_view type = aggregation::data_type_name(settings.type);
  if (chunks == 1) {
    throw UsageError(
        fmt::format("a size of {} B holds no {}, which has {} B", size, type, element));
  }
  throw UsageError(
      fmt::format("a size of {} B holds no {} for each of {} trainers; expected {} B or more", size,
                  type, chunks, element * chunks));
}

}  // namespace gradcube::cli
