#include "copy.h"

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>

#include <vector>

#include "device.h"
#include "memory.h"

namespace adreno_bench {
namespace {

constexpr std::size_t kOrigin[3] = {0, 0, 0};

/// One end of a copy: host memory (`memory` is null), a stretch of a buffer, or a whole image.
struct End {
  char* host = nullptr;
  Memory* memory = nullptr;
  std::size_t offset = 0;

  bool is_image() const { return memory != nullptr && memory->layout.image.has_value(); }
  cl_mem object() const { return memory->object.get(); }
};

struct Region {
  std::size_t size[3];
  explicit Region(const End& end) {
    const ImageShape& image = *end.memory->layout.image;
    size[0] = image.width;
    size[1] = image.height;
    size[2] = image.layers;
  }
};

/// Throws ValueError if the tensor's elements are not within its memory.
End EndOf(const DLTensor& tensor, std::size_t nbytes) {
  End end;
  if (tensor.device.device_type == kDLCPU) {
    end.host = static_cast<char*>(tensor.data) + tensor.byte_offset;
    return end;
  }
  if (tensor.device.device_type != kDLOpenCL) {
    TVM_FFI_THROW(ValueError) << "OpenCL: no copies between OpenCL and device type " << tensor.device.device_type;
  }
  end.memory = static_cast<Memory*>(tensor.data);
  end.offset = tensor.byte_offset;
  const std::size_t capacity = end.memory->layout.nbytes;
  if (end.is_image() && (end.offset != 0 || nbytes != capacity)) {
    TVM_FFI_THROW(ValueError) << "OpenCL: an image of " << capacity << " bytes is copied whole, not " << nbytes
                              << " bytes at " << end.offset;
  }
  if (end.offset > capacity || nbytes > capacity - end.offset) {
    TVM_FFI_THROW(ValueError) << "OpenCL: " << nbytes << " bytes at " << end.offset << " end beyond a buffer of "
                              << capacity << " bytes";
  }
  return end;
}

void ToHost(const End& from, char* host, std::size_t nbytes) {
  from.memory->device.queue().Transfer([&](cl_command_queue queue, cl_event* event) {
    if (from.is_image()) {
      Check(
          clEnqueueReadImage(queue, from.object(), CL_FALSE, kOrigin, Region(from).size, 0, 0, host, 0, nullptr, event),
          "clEnqueueReadImage");
    } else {
      Check(clEnqueueReadBuffer(queue, from.object(), CL_FALSE, from.offset, nbytes, host, 0, nullptr, event),
            "clEnqueueReadBuffer");
    }
  });
}

void FromHost(const char* host, const End& to, std::size_t nbytes) {
  to.memory->device.queue().Transfer([&](cl_command_queue queue, cl_event* event) {
    if (to.is_image()) {
      Check(clEnqueueWriteImage(queue, to.object(), CL_FALSE, kOrigin, Region(to).size, 0, 0, host, 0, nullptr, event),
            "clEnqueueWriteImage");
    } else {
      Check(clEnqueueWriteBuffer(queue, to.object(), CL_FALSE, to.offset, nbytes, host, 0, nullptr, event),
            "clEnqueueWriteBuffer");
    }
  });
}

bool SameShape(const ImageShape& a, const ImageShape& b) {
  return a.width == b.width && a.height == b.height && a.layers == b.layers && a.channel_bits == b.channel_bits;
}

void OnDevice(const End& from, const End& to, std::size_t nbytes) {
  Device& device = to.memory->device;
  if (from.is_image() && to.is_image() && !SameShape(*from.memory->layout.image, *to.memory->layout.image)) {
    // The same elements in other rows and columns: only a buffer between the two reorders them.
    const Borrowed between(device.pool(), {nbytes, std::nullopt});
    const End middle{nullptr, between.get(), 0};
    OnDevice(from, middle, nbytes);
    OnDevice(middle, to, nbytes);
    return;
  }
  device.queue().Submit([&](cl_command_queue queue) {
    if (from.is_image() && to.is_image()) {
      Check(clEnqueueCopyImage(queue, from.object(), to.object(), kOrigin, kOrigin, Region(from).size, 0, nullptr,
                               nullptr),
            "clEnqueueCopyImage");
    } else if (from.is_image()) {
      Check(clEnqueueCopyImageToBuffer(queue, from.object(), to.object(), kOrigin, Region(from).size, to.offset, 0,
                                       nullptr, nullptr),
            "clEnqueueCopyImageToBuffer");
    } else if (to.is_image()) {
      Check(clEnqueueCopyBufferToImage(queue, from.object(), to.object(), from.offset, kOrigin, Region(to).size, 0,
                                       nullptr, nullptr),
            "clEnqueueCopyBufferToImage");
    } else {
      Check(clEnqueueCopyBuffer(queue, from.object(), to.object(), from.offset, to.offset, nbytes, 0, nullptr, nullptr),
            "clEnqueueCopyBuffer");
    }
  });
}

}  // namespace

void CopyTensor(const DLTensor& source, const DLTensor& target) {
  if (!tvm::ffi::IsContiguous(source) || !tvm::ffi::IsContiguous(target)) {
    TVM_FFI_THROW(ValueError) << "OpenCL: only contiguous tensors can be copied";
  }
  const std::size_t nbytes = tvm::ffi::GetDataSize(source);
  if (nbytes != tvm::ffi::GetDataSize(target)) {
    TVM_FFI_THROW(ValueError) << "OpenCL: a copy of " << nbytes << " bytes to " << tvm::ffi::GetDataSize(target);
  }
  if (nbytes == 0) return;
  const End from = EndOf(source, nbytes), to = EndOf(target, nbytes);
  if (from.memory == nullptr) {
    FromHost(from.host, to, nbytes);
  } else if (to.memory == nullptr) {
    ToHost(from, to.host, nbytes);
  } else if (&from.memory->device == &to.memory->device) {
    OnDevice(from, to, nbytes);
  } else {  // devices share no context: through the host
    std::vector<char> host(nbytes);
    ToHost(from, host.data(), nbytes);
    FromHost(host.data(), to, nbytes);
  }
}

}  // namespace adreno_bench
