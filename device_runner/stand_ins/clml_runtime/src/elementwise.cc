// Operators that look at one element, or one line of elements, at a time.
#include <algorithm>
#include <cmath>

#include "ops.h"

namespace adreno_bench::clml {
namespace {

using Binary = float (*)(float, float);

/// The order of the names is TVM's; a graph's operands are not reordered, however they were meant.
Binary BinaryOf(const std::string& name) {
  if (EndsWith(name, "subtract")) return [](float a, float b) { return a - b; };
  if (EndsWith(name, "multiply")) return [](float a, float b) { return a * b; };
  if (EndsWith(name, "divide")) return [](float a, float b) { return a / b; };
  if (EndsWith(name, "minimum")) return [](float a, float b) { return b < a ? b : a; };
  if (EndsWith(name, "maximum")) return [](float a, float b) { return a < b ? b : a; };
  return [](float a, float b) { return a + b; };
}

void RequireSame(const Dims& in, const Dims& out, const char* call) {
  if (!(in == out)) Refuse(call, "tensors of unequal shapes");
}

/// Softmax along the middle of [outer][length][inner].
void Softmax(const float* in, std::int64_t outer, std::int64_t length, std::int64_t inner, float* out) {
  for (std::int64_t line = 0; line < outer * inner; ++line) {
    const std::int64_t first = line / inner * length * inner + line % inner;
    float top = in[first];
    for (std::int64_t i = 1; i < length; ++i) top = std::max(top, in[first + i * inner]);
    float sum = 0;
    for (std::int64_t i = 0; i < length; ++i) sum += out[first + i * inner] = std::exp(in[first + i * inner] - top);
    for (std::int64_t i = 0; i < length; ++i) out[first + i * inner] /= sum;
  }
}

}  // namespace

Step MakeActivation(const Graph& graph, std::size_t id, Tensors* tensors, float ceiling) {
  const Node& node = graph.nodes[id];
  const Type type = TypeOf(node);
  const Dims in = tensors->Input(node, 0, type).dims;
  RequireSame(in, tensors->Output(id, type).dims, "clCreateMLOpActivationForwardQCOM");
  return {{node.inputs[0].node}, id, [count = in.count(), ceiling](const std::vector<const float*>& read, float* out) {
            for (std::int64_t i = 0; i < count; ++i) out[i] = Clamp(read[0][i], 0, ceiling);
          }};
}

Step MakeBatchNorm(const Graph& graph, std::size_t id, Tensors* tensors) {
  constexpr char kCall[] = "clCreateMLOpBatchNormForwardQCOM";
  const Node& node = graph.nodes[id];
  const Type type = TypeOf(node);
  const Dims in = tensors->Input(node, 0, type).dims;
  const auto axis = node.Get<std::int64_t>("axis");
  const auto epsilon = static_cast<float>(node.Get<double>("epsilon"));
  DeclareNormalization(node, 1, axis, in, type, kCall, tensors);
  RequireSame(in, tensors->Output(id, type).dims, kCall);
  Step step;
  step.writes = id;
  for (std::size_t i = 0; i < 5; ++i) step.reads.push_back(node.inputs[i].node);
  step.compute = [in, epsilon](const std::vector<const float*>& read, float* out) {
    const Affine affine = NormalizationOf({read.begin() + 1, read.end()}, in.c, epsilon);
    for (std::int64_t i = 0; i < in.count(); ++i) {
      const auto channel = static_cast<std::size_t>(i / in.plane() % in.c);
      out[i] = read[0][i] * affine.scale[channel] + affine.shift[channel];
    }
  };
  return step;
}

Step MakeReshape(const Graph& graph, std::size_t id, Tensors* tensors) {
  const Node& node = graph.nodes[id];
  const Type type = TypeOf(node);
  const std::int64_t count = tensors->Input(node, 0, type).dims.count();
  if (count != tensors->Output(id, type).dims.count()) {
    Refuse("clCreateMLOpReshapeQCOM", "tensors of unequal sizes");
  }
  return {{node.inputs[0].node}, id, [count](const std::vector<const float*>& read, float* out) {
            std::copy_n(read[0], count, out);
          }};
}

/// TVM's runtime tells OpenCL ML the axis only by the layout of the tensors: the last of four, or else the channels.
Step MakeSoftmax(const Graph& graph, std::size_t id, Tensors* tensors) {
  const Node& node = graph.nodes[id];
  const Type type = TypeOf(node);
  const auto axis = node.Get<std::int64_t>("axis");
  const Dims in = tensors->Input(node, 0, type).dims;
  RequireSame(in, tensors->Output(id, type).dims, "clCreateMLOpSoftmaxQCOM");
  const bool four = graph.nodes[node.inputs[0].node].shapes[0].size() == 4;
  const bool last = four && (axis == 3 || axis == -1);
  return {{node.inputs[0].node}, id, [in, last](const std::vector<const float*>& read, float* out) {
            if (last) {
              Softmax(read[0], in.n * in.c * in.h, in.w, 1, out);
            } else {
              Softmax(read[0], in.n, in.c, in.plane(), out);
            }
          }};
}

Step MakeBinary(const Graph& graph, std::size_t id, Tensors* tensors) {
  constexpr char kCall[] = "clCreateMLOpBinaryQCOM";
  const Node& node = graph.nodes[id];
  const Type type = TypeOf(node);
  const Dims left = tensors->Input(node, 0, type).dims;
  RequireSame(left, tensors->Input(node, 1, type).dims, kCall);
  RequireSame(left, tensors->Output(id, type).dims, kCall);
  return {{node.inputs[0].node, node.inputs[1].node}, id,
          [count = left.count(), binary = BinaryOf(node.name)](const std::vector<const float*>& read, float* out) {
            for (std::int64_t i = 0; i < count; ++i) out[i] = binary(read[0][i], read[1][i]);
          }};
}

}  // namespace adreno_bench::clml
