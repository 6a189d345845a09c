#include "memory.h"

#include <tvm/ffi/error.h>

#include <algorithm>

#include "device.h"

namespace adreno_bench {
namespace {

constexpr std::size_t kPageBytes = 4096;

/// The axis that separates rows from columns.
int Separator(const std::string& scope, int ndim) {
  if (scope == "global.texture") return ndim - 2;
  if (scope == "global.texture-weight") return 1;
  if (scope == "global.texture-nhwc") return 2;
  TVM_FFI_THROW(ValueError) << "OpenCL: unknown storage scope '" << scope << "'";
  TVM_FFI_UNREACHABLE();
}

std::size_t Bytes(int ndim, const std::int64_t* shape, DLDataType dtype) {
  std::size_t elements = 1;
  for (int i = 0; i < ndim; ++i) elements *= static_cast<std::size_t>(shape[i]);
  return (elements * dtype.bits * dtype.lanes + 7) / 8;
}

std::string Describe(const ImageShape& image) {
  return std::to_string(image.width) + " x " + std::to_string(image.height) + " x " + std::to_string(image.layers) +
         " image of 4 x " + std::to_string(image.channel_bits) + " bit";
}

MemObject CreateBuffer(const Device& device, std::size_t nbytes) {
  cl_int code = CL_SUCCESS;
  // OpenCL has no empty buffers, TVM has empty tensors.
  MemObject object(
      clCreateBuffer(device.context(), CL_MEM_READ_WRITE, std::max<std::size_t>(nbytes, 1), nullptr, &code));
  Check(code, "clCreateBuffer of " + std::to_string(nbytes) + " bytes");
  return object;
}

MemObject CreateImage(const Device& device, const ImageShape& image) {
  const DeviceFacts& facts = device.facts();
  if (image.width > facts.image2d_max_width || image.height > facts.image2d_max_height ||
      image.layers > facts.image_max_array_layers) {
    TVM_FFI_THROW(RuntimeError) << "OpenCL: CL_INVALID_IMAGE_SIZE: a " << Describe(image) << " exceeds the limits of "
                                << facts.label() << ", " << facts.image2d_max_width << " x " << facts.image2d_max_height
                                << " x " << facts.image_max_array_layers
                                << " (target attributes texture_spatial_limit and texture_depth_limit)";
  }
  const cl_channel_type channel = image.channel_bits == 32 ? CL_FLOAT : CL_HALF_FLOAT;
  const cl_image_format format{CL_RGBA, channel};
  cl_image_desc desc{};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY;
  desc.image_width = image.width;
  desc.image_height = image.height;
  desc.image_array_size = image.layers;
  cl_int code = CL_SUCCESS;
  MemObject object(clCreateImage(device.context(), CL_MEM_READ_WRITE, &format, &desc, nullptr, &code));
  if (code != CL_SUCCESS) Check(code, "clCreateImage of a " + Describe(image));
  return object;
}

}  // namespace

bool Layout::operator<(const Layout& other) const {
  const auto key = [](const Layout& l) {
    const ImageShape i = l.image.value_or(ImageShape{0, 0, 0, 0});
    return std::make_tuple(l.nbytes, i.width, i.height, i.layers, i.channel_bits);
  };
  return key(*this) < key(other);
}

Layout LayoutOf(int ndim, const std::int64_t* shape, DLDataType dtype, const std::string& scope) {
  if (scope.empty() || scope == "global") return {Bytes(ndim, shape, dtype), std::nullopt};
  const int axis = Separator(scope, ndim);
  if (axis < 1 || axis >= ndim || shape[ndim - 1] * dtype.lanes != 4) {
    TVM_FFI_THROW(ValueError) << "OpenCL: a tensor in '" << scope << "' needs at least "
                              << (scope == "global.texture-weight" ? 2 : 3)
                              << " dimensions, the last one of 4 elements";
  }
  if (dtype.code != kDLFloat || (dtype.bits != 16 && dtype.bits != 32)) {
    TVM_FFI_THROW(ValueError) << "OpenCL: a tensor in '" << scope << "' must be float32 or float16";
  }
  ImageShape image{1, 1, 1, dtype.bits};
  for (int i = 0; i < ndim - 1; ++i) {
    std::size_t& side = i < axis - 1 ? image.layers : i < axis ? image.height : image.width;
    side *= static_cast<std::size_t>(shape[i]);
  }
  return {image.nbytes(), image};
}

Memory::Memory(Device& device, const Layout& layout)
    : device(device),
      layout(layout),
      object(layout.image ? CreateImage(device, *layout.image) : CreateBuffer(device, layout.nbytes)) {}

Memory* Pool::New(const Layout& layout) {
  try {
    return new Memory(device_, layout);
  } catch (const tvm::ffi::Error&) {
    Clear();
    return new Memory(device_, layout);
  }
}

Memory* Pool::Take(Layout layout) {
  if (!layout.image) layout.nbytes = (layout.nbytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    std::vector<Memory*>& kept = kept_[layout];
    if (!kept.empty()) {
      Memory* memory = kept.back();
      kept.pop_back();
      return memory;
    }
  }
  Memory* memory = New(layout);
  std::lock_guard<std::mutex> guard(mutex_);
  nbytes_ += layout.nbytes;
  return memory;
}

void Pool::Give(Memory* memory) {
  std::lock_guard<std::mutex> guard(mutex_);
  kept_[memory->layout].push_back(memory);
}

void Pool::Release(Memory* memory) {
  std::lock_guard<std::mutex> guard(mutex_);
  nbytes_ -= memory->layout.nbytes;
  delete memory;
}

void Pool::Clear() {
  std::lock_guard<std::mutex> guard(mutex_);
  for (auto& [layout, kept] : kept_) {
    nbytes_ -= layout.nbytes * kept.size();
    for (Memory* memory : kept) delete memory;
  }
  kept_.clear();
}

std::size_t Pool::nbytes() {
  std::lock_guard<std::mutex> guard(mutex_);
  return nbytes_;
}

}  // namespace adreno_bench
