// What this runtime holds, for tests that it leaves nothing behind. Found by its symbol; TVM's registry knows nothing of
// it, as it knows nothing else that TVM's own runtime has not.
#include <cstdint>

#include "device.h"
#include "memory.h"

/// Events not yet released, and bytes of the pool, of the device on which this thread launches kernels.
extern "C" __attribute__((visibility("default"))) void adreno_bench_opencl_held(std::int64_t* events,
                                                                                std::int64_t* pool_bytes) {
  adreno_bench::Device& device = adreno_bench::Device::Current();
  *events = static_cast<std::int64_t>(device.queue().events_held());
  *pool_bytes = static_cast<std::int64_t>(device.pool().nbytes());
}
