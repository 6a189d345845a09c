#include "queue.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace adreno_bench {
namespace {

// Beyond so many events, those that have completed are turned into time and released.
constexpr std::size_t kDrainAbove = 256;

CommandQueue MakeQueue(cl_context context, cl_device_id device, cl_command_queue_properties properties) {
  cl_int code = CL_SUCCESS;
  CommandQueue queue(clCreateCommandQueue(context, device, properties, &code));
  Check(code);
  return queue;
}

cl_ulong ProfilingTime(cl_event event, cl_profiling_info what) {
  cl_ulong ns = 0;
  Check(clGetEventProfilingInfo(event, what, sizeof(ns), &ns, nullptr));
  return ns;
}

std::int64_t KernelNs(cl_event event) {
  return static_cast<std::int64_t>(ProfilingTime(event, CL_PROFILING_COMMAND_END) -
                                   ProfilingTime(event, CL_PROFILING_COMMAND_START));
}

/// Sleeps for the most part, because others need the processor, and spins at the end, because sleepers wake late.
void Linger(std::chrono::nanoseconds time) {
  constexpr std::chrono::microseconds late(80);
  const auto end = std::chrono::steady_clock::now() + time;
  if (time > late) std::this_thread::sleep_until(end - late);
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// CL_COMPLETE, a positive number while the command is under way, or a negative error.
cl_int Status(cl_event event) {
  cl_int status = CL_QUEUED;
  Check(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr));
  return status;
}

}  // namespace

Queue::Queue(cl_context context, cl_device_id device)
    : plain_(MakeQueue(context, device, 0)), context_(context), device_(device) {}

void Queue::Wait(const Event& event) {
  const cl_event handle = event.get();
  Check(clWaitForEvents(1, &handle));
}

void Queue::Finish() {
  cl_command_queue queue = nullptr;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    queue = current();
  }
  Check(clFinish(queue));
}

std::int64_t Queue::StartTimer() {
  std::lock_guard<std::mutex> guard(mutex_);
  RequireProfiling();
  Check(clFinish(current()));  // what was enqueued before the start is not timed
  Drain();
  ++timers_;
  return kernel_ns_;
}

std::int64_t Queue::StopTimer() {
  std::lock_guard<std::mutex> guard(mutex_);
  const cl_int finished = clFinish(current());
  --timers_;
  Check(finished);
  Drain();
  return kernel_ns_;
}

std::size_t Queue::events_held() {
  std::lock_guard<std::mutex> guard(mutex_);
  return events_.size();
}

void Queue::Record(Event event) {
  events_.push_back(std::move(event));
  if (events_.size() > kDrainAbove) Drain();
}

void Queue::Drain() {
  while (!events_.empty() && Status(events_.front().get()) <= CL_COMPLETE) {
    const Event event = std::move(events_.front());
    events_.pop_front();
    Check(std::min(Status(event.get()), CL_SUCCESS));
    kernel_ns_ += KernelNs(event.get());
  }
}

void Queue::RequireProfiling() {
  if (!profiling_) profiling_ = MakeQueue(context_, device_, CL_QUEUE_PROFILING_ENABLE);
}

std::int64_t Queue::Prolong(Event event, const Slowness& slowness) {
  Wait(event);
  const std::int64_t took_ns = KernelNs(event.get());
  const auto natural_ns = static_cast<double>(std::max(took_ns, slowness.least_ns));
  const auto lasts_ns = static_cast<std::int64_t>(natural_ns * slowness.factor);
  Linger(std::chrono::nanoseconds(lasts_ns - took_ns));
  return lasts_ns;
}

}  // namespace adreno_bench
