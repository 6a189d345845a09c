#include "queue.h"

#include <algorithm>

namespace adreno_bench {
namespace {

// Beyond so many events, those that have completed are turned into time and released.
constexpr std::size_t kDrainAbove = 256;

CommandQueue MakeQueue(cl_context context, cl_device_id device, cl_command_queue_properties properties) {
  cl_int code = CL_SUCCESS;
  CommandQueue queue(clCreateCommandQueue(context, device, properties, &code));
  Check(code, "clCreateCommandQueue");
  return queue;
}

cl_ulong ProfilingTime(cl_event event, cl_profiling_info what) {
  cl_ulong ns = 0;
  Check(clGetEventProfilingInfo(event, what, sizeof(ns), &ns, nullptr), "clGetEventProfilingInfo");
  return ns;
}

/// CL_COMPLETE, a positive number while the command is under way, or a negative error.
cl_int Status(cl_event event) {
  cl_int status = CL_QUEUED;
  Check(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr), "clGetEventInfo");
  return status;
}

}  // namespace

Queue::Queue(cl_context context, cl_device_id device)
    : plain_(MakeQueue(context, device, 0)), context_(context), device_(device) {}

void Queue::Wait(const Event& event) {
  const cl_event handle = event.get();
  Check(clWaitForEvents(1, &handle), "clWaitForEvents");
}

void Queue::Finish() {
  cl_command_queue queue = nullptr;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    queue = current();
  }
  Check(clFinish(queue), "clFinish");
}

std::int64_t Queue::StartTimer() {
  std::lock_guard<std::mutex> guard(mutex_);
  if (!profiling_) profiling_ = MakeQueue(context_, device_, CL_QUEUE_PROFILING_ENABLE);
  Check(clFinish(current()), "clFinish");  // what was enqueued before the start is not timed
  Drain();
  ++timers_;
  return kernel_ns_;
}

std::int64_t Queue::StopTimer() {
  std::lock_guard<std::mutex> guard(mutex_);
  const cl_int finished = clFinish(current());
  --timers_;
  Check(finished, "clFinish");
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
    Check(std::min(Status(event.get()), CL_SUCCESS), "running a kernel");
    kernel_ns_ += static_cast<std::int64_t>(ProfilingTime(event.get(), CL_PROFILING_COMMAND_END) -
                                            ProfilingTime(event.get(), CL_PROFILING_COMMAND_START));
  }
}

}  // namespace adreno_bench
