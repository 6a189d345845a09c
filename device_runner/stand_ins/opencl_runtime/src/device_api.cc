// The device API that TVM calls.
#include <tvm/ffi/function.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/runtime/device_api.h>

#include <cstdlib>
#include <string>

#include "copy.h"
#include "device.h"
#include "memory.h"

namespace adreno_bench {
namespace {

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;
using ffi::Any, ffi::Optional, ffi::String;
using tvm::runtime::DeviceAPI;

std::string ScopeOf(const Optional<String>& scope) { return scope.has_value() ? std::string(*scope) : std::string(); }

/// TVM reads at most so much of the driver's version; OpenCL refuses to shorten a longer one.
std::string DriverVersion(cl_device_id device) {
  char text[128] = {};
  Check(clGetDeviceInfo(device, CL_DRIVER_VERSION, sizeof(text) - 1, text, nullptr));
  return text;
}

/// "3.0" of "OpenCL 3.0 vendor text".
std::string VersionNumber(const std::string& version) {
  const std::size_t begin = version.find(' ') + 1;
  return version.substr(begin, version.find(' ', begin) - begin);
}

void Free(Memory* memory) {
  memory->is_image() ? DeleteImage(memory) : memory->device.pool().Release(memory);
}

class OpenCLDeviceAPI final : public DeviceAPI {
 public:
  static OpenCLDeviceAPI* Global() {
    static auto* api = new OpenCLDeviceAPI();
    return api;
  }

  void SetDevice(DLDevice dev) final { Device::SetCurrent(dev.device_id); }

