// How TVM's runtime shares memory between the tensors of a graph, as far as it shows in the results.
#pragma once

#include <cstddef>
#include <map>

#include "graph.h"
#include "ops.h"

namespace adreno_bench::clml {

/// Outputs that a later tensor is written over, and that tensor's node. TVM's runtime gives the memory of a tensor away
/// after its last reader in the graph, and forgets that the caller reads the outputs.
///
/// With `on_chip` memory, which is taken to hold all that is allowed in it, only inputs and outputs share the rest.
std::map<std::size_t, std::size_t> OverwrittenOutputs(const Graph& graph, const Tensors& tensors, bool on_chip);

}  // namespace adreno_bench::clml
