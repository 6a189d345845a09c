#include "engine.h"

#include <tvm/ffi/extra/json.h>
#include <tvm/runtime/logging.h>

#include <algorithm>
#include <string_view>

#include "counts.h"
#include "memory_plan.h"
#include "tuning.h"
#include "workspace.h"

namespace adreno_bench::clml {
namespace {

using tvm::runtime::Tensor;

void CheckConstants(const Graph& graph, const ffi::Array<Tensor>& constants) {
  TVM_FFI_ICHECK_EQ(constants.size(), graph.constants.size())
      << "The number of input constants must match the number of required.";
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const Node& node = graph.nodes[graph.constants[i]];
    const auto& shape = node.shapes[0];
    const Tensor& tensor = constants[i];
    if (!std::equal(shape.begin(), shape.end(), tensor->shape, tensor->shape + tensor->ndim) ||
        !(node.dtypes[0] == tensor->dtype)) {
      OutOfBounds("the constant '" + node.name + "' is not of the shape and type that the graph states");
    }
  }
}

/// Identifies an operator together with the driver that it was tuned for. FNV-1a.
std::uint64_t Fingerprint(const Graph& graph, std::size_t id, const std::string& version) {
  const Node& node = graph.nodes[id];
  std::string text = version + "\n" + node.name + "\n" + std::string(ffi::json::Stringify(node.attrs));
  for (const Entry& input : node.inputs) text += "\n" + std::string(ffi::json::Stringify(graph.nodes[input.node].attrs));
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

TunedOperators LoadTuning(const Workspace& workspace, const std::string& symbol) {
  if (workspace.tuning_run || !workspace.tuning_file) return {};
  const auto blob = FindTuning(*workspace.tuning_file, symbol);
  Count(symbol, blob ? &Counts::hits : &Counts::misses);
  if (!blob) {
    LOG(WARNING) << "Tuning cache not cound for symbol :" << symbol << " in file " << *workspace.tuning_file;
    return {};
  }
  LOG(INFO) << "Loading tuning cache for symbol:" << symbol << " size:" << blob->size();
  return DecodeTuning(*blob);
}

/// `CLML_CALL` knows four versions; the first call it makes creates a tuning cache, used or not.
void CheckVersion(const std::string& version) {
  constexpr std::string_view kKnown[] = {"1", "2", "3", "4"};
  if (std::count(std::begin(kKnown), std::end(kKnown), version.substr(0, version.find('.'))) == 0) {
    TVM_FFI_THROW(InternalError) << "CLML Error:clCreateMLTuningCacheQCOM - Unsupported target version \n";
  }
}

}  // namespace

Engine::Engine(const Graph& graph, const std::string& symbol, const ffi::Array<Tensor>& constants)
    : graph_(graph), tensors_(graph) {
  CheckConstants(graph, constants);
  const Workspace& workspace = Workspace::Global();
  CheckVersion(workspace.version);
  const TunedOperators loaded = LoadTuning(workspace, symbol);
  TunedOperators tunable;
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    if (graph.nodes[id].kind != Node::Kind::kKernel) continue;
    steps_.push_back(MakeStep(graph, id, &tensors_));
    if (!steps_.back().tunable) continue;
    const std::uint64_t fingerprint = Fingerprint(graph, id, workspace.version);
    tunable.insert(fingerprint);
    Count(symbol, &Counts::tunable);
    if (loaded.count(fingerprint) > 0) Count(symbol, &Counts::tuned);
  }
  CheckEnds();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (const std::size_t id : steps_[i].reads) last_reader_[id] = i;
  }
  for (const Entry& output : graph.outputs) last_reader_[output.node] = steps_.size();
  overwritten_ = OverwrittenOutputs(graph, tensors_, workspace.recordable_queue);
  for (const auto& [output, later] : overwritten_) {
    last_reader_[later] = steps_.size();
    LOG(WARNING) << "CLML model: in " << symbol << ", '" << graph.nodes[later].name << "' (node " << later
                 << ") is written over the output of '" << graph.nodes[output].name << "' (node " << output << ")";
  }
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const std::size_t id = graph.constants[i];
    RequireBytes(*constants[i].operator->(), *tensors_.Find(id), graph.nodes[id].name);
    constants_.emplace(id, ReadTensor(*constants[i].operator->(), *tensors_.Find(id)));
  }
  if (workspace.tuning_run) {
    AppendTuning(*workspace.tuning_file, symbol, EncodeTuning(tunable));
    Count(symbol, &Counts::saved);
  }
}

