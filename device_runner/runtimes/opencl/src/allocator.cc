// The allocator that TVM's memory manager asks for, `DeviceAllocator.opencl`.
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
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

/// Gives out memory of a device's pool; the naive one of TVM's two kinds keeps nothing for later.
///
/// The VM's storage is a buffer that serves several tensors, one after the other. A tensor in a texture scope is a view
/// of it, and gets an image of its own: not every device can lay an image over a buffer (cl_khr_image2d_from_buffer),
/// and no tensor reads what another left in their common storage.
class PoolAllocator final : public Allocator {
 public:
  PoolAllocator(Device& device, AllocatorType type) : Allocator(type), device_(device) {}

  Buffer Alloc(DLDevice dev, std::size_t nbytes, std::size_t, DLDataType) final { return Take(dev, {nbytes, {}}); }

  Buffer Alloc(DLDevice dev, ffi::Shape shape, DLDataType dtype, const std::string& scope) final {
    return Take(dev, LayoutOf(static_cast<int>(shape.size()), shape.data(), dtype, scope));
  }

  void Free(const Buffer& buffer) final { Give(buffer.data); }

  void* CreateView(const Buffer&, ffi::Shape shape, DLDataType dtype, const std::string& scope) final {
    if (!IsTexture(scope)) TVM_FFI_THROW(ValueError) << "OpenCL: only textures are views, not '" << scope << "'";
    return device_.pool().Take(LayoutOf(static_cast<int>(shape.size()), shape.data(), dtype, scope));
  }

  void FreeView(DLDevice, void* data) final { Give(data); }

  void Clear() final { device_.pool().Clear(); }
  std::size_t UsedMemory() const final { return device_.pool().nbytes(); }

 protected:
  bool AllowMemoryScope(const std::string& scope) const final {
    return scope.empty() || scope == "global" || IsTexture(scope);
  }

 private:
  Buffer Take(DLDevice dev, const Layout& layout) {
    Memory* memory = device_.pool().Take(layout);
    return {memory, memory->layout.nbytes, dev, type()};
  }

  void Give(void* data) {
    auto* memory = static_cast<Memory*>(data);
    type() == AllocatorType::kNaive ? device_.pool().Release(memory) : device_.pool().Give(memory);
  }

  Device& device_;
};

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("DeviceAllocator.opencl", [](DLDevice dev, int type) {
    Allocator* allocator = new PoolAllocator(Device::Get(dev.device_id), static_cast<AllocatorType>(type));
    return static_cast<void*>(allocator);
  });
}

}  // namespace
}  // namespace adreno_bench
