// What the harness asks this runtime about the machine and about itself. Every answer is JSON.
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <string>

#include "device.h"
#include "memory.h"
#include "program.h"

namespace adreno_bench {
namespace {

/// The device `opencl:0`, as TVM would use it.
std::string Info() { return ToJson(Device::Get(0).facts()); }

/// Every device of this machine, chosen or not.
std::string Devices() {
  std::string json;
  for (const DeviceFacts& facts : AllDevices()) json += (json.empty() ? "" : ", ") + ToJson(facts);
  return "[" + json + "]";
}

/// The proofs of a run: where its programs came from, and that it leaves nothing behind.
std::string Counts() {
  const BuildCounts builds = CountBuilds();
  Device& device = Device::Current();
  return "{\"programs_from_source\": " + std::to_string(builds.source) +
         ", \"programs_from_binary\": " + std::to_string(builds.binary) +
         ", \"slowed_kernels\": " + std::to_string(device.queue().slowed()) +
         ", \"events_held\": " + std::to_string(device.queue().events_held()) +
         ", \"pool_bytes\": " + std::to_string(device.pool().nbytes()) + "}";
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def("adreno_bench.opencl_info", Info)
      .def("adreno_bench.opencl_devices", Devices)
      .def("adreno_bench.opencl_counts", Counts);
}

}  // namespace
}  // namespace adreno_bench