  void GetAttr(DLDevice dev, tvm::runtime::DeviceAttrKind kind, Any* rv) final {
    namespace rt = tvm::runtime;
    if (kind == rt::kExist) {
      *rv = dev.device_id >= 0 && dev.device_id < Device::Count() ? 1 : 0;
      return;
    }
    const Device& device = Device::Get(dev.device_id);
    const DeviceFacts& facts = device.facts();
    const auto number = [&](auto value) { *rv = static_cast<int64_t>(value); };
    const auto size = [&](cl_device_info what) { number(Query<cl_ulong>(facts.id, what)); };
    switch (kind) {
      case rt::kMaxThreadsPerBlock: return number(Query<std::size_t>(facts.id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
      case rt::kWarpSize: {
        const char* variable = std::getenv("TVM_OPENCL_WARP_SIZE");
        return number(variable == nullptr ? 1 : std::atoi(variable));
      }
      case rt::kMaxSharedMemoryPerBlock: return size(CL_DEVICE_LOCAL_MEM_SIZE);
      case rt::kComputeVersion: *rv = VersionNumber(facts.version); return;
      case rt::kDeviceName: *rv = facts.name; return;
      case rt::kMaxClockRate:  // OpenCL says MHz, TVM wants kHz
        return number(int64_t{Query<cl_uint>(facts.id, CL_DEVICE_MAX_CLOCK_FREQUENCY)} * 1000);
      case rt::kMultiProcessorCount: return number(Query<cl_uint>(facts.id, CL_DEVICE_MAX_COMPUTE_UNITS));
      case rt::kMaxThreadDimensions: {
        struct Sizes {
          std::size_t x, y, z;
        };
        const Sizes s = Query<Sizes>(facts.id, CL_DEVICE_MAX_WORK_ITEM_SIZES);
        *rv = "[" + std::to_string(s.x) + ", " + std::to_string(s.y) + ", " + std::to_string(s.z) + "]";
        return;
      }
      case rt::kApiVersion: return number(CL_TARGET_OPENCL_VERSION);
      case rt::kDriverVersion: *rv = DriverVersion(facts.id); return;
      case rt::kL2CacheSizeBytes: return size(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
      case rt::kTotalGlobalMemory: return size(CL_DEVICE_GLOBAL_MEM_SIZE);
      case rt::kImagePitchAlignment: return number(device.row_alignment());
      default: return;  // registers per block, GCN architecture, free memory: OpenCL does not tell
    }
  }

  size_t GetDataSize(const DLTensor& tensor, Optional<String> mem_scope) final {
    const std::string scope = ScopeOf(mem_scope);
    if (IsBuffer(scope)) return DeviceAPI::GetDataSize(tensor);
    const ImageShape image = Flattened(tensor.ndim, tensor.shape, scope);
    const auto elements = static_cast<std::size_t>(tensor.shape[tensor.ndim - 1]);
    const std::size_t row = image.width * elements * ((tensor.dtype.bits * tensor.dtype.lanes + 7) / 8);
    const std::size_t alignment = Device::Current().row_alignment();
    return (row + alignment - 1) / alignment * alignment * image.height * image.layers;
  }

  void* AllocDataSpace(DLDevice dev, std::size_t nbytes, std::size_t, DLDataType) final {
    return Device::Get(dev.device_id).pool().Take(nbytes);
  }
  void* AllocDataSpace(DLDevice dev, int ndim, const int64_t* shape, DLDataType dtype,
                       Optional<String> mem_scope) final {
    Device& device = Device::Get(dev.device_id);
    const std::string scope = ScopeOf(mem_scope);
    if (!IsBuffer(scope)) return NewImage(device, Flattened(ndim, shape, scope), dtype, scope);
    DLTensor tensor{};
    tensor.ndim = ndim;
    tensor.shape = const_cast<int64_t*>(shape);
    tensor.dtype = dtype;
    return device.pool().Take(DeviceAPI::GetDataSize(tensor));
  }
  void FreeDataSpace(DLDevice, void* data) final { Free(static_cast<Memory*>(data)); }

  void* AllocWorkspace(DLDevice dev, std::size_t nbytes, DLDataType) final {
    return Device::Get(dev.device_id).pool().Take(nbytes);
  }
  void FreeWorkspace(DLDevice dev, void* data) final {
    Device::Get(dev.device_id).pool().Give(static_cast<Memory*>(data));
  }

  void CopyDataFromTo(DLTensor* from, DLTensor* to, TVMStreamHandle) final { CopyTensor(*from, *to); }
  void StreamSync(DLDevice dev, TVMStreamHandle stream) final {
    TVM_FFI_ICHECK(stream == nullptr);
    Device::Get(dev.device_id).queue().Finish();
  }
};

/// What code lowered by InjectTextureAlloc calls for a texture inside one function:
/// (device type, device id, type code, type bits, scope, 3, {width, height, layers}, bits per texel).
void AllocTexture(ffi::PackedArgs args, Any* rv) {
  const auto scope = args[4].cast<std::string>();
  TVM_FFI_ICHECK(scope.find("texture") != std::string::npos);
  const auto ndim = args[5].cast<int64_t>();
  TVM_FFI_ICHECK_EQ(ndim, 3);
  const auto* side = static_cast<const int64_t*>(args[6].cast<void*>());
  const auto texel_bits = args[7].cast<int64_t>();
  if (texel_bits != 64 && texel_bits != 128) {
    TVM_FFI_THROW(InternalError) << "Unsupported Channel Size: " << texel_bits;
  }
  const ImageShape image{static_cast<std::size_t>(side[0]), static_cast<std::size_t>(side[1]),
                         static_cast<std::size_t>(side[2])};
  const DLDataType channel{kDLFloat, static_cast<std::uint8_t>(texel_bits / 4), 4};
  *rv = static_cast<void*>(NewImage(Device::Get(args[1].cast<int>()), image, channel, "global.texture"));
}

/// (device type, device id, scope, data)
void FreeTexture(ffi::PackedArgs args, Any* rv) {
  const auto scope = args[2].cast<std::string>();
  TVM_FFI_ICHECK(scope.find("texture") != std::string::npos);
  Free(static_cast<Memory*>(args[3].cast<void*>()));
  *rv = 0;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::GlobalDef()
      .def_packed("device_api.opencl",
                  [](ffi::PackedArgs, Any* rv) { *rv = static_cast<void*>(OpenCLDeviceAPI::Global()); })
      .def_packed("device_api.opencl.alloc_nd", AllocTexture)
      .def_packed("device_api.opencl.free_nd", FreeTexture);
}

}  // namespace
}  // namespace adreno_bench
