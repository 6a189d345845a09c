#include "device.h"

#include <tvm/ffi/error.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/logging.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "memory.h"

namespace adreno_bench {
namespace {

/// CL_DEVICE_IMAGE_PITCH_ALIGNMENT_KHR of cl_ext.h. TVM asks every device for it, whatever its extensions.
constexpr cl_device_info kImagePitchAlignment = 0x104A;

template <typename Object, typename Getter>
std::string Text(Getter get, Object object, cl_uint what) {
  std::size_t size = 0;
  Check(get(object, what, 0, nullptr, &size));
  std::string text(size, '\0');
  Check(get(object, what, size, text.data(), nullptr));
  return text.c_str();  // up to the terminating zero
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

DeviceFacts Ask(cl_platform_id platform, cl_device_id device) {
  DeviceFacts facts;
  facts.id = device;
  facts.type = Query<cl_device_type>(device, CL_DEVICE_TYPE);
  facts.platform = Text(clGetPlatformInfo, platform, CL_PLATFORM_NAME);
  facts.platform_version = Text(clGetPlatformInfo, platform, CL_PLATFORM_VERSION);
  facts.name = Text(clGetDeviceInfo, device, CL_DEVICE_NAME);
  facts.version = Text(clGetDeviceInfo, device, CL_DEVICE_VERSION);
  facts.driver_version = Text(clGetDeviceInfo, device, CL_DRIVER_VERSION);
  return facts;
}

/// The version belongs to the text that is searched, because PoCL's name for itself stands only there.
bool Matches(const DeviceFacts& facts, const std::string& wanted) {
  const std::string platform = Lower(facts.platform + " " + facts.platform_version);
  const std::string device = Lower(facts.name);
  const auto slash = wanted.find('/');
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  if (slash == std::string::npos) return contains(platform, wanted) || contains(device, wanted);
  return contains(platform, wanted.substr(0, slash)) && contains(device, wanted.substr(slash + 1));
}

std::string Labels(const std::vector<DeviceFacts>& all) {
  std::string text;
  for (const DeviceFacts& facts : all) text += (text.empty() ? "" : ", ") + ("'" + facts.label() + "'");
  return text.empty() ? "none" : text;
}

std::vector<DeviceFacts> Of(const std::vector<DeviceFacts>& all, cl_device_type type) {
  std::vector<DeviceFacts> found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found),
               [type](const DeviceFacts& facts) { return (facts.type & type) != 0; });
  return found;
}

std::vector<DeviceFacts> GpusElseCpus(const std::vector<DeviceFacts>& all) {
  if (all.empty()) LOG(WARNING) << "No OpenCL platform matched given existing options ...";
  std::vector<DeviceFacts> found = Of(all, CL_DEVICE_TYPE_GPU);
  if (all.empty() || !found.empty()) return found;
  LOG(WARNING) << "Using CPU OpenCL device";
  found = Of(all, CL_DEVICE_TYPE_CPU);
  if (found.empty()) LOG(WARNING) << "No OpenCL device";
  return found;
}

/// Whether the device has cl_khr_image2d_from_buffer, and takes arrays of images, too, which the extension does not
/// promise: Adreno does, Intel's OpenCL for processors does not.
bool LaysImagesOverBuffers(cl_device_id device, cl_context context, cl_uint row_bytes) {
  const std::string extensions = Text(clGetDeviceInfo, device, CL_DEVICE_EXTENSIONS);
  if (extensions.find("cl_khr_image2d_from_buffer") == std::string::npos) return false;
  cl_int code = CL_SUCCESS;
  const cl_image_format format{CL_RGBA, CL_FLOAT};
  cl_image_desc desc{};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY;
  desc.image_width = desc.image_height = 1;
  desc.image_array_size = 2;
  desc.image_row_pitch = std::max<std::size_t>(row_bytes, 16);
  const MemObject buffer(clCreateBuffer(context, CL_MEM_READ_WRITE, 2 * desc.image_row_pitch, nullptr, &code));
  if (code != CL_SUCCESS) return false;
  desc.buffer = buffer.get();
  const MemObject image(clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, nullptr, &code));
  return code == CL_SUCCESS;
}

thread_local int current_device = 0;

/// Made at the first call of this function; a failure is thrown again at the next.
std::vector<DeviceFacts>& Chosen() {
  static auto* chosen = new std::vector<DeviceFacts>(ChosenDevices());
  return *chosen;
}

}  // namespace

std::vector<DeviceFacts> AllDevices() {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return {};  // the ICD loader found no driver
  std::vector<cl_platform_id> platforms(count);
  Check(clGetPlatformIDs(count, platforms.data(), nullptr));
  std::vector<DeviceFacts> all;
  for (const cl_platform_id platform : platforms) {
    const cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
    if (code == CL_DEVICE_NOT_FOUND) continue;
    Check(code);
    std::vector<cl_device_id> ids(count);
    Check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr));
    for (const cl_device_id id : ids) all.push_back(Ask(platform, id));
  }
  return all;
}

std::vector<DeviceFacts> ChosenDevices() {
  std::vector<DeviceFacts> devices = AllDevices();
  const char* variable = std::getenv(kDeviceVariable);
  if (variable == nullptr || *variable == '\0') return GpusElseCpus(devices);
  std::vector<DeviceFacts> matching;
  std::copy_if(devices.begin(), devices.end(), std::back_inserter(matching),
               [wanted = Lower(variable)](const DeviceFacts& facts) { return Matches(facts, wanted); });
  if (matching.empty()) {
    TVM_FFI_THROW(ValueError) << "OpenCL: no device matches " << kDeviceVariable << "='" << variable
                              << "'; there is: " << Labels(devices);
  }
  return matching;
}

Device::Device(int index, DeviceFacts facts)
    : index_(index), facts_(std::move(facts)), row_alignment_(Query<cl_uint>(facts_.id, kImagePitchAlignment)) {
  if (row_alignment_ == 0) row_alignment_ = tvm::runtime::kAllocAlignment;
  cl_int code = CL_SUCCESS;
  context_.reset(clCreateContext(nullptr, 1, &facts_.id, nullptr, nullptr, &code));
  Check(code);
  images_over_buffers_ = LaysImagesOverBuffers(facts_.id, context_.get(), row_alignment_);
  queue_ = std::make_unique<Queue>(context_.get(), facts_.id);
  pool_ = std::make_unique<Pool>(*this);
}

int Device::Count() { return static_cast<int>(Chosen().size()); }

void Device::SetCurrent(int index) { current_device = index; }

Device& Device::Current() { return Get(current_device); }

Device& Device::Get(int index) {
  static std::mutex mutex;
  static auto* opened = new std::vector<std::unique_ptr<Device>>(Chosen().size());
  if (index < 0 || index >= Count()) TVM_FFI_THROW(InternalError) << "Invalid device id " << index << ". ";
  std::lock_guard<std::mutex> guard(mutex);
  std::unique_ptr<Device>& device = (*opened)[static_cast<std::size_t>(index)];
  if (!device) device.reset(new Device(index, Chosen()[static_cast<std::size_t>(index)]));
  return *device;
}

}  // namespace adreno_bench
