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
  cl_device_type type = 0;
  std::string platform, platform_version;
  std::string name, version, driver_version;

  std::string label() const { return platform + "/" + name; }
};

/// Every OpenCL device of this machine, in the order of the ICD loader. Empty without a driver.
std::vector<DeviceFacts> AllDevices();

/// Those TVM sees: the ones that kDeviceVariable names, else all GPUs, else all CPUs, as in TVM's own runtime.
/// Throws ValueError with the list of devices if the variable names none.
std::vector<DeviceFacts> ChosenDevices();

/// One device that TVM uses, as `opencl:<index>`. Lives until the process ends: drivers stop their own threads at exit,
/// in an order that a destructor here could not know.
class Device {
 public:
  /// The device with this index. Nothing of OpenCL runs before the first call. Throws InternalError if there is none.
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
  /// To how many bytes TVM aligns the rows of images that lie on buffers (CL_DEVICE_IMAGE_PITCH_ALIGNMENT).
  cl_uint row_alignment() const { return row_alignment_; }
  /// Whether images lie over buffers, as in TVM's own runtime: the device has cl_khr_image2d_from_buffer.
  bool images_over_buffers() const { return images_over_buffers_; }

 private:
  Device(int index, DeviceFacts facts);

  int index_;
  DeviceFacts facts_;
  cl_uint row_alignment_ = 0;
  bool images_over_buffers_ = false;
  Context context_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Pool> pool_;
};

/// The scalar that clGetDeviceInfo returns.
template <typename T>
T Query(cl_device_id device, cl_device_info what) {
  T value{};
  Check(clGetDeviceInfo(device, what, sizeof(value), &value, nullptr));
  return value;
}

}  // namespace adreno_bench