/// TVM's runtime has no tensor for what no operator names, and does not ask.
void Engine::CheckEnds() const {
  for (const auto& ids : {graph_.inputs, graph_.constants}) {
    for (const std::size_t id : ids) {
      if (tensors_.Find(id) == nullptr) OutOfBounds("nothing reads '" + graph_.nodes[id].name + "'");
    }
  }
  for (const Entry& output : graph_.outputs) {
    const Node& node = graph_.nodes[output.node];
    if (node.kind != Node::Kind::kKernel) OutOfBounds("nothing computes the output '" + node.name + "'");
  }
}

void Engine::Run(ffi::PackedArgs args) const {
  const Bindings bound = Bind(args);
  std::map<std::size_t, Values> values;
  for (const auto& [node, tensor] : bound.inputs) values.emplace(node, ReadTensor(*tensor, *tensors_.Find(node)));
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Compute(steps_[i], &values);
    for (const std::size_t id : steps_[i].reads) {
      if (last_reader_.at(id) == i) values.erase(id);
    }
  }
  for (const auto& [node, tensor] : bound.outputs) {
    WriteTensor(OutputOf(node, values), *tensors_.Find(node), *tensor);
  }
}

/// What the caller finds in an output's memory.
Values Engine::OutputOf(std::size_t node, const std::map<std::size_t, Values>& values) const {
  Values found = values.at(node);
  const auto over = overwritten_.find(node);
  if (over != overwritten_.end()) {
    const Values& later = values.at(over->second);
    std::copy_n(later.begin(), std::min(later.size(), found.size()), found.begin());
  }
  return found;
}

/// An input of several tensors takes as many arguments and is read from the first. TVM's runtime gives every output
/// that is not on an OpenCL device the values of the first output.
Engine::Bindings Engine::Bind(ffi::PackedArgs args) const {
  std::size_t wanted = graph_.outputs.size();
  for (const std::size_t id : graph_.inputs) wanted += graph_.nodes[id].shapes.size();
  TVM_FFI_ICHECK_EQ(static_cast<std::size_t>(args.size()), wanted)
      << "Found mismatch in the number of provided data entryies and required.";
  Bindings bound;
  int next = 0;
  const auto argument = [&](std::size_t id) {
    const DLTensor* tensor = args[next].cast<DLTensor*>();
    RequireBytes(*tensor, *tensors_.Find(id), graph_.nodes[id].name);
    return tensor;
  };
  for (const std::size_t id : graph_.inputs) {
    bound.inputs.push_back({id, argument(id)});
    next += static_cast<int>(graph_.nodes[id].shapes.size());
  }
  for (const Entry& output : graph_.outputs) {
    const bool on_gpu = args[next].cast<DLTensor*>()->device.device_type == kDLOpenCL;
    const std::size_t id = on_gpu ? output.node : graph_.outputs.front().node;
    bound.outputs.push_back({id, argument(id)});
    ++next;
  }
  return bound;
}

void Engine::Compute(const Step& step, std::map<std::size_t, Values>* values) const {
  std::vector<const float*> read;
  for (const std::size_t id : step.reads) {
    const auto constant = constants_.find(id);
    read.push_back((constant != constants_.end() ? constant->second : values->at(id)).data());
  }
  const Desc& desc = *tensors_.Find(step.writes);
  Values made(static_cast<std::size_t>(desc.dims.count()));
  step.compute(read, made.data());
  if (desc.type == Type::kHalf) RoundToHalf(&made);
  values->emplace(step.writes, std::move(made));
}

}  // namespace adreno_bench::clml
