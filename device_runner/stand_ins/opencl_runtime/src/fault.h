// What the virtual phone can make wrong with a kernel: slow, endless, refused, or struck by a reset of the GPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "queue.h"

namespace adreno_bench {

/// `FACTOR LEAST_S GLOB ...`: a kernel whose name matches (the first that does counts) lasts FACTOR times as long as it
/// needs, or as LEAST_S if that is longer.
constexpr const char* kSlowVariable = "ADRENO_BENCH_SLOW_KERNELS";
/// `GLOB`: a kernel whose name matches never ends, and its process is deaf to SIGTERM.
constexpr const char* kHangVariable = "ADRENO_BENCH_HANG_KERNELS";
/// `CODE GLOB ...`: a kernel whose name matches (the first that does counts) fails with this code of OpenCL.
constexpr const char* kFailVariable = "ADRENO_BENCH_FAILING_KERNELS";
/// A file with a number, kgsl's `reset_count`: when it changes, every kernel fails.
constexpr const char* kResetVariable = "ADRENO_BENCH_GPU_RESETS";

/// What is wrong with one kernel.
class Fault {
 public:
  /// As the environment says now; null for a healthy kernel. Throws ValueError for what cannot be read.
  static std::unique_ptr<const Fault> Of(const std::string& kernel);

  /// Launches as `Queue::Launch` does, spoils it, and waits for its end.
  template <typename Enqueue>
  void Launch(Queue& queue, Enqueue&& enqueue) const {
    FailAfterReset();
    Check(code_);
    if (hangs_) Hang();
    queue.LaunchSlowly(enqueue, slowness_);
    Tell();
    FailAfterReset();
  }

 private:
  void FailAfterReset() const;
  [[noreturn]] static void Hang();
  /// Says in the server's log, once, that the kernel was slowed: the record of a run says so, too.
  void Tell() const;

  std::string kernel_;
  Slowness slowness_;
  mutable std::atomic<bool> told_{false};
  bool hangs_ = false;
  cl_int code_ = CL_SUCCESS;
  std::string resets_file_;
  std::string resets_before_;
};

}  // namespace adreno_bench
