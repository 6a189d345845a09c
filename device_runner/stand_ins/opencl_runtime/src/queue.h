// The command queue of one device, its lock, and the kernel times that timers read from it.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "cl.h"

namespace adreno_bench {

/// How much longer than it needs a kernel is made to last.
struct Slowness {
  double factor = 1;
  std::int64_t least_ns = 0;
  bool any() const { return factor > 1 || least_ns > 0; }
};

/// An in-order queue shared by all threads. OpenCL kernels carry their arguments, so setting arguments and enqueueing
/// is one step under the queue's lock. While at least one timer runs, commands go to a second queue that profiles.
class Queue {
 public:
  Queue(cl_context context, cl_device_id device);

  /// Calls `enqueue(queue, event)`, which must enqueue one kernel and, unless it is null, fill in the event.
  template <typename Enqueue>
  void Launch(Enqueue&& enqueue) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (timers_ == 0) {
      enqueue(plain_.get(), nullptr);
    } else {
      cl_event event = nullptr;
      enqueue(profiling_.get(), &event);
      Record(Event(event));
    }
  }

  /// As `Launch`, and waits until the kernel has lasted so long. Timers are told the longer time.
  template <typename Enqueue>
  void LaunchSlowly(Enqueue&& enqueue, const Slowness& slowness) {
    std::lock_guard<std::mutex> guard(mutex_);
    Check(clFinish(current()));  // the kernel goes to the queue that profiles, in its turn all the same
    RequireProfiling();
    cl_event event = nullptr;
    enqueue(profiling_.get(), &event);
    const std::int64_t lasted_ns = Prolong(Event(event), slowness);
    if (timers_ > 0) kernel_ns_ += lasted_ns;
  }

  /// Calls `enqueue(queue, event)`, which must enqueue one transfer and fill in the event, and waits for its end.
  template <typename Enqueue>
  void Transfer(Enqueue&& enqueue) {
    cl_event event = nullptr;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      enqueue(current(), &event);
    }
    Wait(Event(event));
  }

  /// Calls `enqueue(queue)`, which must enqueue a command that touches only device memory. Does not wait.
  template <typename Enqueue>
  void Submit(Enqueue&& enqueue) {
    std::lock_guard<std::mutex> guard(mutex_);
    enqueue(current());
  }

  /// Waits for everything enqueued so far.
  void Finish();

  /// Starts one more timer; returns the kernel time so far, to be subtracted from what `StopTimer` returns.
  std::int64_t StartTimer();
  /// Waits for everything enqueued so far, stops one timer, returns the kernel time so far in nanoseconds.
  std::int64_t StopTimer();
  /// Events not yet turned into time; about as many as the device has kernels still to run.
  std::size_t events_held();

 private:
  cl_command_queue current() const { return timers_ == 0 ? plain_.get() : profiling_.get(); }
  static void Wait(const Event& event);
  void Record(Event event);
  void Drain();
  void RequireProfiling();
  std::int64_t Prolong(Event event, const Slowness& slowness);

  std::mutex mutex_;
  CommandQueue plain_;
  CommandQueue profiling_;
  cl_context context_;
  cl_device_id device_;
  int timers_ = 0;
  std::deque<Event> events_;
  std::int64_t kernel_ns_ = 0;
};

}  // namespace adreno_bench
