// Convolutions, plain and transposed, with what is fused into them: bias, batch normalisation, activation.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "matmul.h"
#include "ops.h"

namespace adreno_bench::clml {
namespace {

constexpr char kConvolution[] = "clCreateMLOpConvolutionForwardQCOM";

/// One side of a convolution, vertical or horizontal.
struct Side {
  std::int64_t padding, stride, dilation;

  /// Where in the input the output's `position` meets the kernel's `tap`; negative for nowhere.
  std::int64_t Source(std::int64_t position, std::int64_t tap, bool transposed) const {
    if (!transposed) return position * stride - padding + tap * dilation;
    const std::int64_t shifted = position + padding - tap * dilation;
    return shifted % stride == 0 ? shifted / stride : -1;
  }
};

struct Convolution {
  Dims in, kernel, out;
  Side vertical, horizontal;
  bool transposed = false;
  bool has_bias = false, has_norm = false;
  float epsilon = 0;
  float floor = -std::numeric_limits<float>::infinity();
  float ceiling = std::numeric_limits<float>::infinity();

  void operator()(const std::vector<const float*>& tensors, float* result) const;

 private:
  Affine Epilogue(const std::vector<const float*>& tensors) const;
  void Gather(const float* image, std::int64_t first, float* panel) const;
};

/// What happens to a sum of products before it is stored, one line for each channel.
Affine Convolution::Epilogue(const std::vector<const float*>& tensors) const {
  const auto channels = static_cast<std::size_t>(out.c);
  Affine affine{Values(channels, 1), Values(channels, 0)};
  if (has_bias) affine.shift.assign(tensors[2], tensors[2] + channels);
  if (!has_norm) return affine;
  const std::size_t first = has_bias ? 3 : 2;
  const Affine norm = NormalizationOf({tensors.begin() + first, tensors.begin() + first + 4}, out.c, epsilon);
  for (std::size_t c = 0; c < channels; ++c) affine.shift[c] = affine.shift[c] * norm.scale[c] + norm.shift[c];
  affine.scale = norm.scale;
  return affine;
}

/// The columns of the product for kTileColumns positions of the output: what each weight of a row is multiplied with.
void Convolution::Gather(const float* image, std::int64_t first, float* panel) const {
  const std::int64_t taps = kernel.plane();
  std::array<std::int64_t, kTileColumns> source;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::size_t j = 0; j < kTileColumns; ++j) {
      const std::int64_t position = first + static_cast<std::int64_t>(j);
      const std::int64_t y = vertical.Source(position / out.w, tap / kernel.w, transposed);
      const std::int64_t x = horizontal.Source(position % out.w, tap % kernel.w, transposed);
      source[j] = y >= 0 && y < in.h && x >= 0 && x < in.w && position < out.plane() ? y * in.w + x : -1;
    }
    for (std::int64_t c = 0; c < in.c; ++c) {
      const float* plane = image + c * in.plane();
      float* row = panel + (c * taps + tap) * static_cast<std::int64_t>(kTileColumns);
      for (std::size_t j = 0; j < kTileColumns; ++j) row[j] = source[j] < 0 ? 0 : plane[source[j]];
    }
  }
}

void Convolution::operator()(const std::vector<const float*>& tensors, float* result) const {
  const auto depth = static_cast<std::size_t>(in.c * kernel.plane());
  const std::vector<float> weights = PackRows(tensors[1], static_cast<std::size_t>(out.c), depth);
  const Affine affine = Epilogue(tensors);
  std::vector<float> panel(depth * kTileColumns);
  float tile[kTileRows * kTileColumns];
  for (std::int64_t n = 0; n < out.n; ++n) {
    for (std::int64_t first = 0; first < out.plane(); first += kTileColumns) {
      Gather(tensors[0] + n * in.c * in.plane(), first, panel.data());
      const std::int64_t columns = std::min<std::int64_t>(kTileColumns, out.plane() - first);
      for (std::int64_t c = 0; c < out.c; ++c) {
        const std::size_t row = static_cast<std::size_t>(c) % kTileRows;
        if (row == 0) MultiplyTile(&weights[static_cast<std::size_t>(c) * depth], panel.data(), depth, tile);
        float* to = result + (n * out.c + c) * out.plane() + first;
        for (std::int64_t j = 0; j < columns; ++j) {
          const float sum = tile[row * kTileColumns + static_cast<std::size_t>(j)];
          const float value = sum * affine.scale[static_cast<std::size_t>(c)] + affine.shift[static_cast<std::size_t>(c)];
          to[j] = Clamp(value, floor, ceiling);
        }
      }
    }
  }
}

