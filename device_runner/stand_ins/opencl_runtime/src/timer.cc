// `runtime.timer.opencl`: the time that kernels ran, not the time that passed.
#include <tvm/ffi/memory.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/runtime/timer.h>

#include "device.h"

namespace adreno_bench {
namespace {

/// Sums the kernels of all threads on one device between start and stop. Copies and launch gaps are not in the sum.
class KernelTimer final : public tvm::runtime::TimerNode {
 public:
  explicit KernelTimer(DLDevice dev) : queue_(Device::Get(dev.device_id).queue()) {}
  ~KernelTimer() final {
    if (!running_) return;
    try {  // what was timed has thrown already, and a destructor must not throw again
      queue_.StopTimer();
    } catch (const tvm::ffi::Error&) {
    }
  }

  void Start() final {
    before_ns_ = queue_.StartTimer();
    running_ = true;
  }
  void Stop() final {
    running_ = false;
    elapsed_ns_ = queue_.StopTimer() - before_ns_;
  }
  int64_t SyncAndGetElapsedNanos() final { return elapsed_ns_; }

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("runtime.opencl.OpenCLTimerNode", KernelTimer, tvm::runtime::TimerNode);

 private:
  Queue& queue_;
  bool running_ = false;
  std::int64_t before_ns_ = 0, elapsed_ns_ = 0;
};

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("runtime.timer.opencl", [](DLDevice dev) {
    return tvm::runtime::Timer(tvm::ffi::make_object<KernelTimer>(dev));
  });
}

}  // namespace
}  // namespace adreno_bench
