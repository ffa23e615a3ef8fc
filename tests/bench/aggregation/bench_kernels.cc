// How fast the kernels are. `bench_kernels` runs every kernel under Google Benchmark, with its
// usual options, and `ratio` counters beside the peer loop; `bench_kernels --json` prints the
// comparison with the peer as one JSON object:
//
//     {"rows":[{"figure":..,"value":..,"unit":"GB/s","peer":..,"peer_name":..,"ratio":..},...]}
#include <benchmark/benchmark.h>
#include <cstdio>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "aggregation/kernels.h"
#include "aggregation/reproducible.h"
#include "tests/bench/aggregation/comparison.h"
#include "tests/bench/aggregation/optimizer_comparison.h"

namespace gradcube::aggregation::bench {
namespace {

void print_json(const std::vector<Comparison>& comparisons) {
  std::printf("{\"rows\":[");
  const char* separator = "";
  for (const Comparison& row : comparisons) {
    std::printf(
        "%s\n{\"figure\":\"%s\",\"value\":%.2f,\"unit\":\"GB/s\",\"peer\":%.2f,"
        "\"peer_name\":\"%s\",\"ratio\":%.3f}",
        separator, row.figure.c_str(), row.gigabytes_per_second, row.peer_gigabytes_per_second,
        row.peer_name.c_str(), row.ratio);
    separator = ",";
  }
  std::printf("\n]}\n");
}

template <typename Compare>
void run_comparison(benchmark::State& state, Compare compare) {
  Comparison comparison;
  for (auto _ : state) comparison = compare();
  state.counters["GB/s"] = comparison.gigabytes_per_second;
  state.counters["peer_GB/s"] = comparison.peer_gigabytes_per_second;
  state.counters["ratio"] = comparison.ratio;
}

void run_reduce(benchmark::State& state, const Kernels& kernels, DataType type, Operation operation,
                std::size_t source_count, std::size_t total_bytes) {
  const std::size_t count = total_bytes / source_count / element_bytes(type);
  std::vector<Memory> arrays;
  std::vector<const void*> sources;
  for (std::size_t s = 0; s < source_count; ++s) {
    arrays.push_back(make_memory(count * element_bytes(type)));
    sources.push_back(arrays.back().get());
  }
  const ReduceFunction reduce = kernels.reduce(type, operation);
  for (auto _ : state) {
    reduce(arrays[0].get(), sources.data(), source_count, count);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(
      state.iterations() *
      static_cast<std::int64_t>((source_count + 1) * count * element_bytes(type)));
}

void run_divide(benchmark::State& state, const Kernels& kernels, DataType type) {
  const std::size_t count = kBytesInL2 / element_bytes(type);
  const Memory values = make_memory(count * element_bytes(type));
  const DivideFunction divide = kernels.divide(type);
  for (auto _ : state) {
    divide(values.get(), count, 9);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(2 * count * element_bytes(type)));
}

// Both ways, of values whose exponents differ as random bytes do.
void run_conversion(benchmark::State& state, const ReproducibleReduction& reduction, bool back) {
  const std::size_t count = kBytesInL2 / 2 / element_bytes(carrier_of(reduction)->type);
  const Memory values = make_memory(count * element_bytes(reduction.type));
  const Memory carriers = make_memory(count * element_bytes(carrier_of(reduction)->type));
  std::mt19937 random;
  for (std::size_t i = 0; i < count * element_bytes(reduction.type); ++i) {
    values.get()[i] = static_cast<std::byte>(random());
  }
  to_carriers(reduction, values.get(), carriers.get(), count);
  for (auto _ : state) {
    if (back) {
      from_carriers(reduction, carriers.get(), values.get(), count);
    } else {
      to_carriers(reduction, values.get(), carriers.get(), count);
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

void register_conversions() {
  for (const DataType type :
       {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16}) {
    for (const Operation operation : {Operation::sum, Operation::average}) {
      for (const std::uint32_t ranks : {9u, 32u}) {
        for (const bool back : {false, true}) {
          const std::string name = "reproducible/" + std::string(data_type_name(type)) + "/" +
                                   std::string(operation_name(operation)) + "/" +
                                   std::to_string(ranks) + "_ranks/" + (back ? "from" : "to") +
                                   "_carriers";
          benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
            run_conversion(state, {type, operation, ranks}, back);
          });
        }
      }
    }
  }
}

std::string name_of(DataType type) {
  if (type == DataType::sum64) return "sum64";
  if (type == DataType::sum128) return "sum128";
  return std::string(data_type_name(type));
}

void register_kernels(const Kernels& kernels) {
  const std::string prefix(instruction_set_name(kernels.instruction_set));
  for (std::size_t t = 0; t < kTypeNumbers; ++t) {
    const auto type = static_cast<DataType>(t);
    const std::string typed = prefix + "/" + name_of(type);
    for (const Operation operation :
         {Operation::sum, Operation::average, Operation::min, Operation::max}) {
      if (kernels.reduce(type, operation) == nullptr) continue;
      for (const std::size_t source_count : {2, 3, 9}) {
        const std::string name = typed + "/" + std::string(operation_name(operation)) + "/" +
                                 std::to_string(source_count) + "_sources/L2";
        benchmark::RegisterBenchmark(name.c_str(), [=, &kernels](benchmark::State& state) {
          run_reduce(state, kernels, type, operation, source_count, kBytesInL2);
        });
      }
    }
    if (kernels.divide(type) == nullptr) continue;
    benchmark::RegisterBenchmark(
        (typed + "/divide/L2").c_str(),
        [=, &kernels](benchmark::State& state) { run_divide(state, kernels, type); });
  }
}

void register_all() {
  for (const std::size_t source_count : {2, 3}) {
    const std::string name = "peer/float32/sum/" + std::to_string(source_count) + "_sources/";
    benchmark::RegisterBenchmark((name + "L2").c_str(), [=](benchmark::State& state) {
      run_comparison(state, [&] { return compare_float32_sum(source_count, kBytesInL2, "in L2"); });
    })->Iterations(1);
    benchmark::RegisterBenchmark((name + "memory").c_str(), [=](benchmark::State& state) {
      run_comparison(
          state, [&] { return compare_float32_sum(source_count, bytes_in_memory(), "in memory"); });
    })->Iterations(1);
  }
  for (const OptimizerRule rule : {OptimizerRule::nesterov, OptimizerRule::adamw}) {
    const std::string name = "fused/float32/" + std::string(optimizer_rule_name(rule)) + "/";
    benchmark::RegisterBenchmark((name + "L2").c_str(), [=](benchmark::State& state) {
      run_comparison(state, [&] { return compare_optimizer(rule, kBytesInL2, "in L2"); });
    })->Iterations(1);
    benchmark::RegisterBenchmark((name + "memory").c_str(), [=](benchmark::State& state) {
      run_comparison(state,
                     [&] { return compare_optimizer(rule, bytes_in_memory(), "in memory"); });
    })->Iterations(1);
  }
  for (const InstructionSet instruction_set : kInstructionSets) {
    if (const Kernels* kernels = kernels_for(instruction_set)) register_kernels(*kernels);
  }
  register_conversions();
}

}  // namespace
}  // namespace gradcube::aggregation::bench

int main(int argc, char** argv) {
  namespace bench = gradcube::aggregation::bench;
  try {
    if (argc == 2 && std::strcmp(argv[1], "--json") == 0) {
      std::vector<bench::Comparison> rows = bench::compare_all();
      for (const bench::Comparison& row : bench::compare_optimizers()) rows.push_back(row);
      bench::print_json(rows);
      return 0;
    }
    bench::register_all();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_kernels: %s\n", error.what());
    return 1;
  }
}
