#include "tensor.h"

#include <tvm/runtime/tensor.h>

#include <cstring>

#include "half.h"

namespace adreno_bench::clml {
namespace {

/// Activations of networks for phones are far smaller; a graph that asks for more is broken or hostile.
constexpr std::int64_t kMaxActivation = std::int64_t{1} << 26;
/// Constants are held against tensors that exist, so this only keeps products from overflowing.
constexpr std::int64_t kMaxConstant = std::int64_t{1} << 33;
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 28;

/// The first bytes of a tensor as a flat one. TVM's runtime hands the whole buffer to CLML, and so ignores the offset.
DLTensor Flat(const DLTensor& tensor, const Desc& desc, std::int64_t* count, std::int64_t* stride,
              const std::string& name) {
  std::int64_t elements = 1;
  for (int i = 0; i < tensor.ndim; ++i) elements *= tensor.shape[i];
  const auto nbytes = static_cast<std::size_t>(elements) * ((tensor.dtype.bits * tensor.dtype.lanes + 7) / 8);
  if (nbytes < desc.nbytes()) {
    OutOfBounds("'" + name + "' holds " + std::to_string(nbytes) + " bytes, and the graph wants " +
                std::to_string(desc.nbytes()));
  }
  *count = desc.dims.count();
  *stride = 1;
  const DLDataType dtype{kDLFloat, static_cast<std::uint8_t>(desc.type == Type::kHalf ? 16 : 32), 1};
  return {tensor.data, tensor.device, 1, dtype, count, stride, 0};
}

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
  const bool constant = node.kind == Node::Kind::kConst;
  std::int64_t sides[4] = {1, 1, 1, 1};
  std::int64_t count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 1 || shape[i] > kMaxExtent) {
      Refuse("clCreateMLTensorWithUsageQCOM", "a dimension of " + std::to_string(shape[i]) + " in '" + node.name + "'");
    }
    sides[i] = shape[i];
    count *= shape[i];
    if (count > (constant ? kMaxConstant : kMaxActivation)) {
      TVM_FFI_THROW(InternalError) << "Check failed: (result == CL_SUCCESS) is false: clCreateBuffer:-61 (emulated: '"
                                   << node.name << "' is too large)";
    }
  }
  return {sides[0], sides[1], sides[2], sides[3]};
}

Values ReadTensor(const DLTensor& from, const Desc& desc, const std::string& name) {
  std::int64_t count, stride;
  const DLTensor flat = Flat(from, desc, &count, &stride, name);
  Values values(static_cast<std::size_t>(count));
  if (desc.type == Type::kFloat) {
    tvm::runtime::Tensor::CopyToBytes(&flat, values.data(), desc.nbytes());
    return values;
  }
  std::vector<std::uint16_t> halves(values.size());
  tvm::runtime::Tensor::CopyToBytes(&flat, halves.data(), desc.nbytes());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = FromHalf(halves[i]);
  return values;
}

void WriteTensor(const Values& values, const Desc& desc, DLTensor* to, const std::string& name) {
  std::int64_t count, stride;
  const DLTensor flat = Flat(*to, desc, &count, &stride, name);
  if (desc.type == Type::kFloat) {
    tvm::runtime::Tensor::CopyFromBytes(&flat, const_cast<float*>(values.data()), desc.nbytes());
    return;
  }
  std::vector<std::uint16_t> halves(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) halves[i] = ToHalf(values[i]);
  tvm::runtime::Tensor::CopyFromBytes(&flat, halves.data(), desc.nbytes());
}

void RoundToHalf(Values* values) {
  for (float& value : *values) value = FromHalf(ToHalf(value));
}

}  // namespace adreno_bench::clml
