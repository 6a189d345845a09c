// Pooling over a window that slides from the leading padding on. What lies outside the input does not count.
#include <algorithm>
#include <limits>

#include "ops.h"

namespace adreno_bench::clml {
namespace {

constexpr char kPooling[] = "clCreateMLOpPoolingForwardQCOM";

struct PoolingSide {
  std::int64_t padding, stride, window;
};

struct Pooling {
  Dims in, out;
  PoolingSide vertical, horizontal;
  bool maximum;

  void operator()(const std::vector<const float*>& tensors, float* result) const {
    for (std::int64_t plane = 0; plane < out.n * out.c; ++plane) {
      for (std::int64_t y = 0; y < out.h; ++y) {
        for (std::int64_t x = 0; x < out.w; ++x) *result++ = At(tensors[0] + plane * in.plane(), y, x);
      }
    }
  }

 private:
  /// Of a window that lies outside altogether: 0.
  float At(const float* plane, std::int64_t y, std::int64_t x) const {
    const std::int64_t top = y * vertical.stride - vertical.padding;
    const std::int64_t left = x * horizontal.stride - horizontal.padding;
    const std::int64_t begin = std::max<std::int64_t>(left, 0), end = std::min(left + horizontal.window, in.w);
    float best = -std::numeric_limits<float>::infinity(), sum = 0;
    std::int64_t count = 0;
    for (std::int64_t i = std::max<std::int64_t>(top, 0); i < std::min(top + vertical.window, in.h); ++i) {
      for (std::int64_t j = begin; j < end; ++j, ++count) {
        const float value = plane[i * in.w + j];
        sum += value;
        best = best >= value ? best : value;  // NaN wins
        if (best != best) return best;
      }
    }
    return count == 0 ? 0 : maximum ? best : sum / static_cast<float>(count);
  }
};

Step MakeStepOf(const Node& node, std::size_t id, const Pooling& pooling) {
  if (pooling.in.n != pooling.out.n || pooling.in.c != pooling.out.c) {
    Refuse(kPooling, "batch or channels that do not fit");
  }
  if (pooling.vertical.window < 1 || pooling.horizontal.window < 1) Refuse(kPooling, "an empty window");
  Step step;
  step.reads = {node.inputs[0].node};
  step.writes = id;
  step.compute = pooling;
  return step;
}

}  // namespace

/// `ceil_mode`, `count_include_pad`, `dilation` and `layout` are never read.
Step MakePooling(const Graph& graph, std::size_t id, Tensors* tensors) {
  const Node& node = graph.nodes[id];
  const Type type = TypeOf(node);
  const Dims in = tensors->Input(node, 0, type).dims;
  const Dims out = tensors->Output(id, type).dims;
  const auto window = Numbers(node, "pool_size", 2);
  const auto strides = Numbers(node, "strides", 2);
  const auto padding = Numbers(node, "padding", 4);
  if (strides[0] < 1 || strides[1] < 1) Refuse(kPooling, "a stride of 0");
  return MakeStepOf(node, id,
                    {in, out, {padding[0], strides[0], window[0]}, {padding[1], strides[1], window[1]},
                     EndsWith(node.name, "nn.max_pool2d")});
}

/// TVM's runtime gives the window as width, height where OpenCL ML expects height, width.
Step MakeGlobalPooling(const Graph& graph, std::size_t id, Tensors* tensors) {
  const Node& node = graph.nodes[id];
  const Type type = TypeOf(node);
  const Dims in = tensors->Input(node, 0, type).dims;
  const Dims out = tensors->Output(id, type).dims;
  return MakeStepOf(node, id,
                    {in, out, {0, 1, in.w}, {0, 1, in.h}, EndsWith(node.name, "nn.global_max_pool2d")});
}

}  // namespace adreno_bench::clml
