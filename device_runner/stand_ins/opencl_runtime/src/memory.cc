#include "memory.h"

#include <tvm/ffi/error.h>
#include <tvm/runtime/logging.h>

#include <algorithm>

#include "device.h"

namespace adreno_bench {
namespace {

constexpr std::size_t kPageBytes = 4096;

/// The axis that separates rows from columns.
std::size_t Separator(const std::string& scope, std::size_t ndim) {
  if (scope == "global.texture") return ndim - 2;
  if (scope == "global.texture-weight") return 1;
  if (scope == "global.texture-nhwc") return 2;
  TVM_FFI_THROW(InternalError) << "Encountered unknown texture lowering convention: " << scope;
  TVM_FFI_UNREACHABLE();
}

cl_channel_type ChannelOf(DLDataType dtype) {
  dtype.lanes = 1;
  switch (dtype.code << 8 | dtype.bits) {
    case kDLFloat << 8 | 32:
      return CL_FLOAT;
    case kDLFloat << 8 | 16:
      return CL_HALF_FLOAT;
    case kDLInt << 8 | 8:
      return CL_SIGNED_INT8;
    case kDLInt << 8 | 16:
      return CL_SIGNED_INT16;
    case kDLInt << 8 | 32:
      return CL_SIGNED_INT32;
    case kDLUInt << 8 | 8:
      return CL_UNSIGNED_INT8;
    case kDLUInt << 8 | 16:
      return CL_UNSIGNED_INT16;
    case kDLUInt << 8 | 32:
      return CL_UNSIGNED_INT32;
    default:
      TVM_FFI_THROW(InternalError) << "data type is not supported in OpenCL runtime yet: "
                                   << tvm::ffi::DLDataTypeToString(dtype);
      TVM_FFI_UNREACHABLE();
  }
}

MemObject CreateBuffer(const Device& device, std::size_t nbytes) {
  cl_int code = CL_SUCCESS;
  // OpenCL has no empty buffers, TVM has empty tensors.
  MemObject object(
      clCreateBuffer(device.context(), CL_MEM_READ_WRITE, std::max<std::size_t>(nbytes, 1), nullptr, &code));
  Check(code);
  return object;
}

std::size_t RowBytes(const Device& device, const ImageShape& image, DLDataType dtype) {
  const std::size_t row = image.width * 4 * ((dtype.bits + 7) / 8), alignment = device.row_alignment();
  return (row + alignment - 1) / alignment * alignment;
}

MemObject CreateImage(const Device& device, const ImageShape& image, DLDataType dtype, const Memory* buffer = nullptr) {
  const cl_image_format format{CL_RGBA, ChannelOf(dtype)};
  cl_image_desc desc{};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY;
  desc.image_width = image.width;
  desc.image_height = image.height;
  desc.image_array_size = image.layers;
  if (buffer != nullptr) {
    desc.image_row_pitch = RowBytes(device, image, dtype);
    desc.buffer = buffer->object.get();
  }
  cl_int code = CL_SUCCESS;
  MemObject object(clCreateImage(device.context(), CL_MEM_READ_WRITE, &format, &desc, nullptr, &code));
  Check(code);
  return object;
}

}  // namespace

ImageShape Flattened(int ndim, const std::int64_t* shape, const std::string& scope) {
  const auto rank = static_cast<std::size_t>(ndim), axis = Separator(scope, rank);
  TVM_FFI_ICHECK(axis < rank)
      << "Number of axes to flatten into rows must be less than shape rank for 2d flattening";
  ImageShape image{1, 1, 1};
  for (std::size_t i = 0; i + 1 < rank; ++i) {  // without an axis of rows, axis - 1 is larger than any i
    std::size_t& side = i < axis - 1 ? image.layers : i < axis ? image.height : image.width;
    side *= static_cast<std::size_t>(shape[i]);
  }
  return image;
}

Memory::Memory(Device& device, std::size_t nbytes)
    : device(device), nbytes(nbytes), object(CreateBuffer(device, nbytes)) {}

Memory::Memory(Device& device, const ImageShape& image, DLDataType dtype, const std::string& scope)
    : device(device), nbytes(0), scope(scope), object(CreateImage(device, image, dtype)) {}

Memory::Memory(const ImageShape& image, DLDataType dtype, const std::string& scope, Memory& buffer, bool owned)
    : device(buffer.device),
      nbytes(0),
      scope(scope),
      under(owned ? &buffer : nullptr),
      object(CreateImage(buffer.device, image, dtype, &buffer)) {}

std::size_t BytesOf(const Device& device, const ImageShape& image, DLDataType dtype) {
  return RowBytes(device, image, dtype) * image.height * image.layers;
}

Memory* NewImage(Device& device, const ImageShape& image, DLDataType dtype, const std::string& scope) {
  if (!device.images_over_buffers()) return new Memory(device, image, dtype, scope);
  Memory* buffer = device.pool().Take(BytesOf(device, image, dtype));
  try {
    return new Memory(image, dtype, scope, *buffer, true);
  } catch (...) {
    device.pool().Give(buffer);
    throw;
  }
}

void DeleteImage(Memory* image) {
  Memory* const under = image->under;
  delete image;
  if (under != nullptr) under->device.pool().Give(under);
}

Memory* Pool::New(std::size_t nbytes) {
  try {
    return new Memory(device_, nbytes);
  } catch (const tvm::ffi::Error& error) {
    LOG(WARNING) << "PooledAllocator got InternalError during allocation: " << error.what();
    LOG(WARNING) << "Trying to release all unused memory and reallocate...";
    Clear();
    return new Memory(device_, nbytes);
  }
}

Memory* Pool::Take(std::size_t nbytes) {
  nbytes = (nbytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    std::vector<Memory*>& kept = kept_[nbytes];
    if (!kept.empty()) {
      Memory* buffer = kept.back();
      kept.pop_back();
      return buffer;
    }
  }
  Memory* buffer = New(nbytes);
  std::lock_guard<std::mutex> guard(mutex_);
  nbytes_ += nbytes;
  return buffer;
}

void Pool::Give(Memory* buffer) {
  std::lock_guard<std::mutex> guard(mutex_);
  kept_[buffer->nbytes].push_back(buffer);
}

void Pool::Release(Memory* buffer) {
  std::lock_guard<std::mutex> guard(mutex_);
  nbytes_ -= buffer->nbytes;
  delete buffer;
}

void Pool::Clear() {
  std::lock_guard<std::mutex> guard(mutex_);
  for (auto& [nbytes, kept] : kept_) {
    nbytes_ -= nbytes * kept.size();
    for (Memory* buffer : kept) delete buffer;
  }
  kept_.clear();
}

std::size_t Pool::nbytes() {
  std::lock_guard<std::mutex> guard(mutex_);
  return nbytes_;
}

}  // namespace adreno_bench
