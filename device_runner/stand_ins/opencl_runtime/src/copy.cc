#include "copy.h"

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>

#include <vector>

#include "device.h"
#include "memory.h"

namespace adreno_bench {
namespace {

namespace ffi = tvm::ffi;

constexpr std::size_t kOrigin[3] = {0, 0, 0};

/// What of an image a tensor occupies.
struct Region {
  std::size_t size[3];
  Region(const Memory& image, const DLTensor& tensor) {
    TVM_FFI_ICHECK(tensor.dtype.lanes == 1) << "Image dtype has lanes: " << tensor.dtype.lanes;
    const ImageShape shape = Flattened(tensor.ndim, tensor.shape, image.scope);
    size[0] = shape.width;
    size[1] = shape.height;
    size[2] = shape.layers;
  }
};

const Memory& MemoryOf(const DLTensor& tensor) { return *static_cast<const Memory*>(tensor.data); }

char* HostOf(const DLTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

void ToHost(const DLTensor& from, char* host, std::size_t nbytes) {
  const Memory& memory = MemoryOf(from);
  memory.device.queue().Transfer([&](cl_command_queue queue, cl_event* event) {
    Check(memory.is_image() ? clEnqueueReadImage(queue, memory.object.get(), CL_FALSE, kOrigin,
                                                 Region(memory, from).size, 0, 0, host, 0, nullptr, event)
                            : clEnqueueReadBuffer(queue, memory.object.get(), CL_FALSE, from.byte_offset, nbytes, host,
                                                  0, nullptr, event));
  });
}

void FromHost(const char* host, const DLTensor& to, std::size_t nbytes) {
  const Memory& memory = MemoryOf(to);
  memory.device.queue().Transfer([&](cl_command_queue queue, cl_event* event) {
    Check(memory.is_image() ? clEnqueueWriteImage(queue, memory.object.get(), CL_FALSE, kOrigin,
                                                  Region(memory, to).size, 0, 0, host, 0, nullptr, event)
                            : clEnqueueWriteBuffer(queue, memory.object.get(), CL_FALSE, to.byte_offset, nbytes, host,
                                                   0, nullptr, event));
  });
}

cl_int Enqueue(cl_command_queue queue, const DLTensor& from, const DLTensor& to, std::size_t nbytes) {
  const Memory &source = MemoryOf(from), &target = MemoryOf(to);
  const cl_mem source_object = source.object.get(), target_object = target.object.get();
  if (source.is_image() && target.is_image()) {
    return clEnqueueCopyImage(queue, source_object, target_object, kOrigin, kOrigin, Region(target, to).size, 0,
                              nullptr, nullptr);
  }
  if (source.is_image()) {
    return clEnqueueCopyImageToBuffer(queue, source_object, target_object, kOrigin, Region(source, from).size,
                                      to.byte_offset, 0, nullptr, nullptr);
  }
  if (target.is_image()) {
    return clEnqueueCopyBufferToImage(queue, source_object, target_object, from.byte_offset, kOrigin,
                                      Region(target, to).size, 0, nullptr, nullptr);
  }
  return clEnqueueCopyBuffer(queue, source_object, target_object, from.byte_offset, to.byte_offset, nbytes, 0, nullptr,
                             nullptr);
}

}  // namespace

void CopyTensor(const DLTensor& from, const DLTensor& to) {
  const std::size_t nbytes = ffi::GetDataSize(from);
  TVM_FFI_ICHECK_EQ(nbytes, ffi::GetDataSize(to));
  TVM_FFI_ICHECK(ffi::IsContiguous(from) && ffi::IsContiguous(to))
      << "CopyDataFromTo only support contiguous array for now";
  const DLDeviceType source = from.device.device_type, target = to.device.device_type;
  if (source == kDLOpenCL && target == kDLCPU) {
    ToHost(from, HostOf(to), nbytes);
  } else if (source == kDLCPU && target == kDLOpenCL) {
    FromHost(HostOf(from), to, nbytes);
  } else if (source != kDLOpenCL || target != kDLOpenCL) {
    TVM_FFI_THROW(InternalError) << "Expect copy from/to OpenCL or between OpenCL";
  } else if (&MemoryOf(from).device == &MemoryOf(to).device) {
    MemoryOf(to).device.queue().Submit([&](cl_command_queue queue) { Check(Enqueue(queue, from, to, nbytes)); });
  } else {  // devices share no context: through the host
    std::vector<char> host(nbytes);
    ToHost(from, host.data(), nbytes);
    FromHost(host.data(), to, nbytes);
  }
}

}  // namespace adreno_bench
