#include "memory_plan.h"

#include <set>
#include <vector>

namespace adreno_bench::clml {
namespace {

struct Buffer {
  std::size_t nbytes;
  bool used;
  /// The node whose tensor is written to it last.
  std::size_t node;
};

/// The smallest free buffer that is large enough, or else a new one.
std::size_t Take(std::size_t nbytes, std::size_t node, std::vector<Buffer>* pool) {
  std::size_t best = pool->size();
  for (std::size_t i = 0; i < pool->size(); ++i) {
    const Buffer& buffer = (*pool)[i];
    const bool fits = !buffer.used && buffer.nbytes >= nbytes;
    if (fits && (best == pool->size() || buffer.nbytes < (*pool)[best].nbytes)) best = i;
  }
  if (best == pool->size()) pool->push_back({nbytes, true, node});
  (*pool)[best].used = true;
  (*pool)[best].node = node;
  return best;
}

}  // namespace

std::map<std::size_t, std::size_t> OverwrittenOutputs(const Graph& graph, const Tensors& tensors, bool on_chip) {
  std::map<std::size_t, int> readers;
  for (const Node& node : graph.nodes) {
    for (const Entry& input : node.inputs) ++readers[input.node];
  }
  std::set<std::size_t> outputs;
  for (const Entry& output : graph.outputs) outputs.insert(output.node);
  std::vector<Buffer> pool;
  std::map<std::size_t, std::size_t> buffer_of;
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    const Desc* desc = tensors.Find(id);
    if (desc == nullptr || node.kind == Node::Kind::kConst) continue;
    const bool in_pool = !on_chip || node.kind == Node::Kind::kInput || outputs.count(id) > 0;
    if (in_pool) buffer_of[id] = Take(desc->nbytes(), id, &pool);
    for (const Entry& input : node.inputs) {
      if (--readers[input.node] == 0 && buffer_of.count(input.node) > 0) pool[buffer_of[input.node]].used = false;
    }
  }
  std::map<std::size_t, std::size_t> overwritten;
  for (const std::size_t id : outputs) {
    const std::size_t last = pool[buffer_of.at(id)].node;
    if (last != id) overwritten[id] = last;
  }
  return overwritten;
}

}  // namespace adreno_bench::clml
