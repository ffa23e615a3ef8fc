#include "tests/simulation/kept_pools.h"

#include <dlfcn.h>
#include <map>
#include <string_view>
#include <utility>

namespace {

std::map<std::string, rte_mempool*> in_use;  // by the name that was asked for
std::map<std::string, rte_mempool*> kept;    // by DPDK's name

// These would begin with what they had grown to (dataplane/host/packet_memory.h).
bool grows(const rte_mempool& pool) { return std::string_view(pool.name).starts_with("segments-"); }

// Once it has packets.
bool is_made(const rte_mempool& pool) { return (pool.flags & RTE_MEMPOOL_F_POOL_CREATED) != 0; }

// DPDK's own function, which the one of this name below replaces.
template <typename Function>
Function* original(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

namespace gradcube::simulation {

const rte_mempool* pool_in_use(const std::string& name) {
  const auto found = in_use.find(name);
  return found == in_use.end() ? nullptr : found->second;
}

}  // namespace gradcube::simulation

extern "C" {

rte_mempool* rte_mempool_create_empty(const char* name, unsigned count, unsigned element_bytes,
                                      unsigned cache, unsigned private_bytes, int socket,
                                      unsigned flags) {
  static const auto create = original(&rte_mempool_create_empty, "rte_mempool_create_empty");
  static const auto end = original(&rte_mempool_free, "rte_mempool_free");
  // Kept pools of other lengths have other names, so that all can be there at once.
  const std::string full_name = std::string(name) + '-' + std::to_string(element_bytes);
  rte_mempool* pool = nullptr;
  if (const auto entry = kept.extract(full_name); !entry.empty()) {
    pool = entry.mapped();
    const bool fits = pool->size == count && pool->cache_size == cache &&
                      pool->private_data_size >= private_bytes && pool->socket_id == socket;
    if (!fits) end(std::exchange(pool, nullptr));
  }
  if (pool != nullptr) {
    pool->populated_size = pool->size;
  } else {
    pool = create(full_name.c_str(), count, element_bytes, cache, private_bytes, socket, flags);
  }
  if (pool != nullptr) in_use[name] = pool;
  return pool;
}

int rte_mempool_set_ops_byname(rte_mempool* pool, const char* name, void* config) {
  static const auto set = original(&rte_mempool_set_ops_byname, "rte_mempool_set_ops_byname");
  return is_made(*pool) ? 0 : set(pool, name, config);
}

void rte_mempool_free(rte_mempool* pool) {
  static const auto end = original(&rte_mempool_free, "rte_mempool_free");
  if (pool == nullptr) return;
  std::erase_if(in_use, [pool](const auto& entry) { return entry.second == pool; });
  const bool stays = is_made(*pool) && !grows(*pool) && rte_mempool_avail_count(pool) == pool->size;
  if (!stays || !kept.emplace(pool->name, pool).second) end(pool);
}

}  // extern "C"
