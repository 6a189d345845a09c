// Launches an empty kernel through the sidecar and through plain OpenCL, in turns, and prints the host's nanoseconds
// per launch of every round: "<sidecar> <plain>". Each launch sets three buffers, as a small operator does.
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/runtime/tensor.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "device.h"

namespace {

constexpr int kRounds = 60;
constexpr int kLaunches = 500;
constexpr char kSource[] =
    "// Function: empty\n__kernel void empty(__global float* a, __global float* b, __global float* c) {}\n";

template <typename Launch, typename Finish>
double NanosecondsEach(Launch launch, Finish finish) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kLaunches; ++i) launch();
  const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - start;
  finish();
  return passed.count() / kLaunches;
}

tvm::ffi::Function SidecarKernel() {
  std::string bytes;
  const auto number = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  const auto text = [&](std::string_view value) {
    number(std::uint64_t{value.size()});
    bytes.append(value);
  };
  text("cl");
  number(std::uint64_t{1});  // functions
  text("empty");
  text("empty");
  number(std::uint64_t{3});  // arguments: void*
  for (int i = 0; i < 3; ++i) {
    number(std::uint8_t{kDLOpaqueHandle});
    number(std::uint8_t{64});
    number(std::uint16_t{1});
  }
  number(std::uint64_t{1});  // launch tags
  text("blockIdx.x");
  number(std::uint64_t{0});  // extra tags
  text(kSource);
  const auto load = tvm::ffi::Function::GetGlobalRequired("ffi.Module.load_from_bytes.opencl");
  const auto module = load(tvm::ffi::Bytes(bytes)).cast<tvm::ffi::Module>();
  return *module->GetFunction("empty");
}

}  // namespace

int main() {
  using adreno_bench::Check;
  adreno_bench::Device& device = adreno_bench::Device::Get(0);
  cl_int code = CL_SUCCESS;

  const tvm::ffi::Function kernel = SidecarKernel();
  std::vector<tvm::runtime::Tensor> tensors;
  std::vector<cl_mem> buffers;
  for (int i = 0; i < 3; ++i) {
    tensors.push_back(tvm::runtime::Tensor::Empty({16}, {kDLFloat, 32, 1}, {kDLOpenCL, 0}));
    buffers.push_back(clCreateBuffer(device.context(), CL_MEM_READ_WRITE, 64, nullptr, &code));
    Check(code);
  }

  const cl_device_id id = device.facts().id;
  const char* source = kSource;
  const adreno_bench::CommandQueue queue(clCreateCommandQueue(device.context(), id, 0, &code));
  Check(code);
  const adreno_bench::Program program(clCreateProgramWithSource(device.context(), 1, &source, nullptr, &code));
  Check(code);
  Check(clBuildProgram(program.get(), 1, &id, nullptr, nullptr, nullptr));
  const adreno_bench::Kernel plain(clCreateKernel(program.get(), "empty", &code));
  Check(code);

  void* const data[3] = {tensors[0]->data, tensors[1]->data, tensors[2]->data};
  const auto through_sidecar = [&] { kernel(data[0], data[1], data[2], 1); };
  const auto through_opencl = [&] {
    for (cl_uint i = 0; i < 3; ++i)
      Check(clSetKernelArg(plain.get(), i, sizeof(cl_mem), &buffers[i]));
    const std::size_t one = 1;
    Check(clEnqueueNDRangeKernel(queue.get(), plain.get(), 1, nullptr, &one, &one, 0, nullptr, nullptr));
  };
  for (int round = -1; round < kRounds; ++round) {  // the first one warms up
    const double sidecar_ns = NanosecondsEach(through_sidecar, [&] { device.queue().Finish(); });
    const double plain_ns = NanosecondsEach(through_opencl, [&] { Check(clFinish(queue.get())); });
    if (round >= 0) std::printf("%.1f %.1f\n", sidecar_ns, plain_ns);
  }
  for (const cl_mem buffer : buffers) clReleaseMemObject(buffer);
  std::fflush(stdout);
  std::_Exit(0);  // drivers may hang while they are unloaded
}
