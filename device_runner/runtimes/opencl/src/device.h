// Which OpenCL devices there are, which of them TVM sees, and what belongs to one device.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cl.h"
#include "queue.h"

namespace adreno_bench {

class Pool;

/// Environment variable that chooses: `platform/device`, or one word found in either. Case does not matter.
constexpr const char* kDeviceVariable = "ADRENO_BENCH_OPENCL_DEVICE";

/// What OpenCL tells about a device without a context.
struct DeviceFacts {
  cl_device_id id = nullptr;
  bool gpu = false;
  std::string platform, platform_version;
  std::string name, version, driver_version;
  std::size_t image2d_max_width = 0, image2d_max_height = 0, image_max_array_layers = 0;

  std::string label() const { return platform + "/" + name; }
};

/// Every OpenCL device of this machine, in the order of the ICD loader. Empty without a driver.
std::vector<DeviceFacts> AllDevices();

/// Those TVM sees, in TVM's order: the ones that kDeviceVariable names, else GPUs before all others.
/// Throws ValueError with the list of devices if the variable names none.
std::vector<DeviceFacts> ChosenDevices();

/// One device that TVM uses, as `opencl:<index>`. Lives until the process ends: drivers stop their own threads at exit,
/// in an order that a destructor here could not know.
class Device {
 public:
  /// The device with this index. Nothing of OpenCL runs before the first call. Throws if there is no such device.
  static Device& Get(int index);
  static int Count();
  /// The device on which this thread launches kernels.
  static Device& Current();
  static void SetCurrent(int index);

  const DeviceFacts& facts() const { return facts_; }
  int index() const { return index_; }
  cl_context context() const { return context_.get(); }
  Queue& queue() { return *queue_; }
  Pool& pool() { return *pool_; }

 private:
  Device(int index, DeviceFacts facts);

  int index_;
  DeviceFacts facts_;
  Context context_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Pool> pool_;
};

/// The scalar that clGetDeviceInfo returns.
template <typename T>
T Query(cl_device_id device, cl_device_info what) {
  T value{};
  Check(clGetDeviceInfo(device, what, sizeof(value), &value, nullptr), "clGetDeviceInfo");
  return value;
}

}  // namespace adreno_bench
