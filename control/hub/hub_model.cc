#include "control/hub/hub_model.h"

#include <map>
#include <utility>

namespace gradcube::control::hub {
namespace {

constexpr std::uint64_t kAlignment = 64;

}  // namespace

HubModel::HubModel(std::vector<HubKey> keys, KeyOptimizers optimizers, const Plan& plan,
                   unsigned lcores, std::uint64_t chunk_bytes, std::string_view where)
    : keys_(std::move(keys)), optimizers_(std::move(optimizers)) {
  const std::vector<HubPath> paths = hub_paths(plan, std::vector<Lcore>(lcores), {});
  std::size_t executors = 0;
  for (const HubPath& path : paths) executors += path.lcores.size();
  const std::uint64_t chosen =
      chunk_bytes == 0 ? default_chunk_bytes(keys_, executors) : chunk_bytes;
  chunks_ = cut_into_chunks(keys_, chosen, where);
  std::uint64_t end = 0;
  for (const HubKey& key : keys_) {
    begins_.push_back(end);
    end += (key.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  begins_.push_back(end);
  const std::vector<ChunkBinding> bindings = bind_chunks(chunks_, paths);
  std::map<std::pair<unsigned, unsigned>, unsigned> execution_of;  // lcore, path
  std::vector<unsigned> paths_on(lcores, 0);
  for (unsigned p = 0; p < paths.size(); ++p) {
    for (const unsigned lcore : paths[p].lcores) {
      execution_of[{lcore, p}] = static_cast<unsigned>(executions_.size());
      executions_.push_back({lcore + lcores * paths_on[lcore]++, paths[p].thread, {}});
    }
  }
  for (std::uint32_t c = 0; c < chunks_.size(); ++c) {
    executions_[execution_of.at({bindings[c].lcore, bindings[c].path})].chunks.push_back(c);
  }
}

}  // namespace gradcube::control::hub
