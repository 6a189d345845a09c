// Tensors as TVM's runtime declares them to OpenCL ML: four dimensions, float or half.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <string>
#include <vector>

#include "graph.h"

namespace adreno_bench::clml {

/// Batch, channels, height, width. A shape of fewer dimensions fills them from the left, the rest are 1.
struct Dims {
  std::int64_t n = 1, c = 1, h = 1, w = 1;

  std::int64_t plane() const { return h * w; }
  std::int64_t count() const { return n * c * h * w; }
  bool operator==(const Dims& other) const {
    return n == other.n && c == other.c && h == other.h && w == other.w;
  }
};

enum class Type { kFloat, kHalf };

struct Desc {
  Dims dims;
  Type type = Type::kFloat;

  std::size_t nbytes() const { return static_cast<std::size_t>(dims.count()) * (type == Type::kHalf ? 2 : 4); }
};

/// Elements in NCHW order. Halves are kept as floats, which hold all their values.
using Values = std::vector<float>;

/// Throws what the driver's call would have made TVM's runtime throw.
[[noreturn]] void Refuse(const char* call, const std::string& why);

/// Throws where TVM's runtime would go on with memory that is not its own.
[[noreturn]] void OutOfBounds(const std::string& what);

/// The type of a node's tensors. Throws if CLML has none.
Type TypeOf(const Node& node);

/// The dimensions of a node's only tensor. Throws unless each is positive and there are one to four of them.
Dims DimsOf(const Node& node);

/// Throws if a tensor holds less than this description, whatever its own shape and type.
void RequireBytes(const DLTensor& tensor, const Desc& desc, const std::string& name);

/// Copy from and to the first bytes of a tensor on any device.
Values ReadTensor(const DLTensor& from, const Desc& desc);
void WriteTensor(const Values& values, const Desc& desc, const DLTensor& to);

/// What is left of values that were stored as halves.
void RoundToHalf(Values* values);

}  // namespace adreno_bench::clml
