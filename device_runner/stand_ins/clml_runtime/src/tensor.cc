#include "tensor.h"

#include <tvm/runtime/tensor.h>

#include <cstring>

#include "half.h"

namespace adreno_bench::clml {
namespace {

/// Keeps products of extents from overflowing.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 33;

/// The first bytes of a tensor as a flat one. TVM's runtime hands the whole buffer to CLML, and so ignores the offset.
struct Flat {
  Flat(const DLTensor& tensor, const Desc& desc) : count(desc.dims.count()) {
    const DLDataType dtype{kDLFloat, static_cast<std::uint8_t>(desc.type == Type::kHalf ? 16 : 32), 1};
    view = {tensor.data, tensor.device, 1, dtype, &count, &stride, 0};
  }

  std::int64_t count;
  std::int64_t stride = 1;
  DLTensor view;
};

}  // namespace

void Refuse(const char* call, const std::string& why) {
  constexpr int kInvalidValue = -30;
  TVM_FFI_THROW(InternalError) << "Check failed: (e == CL_SUCCESS) is false: CLML Error:" << call
                               << " code=" << kInvalidValue << " (emulated: " << why << ")";
  TVM_FFI_UNREACHABLE();
}

void OutOfBounds(const std::string& what) {
  TVM_FFI_THROW(InternalError) << "CLML model: " << what << "; TVM's runtime would go out of bounds";
  TVM_FFI_UNREACHABLE();
}

Type TypeOf(const Node& node) {
  const DLDataType dtype = node.dtypes[0];
  if (dtype.code == kDLFloat && dtype.bits == 32) return Type::kFloat;
  if (dtype.code == kDLFloat && dtype.bits == 16) return Type::kHalf;
  TVM_FFI_THROW(InternalError) << "Datatype " << ffi::DLDataTypeToString(dtype) << " unsupported by CLML runtime";
  TVM_FFI_UNREACHABLE();
}

Dims DimsOf(const Node& node) {
  const auto& shape = node.shapes[0];
  if (shape.empty() || shape.size() > 4) {
    OutOfBounds("'" + node.name + "' has " + std::to_string(shape.size()) + " dimensions");
  }
  std::int64_t sides[4] = {1, 1, 1, 1};
  std::int64_t count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 1 || shape[i] > kMaxElements / count) {
      Refuse("clCreateMLTensorWithUsageQCOM", "a dimension of " + std::to_string(shape[i]) + " in '" + node.name + "'");
    }
    sides[i] = shape[i];
    count *= shape[i];
  }
  return {sides[0], sides[1], sides[2], sides[3]};
}

void RequireBytes(const DLTensor& tensor, const Desc& desc, const std::string& name) {
  std::int64_t elements = 1;
  for (int i = 0; i < tensor.ndim; ++i) elements *= tensor.shape[i];
  const auto nbytes = static_cast<std::size_t>(elements) * ((tensor.dtype.bits * tensor.dtype.lanes + 7) / 8);
  if (nbytes < desc.nbytes()) {
    OutOfBounds("'" + name + "' holds " + std::to_string(nbytes) + " bytes, and the graph wants " +
                std::to_string(desc.nbytes()));
  }
}

Values ReadTensor(const DLTensor& from, const Desc& desc) {
  const Flat flat(from, desc);
  Values values(static_cast<std::size_t>(flat.count));
  if (desc.type == Type::kFloat) {
    tvm::runtime::Tensor::CopyToBytes(&flat.view, values.data(), desc.nbytes());
    return values;
  }
  std::vector<std::uint16_t> halves(values.size());
  tvm::runtime::Tensor::CopyToBytes(&flat.view, halves.data(), desc.nbytes());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = FromHalf(halves[i]);
  return values;
}

void WriteTensor(const Values& values, const Desc& desc, const DLTensor& to) {
  const Flat flat(to, desc);
  if (desc.type == Type::kFloat) {
    tvm::runtime::Tensor::CopyFromBytes(&flat.view, const_cast<float*>(values.data()), desc.nbytes());
    return;
  }
  std::vector<std::uint16_t> halves(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) halves[i] = ToHalf(values[i]);
  tvm::runtime::Tensor::CopyFromBytes(&flat.view, halves.data(), desc.nbytes());
}

void RoundToHalf(Values* values) {
  for (float& value : *values) value = FromHalf(ToHalf(value));
}

}  // namespace adreno_bench::clml
