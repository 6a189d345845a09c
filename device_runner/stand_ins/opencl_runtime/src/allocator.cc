// The allocator that TVM's memory manager asks for, `DeviceAllocator.opencl`.
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/memory/memory_manager.h>

#include <string>

#include "device.h"
#include "memory.h"

namespace adreno_bench {
namespace {

namespace ffi = tvm::ffi;
using tvm::runtime::memory::Allocator;
using tvm::runtime::memory::AllocatorType;
using tvm::runtime::memory::Buffer;

/// Gives out buffers of a device's pool, whichever kind of allocator was asked for, as TVM's own does.
///
/// The VM's storage is a buffer that serves several tensors, one after the other. A tensor in a texture scope is a view
/// of it: an image over it, or, as in TVM's own, a new image of its own on a device without cl_khr_image2d_from_buffer.
class PoolAllocator final : public Allocator {
 public:
  explicit PoolAllocator(Device& device) : Allocator(tvm::runtime::memory::kPooled), device_(device) {}

  Buffer Alloc(DLDevice dev, std::size_t nbytes, std::size_t, DLDataType) final {
    Memory* memory = device_.pool().Take(nbytes);
    return {memory, memory->nbytes, dev, type()};
  }

  Buffer Alloc(DLDevice dev, ffi::Shape shape, DLDataType dtype, const std::string& scope) final {
    if (!AllowMemoryScope(scope)) {
      TVM_FFI_THROW(InternalError) << "Unsupported memory scope for this Allocator:" << scope;
    }
    auto* api = tvm::runtime::DeviceAPI::Get(dev);
    void* data = api->AllocDataSpace(dev, static_cast<int>(shape.size()), shape.data(), dtype, ffi::String(scope));
    return {data, static_cast<Memory*>(data)->nbytes, dev, type()};
  }

  void Free(const Buffer& buffer) final {
    auto* memory = static_cast<Memory*>(buffer.data);
    memory->is_image() ? DeleteImage(memory) : device_.pool().Give(memory);
  }

  void* CreateView(const Buffer& buffer, ffi::Shape shape, DLDataType dtype, const std::string& scope) final {
    if (IsBuffer(scope)) return buffer.data;
    const ImageShape image = Flattened(static_cast<int>(shape.size()), shape.data(), scope);
    auto* memory = static_cast<Memory*>(buffer.data);
    if (!device_.images_over_buffers() || memory->is_image()) return new Memory(device_, image, dtype, scope);
    return new Memory(image, dtype, scope, *memory, false);
  }

  void FreeView(DLDevice, void* data) final {
    auto* memory = static_cast<Memory*>(data);
    if (memory->is_image()) DeleteImage(memory);
  }

  void Clear() final { device_.pool().Clear(); }
  std::size_t UsedMemory() const final { return device_.pool().nbytes(); }

 protected:
  bool AllowMemoryScope(const std::string& scope) const final { return IsBuffer(scope) || IsTexture(scope); }

 private:
  Device& device_;
};

TVM_FFI_STATIC_INIT_BLOCK() {
  ffi::reflection::GlobalDef().def("DeviceAllocator.opencl", [](DLDevice dev, int) {
    Allocator* allocator = new PoolAllocator(Device::Get(dev.device_id));
    return static_cast<void*>(allocator);
  });
}

}  // namespace
}  // namespace adreno_bench
