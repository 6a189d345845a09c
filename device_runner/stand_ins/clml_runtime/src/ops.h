// Operators: what TVM's runtime tells OpenCL ML of a kernel node, and what that computes.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "graph.h"
#include "tensor.h"

namespace adreno_bench::clml {

/// One operator, ready to run.
struct Step {
  std::vector<std::size_t> reads;
  std::size_t writes = 0;
  /// From the tensors read to the one written, which holds zeros.
  std::function<void(const std::vector<const float*>&, float*)> compute;
  /// Whether the driver is given a tuning cache when the operator is created.
  bool tunable = true;
};

/// The tensors of a graph, one for each node however many outputs it has. The first operator that names a node decides
/// its dimensions and type.
class Tensors {
 public:
  explicit Tensors(const Graph& graph) : graph_(graph) {}

  /// The tensor of the node that is input `index` of a kernel.
  const Desc& Input(const Node& kernel, std::size_t index, Type type);
  /// The same for one that OpenCL ML shall see as a vector along the channels. Its length is the node's first extent.
  const Desc& Channels(const Node& kernel, std::size_t index, Type type, std::int64_t axis);
  const Desc& Output(std::size_t node, Type type);
  /// A tensor that an operator has named, or nothing.
  const Desc* Find(std::size_t node) const;

 private:
  const Desc& Declare(std::size_t node, const Desc& desc);

  const Graph& graph_;
  std::map<std::size_t, Desc> declared_;
  std::int64_t activations_ = 0;
};

Step MakeConvolution(const Graph& graph, std::size_t id, Tensors* tensors, bool transposed);
Step MakeBatchNorm(const Graph& graph, std::size_t id, Tensors* tensors);
Step MakePooling(const Graph& graph, std::size_t id, Tensors* tensors);
Step MakeGlobalPooling(const Graph& graph, std::size_t id, Tensors* tensors);
Step MakeActivation(const Graph& graph, std::size_t id, Tensors* tensors, float ceiling);
Step MakeReshape(const Graph& graph, std::size_t id, Tensors* tensors);
Step MakeSoftmax(const Graph& graph, std::size_t id, Tensors* tensors);
Step MakeBinary(const Graph& graph, std::size_t id, Tensors* tensors);

/// The operator of a kernel node, chosen by the end of its name in the order of TVM's runtime.
Step MakeStep(const Graph& graph, std::size_t id, Tensors* tensors);

bool EndsWith(const std::string& text, const std::string& ending);

/// An attribute that holds at least `size` numbers that a driver could use.
std::vector<std::int64_t> Numbers(const Node& node, const char* key, std::size_t size);

/// y = scale * x + shift for each channel.
struct Affine {
  Values scale, shift;
};

/// Inference-time batch normalisation: `parameters` are gamma, beta, mean, variance.
Affine NormalizationOf(const std::vector<const float*>& parameters, std::int64_t channels, float epsilon);

/// Where inputs `first` and on are the vectors of a batch normalisation along the channels.
void DeclareNormalization(const Node& kernel, std::size_t first, std::int64_t axis, const Dims& normalized, Type type,
                          const char* call, Tensors* tensors);

/// NaN stays NaN.
inline float Clamp(float value, float floor, float ceiling) {
  return value < floor ? floor : value > ceiling ? ceiling : value;
}

}  // namespace adreno_bench::clml