void ReadActivation(const Node& node, Convolution* conv) {
  const std::string activation = node.Get<ffi::String>("activation_type");
  TVM_FFI_ICHECK(activation == "relu" || activation == "relu6") << "Unknown activation type:" << activation;
  conv->floor = 0;
  if (activation == "relu6") conv->ceiling = 6;
}

/// TVM's runtime reads `batchnorm` as strings: axis, epsilon, and two switches that it ignores.
void ReadNormalization(const Node& node, Type type, Convolution* conv, Tensors* tensors) {
  const auto texts = node.Get<ffi::Array<ffi::String>>("batchnorm");
  if (texts.size() < 2) OutOfBounds("'" + node.name + "' has a batchnorm of " + std::to_string(texts.size()));
  const int axis = std::stoi(texts[0]);
  conv->epsilon = std::stof(texts[1]);
  DeclareNormalization(node, conv->has_bias ? 3 : 2, axis, conv->out, type, kConvolution, tensors);
}

void CheckGeometry(const Convolution& conv) {
  if (conv.vertical.stride < 1 || conv.horizontal.stride < 1) Refuse(kConvolution, "a stride of 0");
  if (conv.in.n != conv.out.n || conv.in.c != conv.kernel.c || conv.out.c != conv.kernel.n) {
    Refuse(kConvolution, "batch or channels that do not fit");
  }
}

}  // namespace

Step MakeConvolution(const Graph& graph, std::size_t id, Tensors* tensors, bool transposed) {
  const Node& node = graph.nodes[id];
  const auto padding = Numbers(node, "padding", 4);
  const auto strides = Numbers(node, "strides", 2);
  const auto dilation = Numbers(node, "dilation", 2);
  const Type type = TypeOf(node);
  const auto groups = node.Get<std::int64_t>("groups");
  if (!transposed) TVM_FFI_ICHECK(groups == 1) << "CLML convolution only supports group size of 1.";
  Convolution conv;
  conv.vertical = {padding[0], strides[0], dilation[0]};
  conv.horizontal = {padding[1], strides[1], dilation[1]};
  conv.transposed = transposed;
  if (node.Has("activation_type")) ReadActivation(node, &conv);
  const std::size_t count = node.inputs.size();
  TVM_FFI_ICHECK(count >= 2 && count <= 7) << "Batchnorm fused convolution requires max 7 arguments";
  conv.has_bias = count == 3 || count == 7;
  conv.has_norm = count == 6 || count == 7;
  conv.in = tensors->Input(node, 0, type).dims;
  conv.kernel = tensors->Input(node, 1, type).dims;
  const std::int64_t biases = conv.has_bias ? tensors->Input(node, 2, type).dims.count() : 0;
  conv.out = tensors->Output(id, type).dims;
  if (conv.has_norm) ReadNormalization(node, type, &conv, tensors);
  CheckGeometry(conv);
  if (conv.has_bias && biases != conv.out.c) Refuse(kConvolution, "a bias that is not one value for each channel");
  Step step;
  step.writes = id;
  for (const Entry& input : node.inputs) step.reads.push_back(input.node);
  step.tunable = conv.has_norm || node.Has("activation_type");
  step.compute = conv;
  return step;
}

}  // namespace adreno_bench::clml
