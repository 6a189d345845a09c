#include "ops.h"

#include <cmath>
#include <limits>

namespace adreno_bench::clml {
namespace {

/// Far beyond any kernel, stride or padding of a network, and safe to multiply with a tensor's extents.
constexpr std::int64_t kMaxNumber = 1 << 16;
/// Elements of all activations of a graph: those of networks for phones are far fewer.
constexpr std::int64_t kMaxActivations = 1 << 27;

const Node& Reads(const Graph& graph, const Node& kernel, std::size_t index) {
  if (index >= kernel.inputs.size()) {
    OutOfBounds("'" + kernel.name + "' has " + std::to_string(kernel.inputs.size()) +
                " inputs and is read for number " + std::to_string(index + 1));
  }
  return graph.nodes[kernel.inputs[index].node];
}

}  // namespace

const Desc& Tensors::Input(const Node& kernel, std::size_t index, Type type) {
  const Node& node = Reads(graph_, kernel, index);
  const Desc* known = Find(kernel.inputs[index].node);
  return known != nullptr ? *known : Declare(kernel.inputs[index].node, {DimsOf(node), type});
}

const Desc& Tensors::Channels(const Node& kernel, std::size_t index, Type type, std::int64_t axis) {
  const Node& node = Reads(graph_, kernel, index);
  if (axis < 0 || axis > 3) OutOfBounds("'" + kernel.name + "' has the axis " + std::to_string(axis));
  const Desc* known = Find(kernel.inputs[index].node);
  if (known != nullptr) return *known;
  std::int64_t sides[4] = {1, 1, 1, 1};
  sides[axis] = DimsOf(node).n;
  return Declare(kernel.inputs[index].node, {{sides[0], sides[1], sides[2], sides[3]}, type});
}

const Desc& Tensors::Output(std::size_t node, Type type) { return Declare(node, {DimsOf(graph_.nodes[node]), type}); }

const Desc& Tensors::Declare(std::size_t node, const Desc& desc) {
  if (graph_.nodes[node].kind != Node::Kind::kConst) activations_ += desc.dims.count();
  if (activations_ > kMaxActivations) {
    TVM_FFI_THROW(InternalError) << "Check failed: (result == CL_SUCCESS) is false: clCreateBuffer:-61 (emulated: the "
                                    "tensors of the graph are too large)";
  }
  return declared_.emplace(node, desc).first->second;
}

const Desc* Tensors::Find(std::size_t node) const {
  const auto found = declared_.find(node);
  return found == declared_.end() ? nullptr : &found->second;
}

bool EndsWith(const std::string& text, const std::string& ending) {
  return text.size() >= ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

std::vector<std::int64_t> Numbers(const Node& node, const char* key, std::size_t size) {
  const auto array = node.Get<ffi::Array<std::int64_t>>(key);
  if (array.size() < size) OutOfBounds("'" + node.name + "' has a " + key + " of " + std::to_string(array.size()));
  std::vector<std::int64_t> numbers(array.begin(), array.end());
  for (const std::int64_t number : numbers) {
    if (number < 0 || number > kMaxNumber) {
      TVM_FFI_THROW(InternalError) << "CLML model: '" << node.name << "' has a " << key << " of " << number;
    }
  }
  return numbers;
}

Affine NormalizationOf(const std::vector<const float*>& parameters, std::int64_t channels, float epsilon) {
  Affine affine;
  for (std::int64_t c = 0; c < channels; ++c) {
    const float scale = parameters[0][c] / std::sqrt(parameters[3][c] + epsilon);
    affine.scale.push_back(scale);
    affine.shift.push_back(parameters[1][c] - parameters[2][c] * scale);
  }
  return affine;
}

void DeclareNormalization(const Node& kernel, std::size_t first, std::int64_t axis, const Dims& normalized, Type type,
                          const char* call, Tensors* tensors) {
  for (std::size_t i = first; i < first + 4; ++i) {
    if (!(tensors->Channels(kernel, i, type, axis).dims == Dims{1, normalized.c, 1, 1})) {
      Refuse(call, "batch normalisation that is not one value for each channel");
    }
  }
}

Step MakeStep(const Graph& graph, std::size_t id, Tensors* tensors) {
  const std::string& name = graph.nodes[id].name;
  const auto is = [&](const char* ending) { return EndsWith(name, ending); };
  if (is("nn.conv2d") || is("nn.pad_conv2d")) return MakeConvolution(graph, id, tensors, false);
  if (is("nn.conv2d_transpose")) return MakeConvolution(graph, id, tensors, true);
  if (is("nn.relu6")) return MakeActivation(graph, id, tensors, 6);
  if (is("nn.relu")) return MakeActivation(graph, id, tensors, std::numeric_limits<float>::infinity());
  if (is("nn.batch_norm")) return MakeBatchNorm(graph, id, tensors);
  if (is("nn.max_pool2d") || is("nn.avg_pool2d")) return MakePooling(graph, id, tensors);
  if (is("nn.global_avg_pool2d") || is("nn.global_max_pool2d")) return MakeGlobalPooling(graph, id, tensors);
  if (is("reshape") || name == "nn.batch_flatten") return MakeReshape(graph, id, tensors);
  if (is("nn.softmax")) return MakeSoftmax(graph, id, tensors);
  for (const char* binary : {"add", "subtract", "multiply", "minimum", "maximum", "divide"}) {
    if (name == binary || EndsWith(name, std::string("relax.") + binary)) return MakeBinary(graph, id, tensors);
  }
  // TVM's runtime builds these too, but no pattern of TVM's Relax table leads to them.
  for (const char* other : {"nn.depthwise_conv2d", "concatenate", "nn.dense", "nn.pad", "clip", "nn.depth_to_space",
                            "nn.upsampling", "nn.batch_matmul"}) {
    if (name == other) TVM_FFI_THROW(InternalError) << "CLML model: '" << name << "' is not modelled";
  }
  TVM_FFI_THROW(InternalError) << "Unsupported op: " << name;
  TVM_FFI_UNREACHABLE();
}

}  // namespace adreno_bench::clml
