// Asks an OpenCL device for what an Adreno lacks, and prints what came of it, a line each.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>
#include <string.h>

static cl_device_id device;
static cl_context context;

static size_t number(cl_device_info what) {
  size_t values[3] = {0};
  clGetDeviceInfo(device, what, sizeof(values), values, NULL);
  return values[0];
}

static cl_program build(const char* text, cl_int* code) {
  cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, NULL);
  *code = clBuildProgram(program, 1, &device, "", NULL, NULL);
  return program;
}

static void say(const char* name, long value) { printf("%s %ld\n", name, value); }

/// An array of images over a buffer: what a kernel writes into the image is read in the buffer, row by row.
static void images_over_a_buffer(cl_command_queue queue) {
  const char* text =
      "__kernel void k(__write_only image2d_array_t i) { int4 p = (int4)(get_global_id(0), get_global_id(1),"
      " get_global_id(2), 0); write_imagef(i, p, (float4)(p.x, p.y, p.z, 1)); }";
  const cl_uint alignment = (cl_uint)number(CL_DEVICE_IMAGE_PITCH_ALIGNMENT);
  const size_t pitch = (160 + alignment - 1) / alignment * alignment, size = pitch * 4 * 2, all[3] = {10, 4, 2};
  const cl_image_format format = {CL_RGBA, CL_FLOAT};
  cl_image_desc image = {.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY, .image_width = 10, .image_height = 4};
  cl_int code = 0;
  float texel[4] = {0};
  image.image_array_size = 2;
  image.image_row_pitch = pitch;
  image.mem_object = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, NULL);
  cl_mem made = clCreateImage(context, CL_MEM_READ_WRITE, &format, &image, NULL, &code);
  say("image_over_buffer", code);
  cl_kernel writes = clCreateKernel(build(text, &code), "k", NULL);
  clSetKernelArg(writes, 0, sizeof(made), &made);
  clEnqueueNDRangeKernel(queue, writes, 3, NULL, all, NULL, 0, NULL, NULL);
  clEnqueueReadBuffer(queue, image.mem_object, CL_TRUE, (1 * 4 + 3) * pitch + 9 * 16, 16, texel, 0, NULL, NULL);
  say("texel_9_3_1", (long)(texel[0] * 1000 + texel[1] * 100 + texel[2] * 10 + texel[3]));
  image.image_row_pitch = pitch + 8;
  clCreateImage(context, CL_MEM_READ_WRITE, &format, &image, NULL, &code);
  say("wrong_pitch", code);
  image.image_row_pitch = pitch;
  image.image_array_size = 3;
  clCreateImage(context, CL_MEM_READ_WRITE, &format, &image, NULL, &code);
  say("buffer_too_small", code);
  clReleaseMemObject(image.mem_object);
  clEnqueueNDRangeKernel(queue, writes, 3, NULL, all, NULL, 0, NULL, NULL);  // the image keeps its buffer
  say("image_after_buffer", clFinish(queue));
  clReleaseMemObject(made);
}

/// Two images over one buffer: what the first holds is gone once the second is written.
static void use_after_reuse(cl_command_queue queue) {
  const char* text =
      "__kernel void writes(__write_only image2d_array_t i) { write_imagef(i, (int4)(0, 0, 0, 0), (float4)(1)); }"
      "__kernel void reads(__read_only image2d_array_t i, __global float4* o) { o[0] = read_imagef(i, (int4)(0)); }";
  const size_t pitch = 4096, one = 1;
  const cl_image_format format = {CL_RGBA, CL_FLOAT};
  cl_image_desc image = {.image_type = CL_MEM_OBJECT_IMAGE2D_ARRAY, .image_width = 8, .image_height = 4};
  cl_int code = 0;
  image.image_array_size = 1;
  image.image_row_pitch = pitch;
  image.mem_object = clCreateBuffer(context, CL_MEM_READ_WRITE, pitch * 4, NULL, NULL);
  cl_mem first = clCreateImage(context, CL_MEM_READ_WRITE, &format, &image, NULL, NULL);
  image.image_width = 6;
  cl_mem second = clCreateImage(context, CL_MEM_READ_WRITE, &format, &image, NULL, NULL);
  cl_mem out = clCreateBuffer(context, CL_MEM_READ_WRITE, 16, NULL, NULL);
  cl_program program = build(text, &code);
  cl_kernel writes = clCreateKernel(program, "writes", NULL), reads = clCreateKernel(program, "reads", NULL);
  clSetKernelArg(reads, 1, sizeof(out), &out);
  clSetKernelArg(writes, 0, sizeof(first), &first);
  clEnqueueNDRangeKernel(queue, writes, 1, NULL, &one, NULL, 0, NULL, NULL);
  clSetKernelArg(reads, 0, sizeof(second), &second);  // another view of what was written
  say("view", clEnqueueNDRangeKernel(queue, reads, 1, NULL, &one, NULL, 0, NULL, NULL));
  clSetKernelArg(writes, 0, sizeof(second), &second);
  clEnqueueNDRangeKernel(queue, writes, 1, NULL, &one, NULL, 0, NULL, NULL);
  clSetKernelArg(reads, 0, sizeof(first), &first);
  say("after_reuse", clEnqueueNDRangeKernel(queue, reads, 1, NULL, &one, NULL, 0, NULL, NULL));
  clSetKernelArg(writes, 0, sizeof(first), &first);
  clEnqueueNDRangeKernel(queue, writes, 1, NULL, &one, NULL, 0, NULL, NULL);
  say("written_again", clEnqueueNDRangeKernel(queue, reads, 1, NULL, &one, NULL, 0, NULL, NULL));
  clFinish(queue);
}

int main(void) {
  cl_platform_id platform;
  cl_int code = 0;
  char words[1 << 16] = {0};
  cl_device_fp_config doubles = 1;
  clGetPlatformIDs(1, &platform, NULL);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
  context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(words), words, NULL);
  say("fp64", strstr(words, "cl_khr_fp64") != NULL);
  say("other_extensions", strstr(words, "cl_khr_byte_addressable_store") != NULL);
  clGetDeviceInfo(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof(doubles), &doubles, NULL);
  say("double_config", (long)doubles);
  say("group", (long)number(CL_DEVICE_MAX_WORK_GROUP_SIZE));
  say("items", (long)number(CL_DEVICE_MAX_WORK_ITEM_SIZES));
  say("local", (long)number(CL_DEVICE_LOCAL_MEM_SIZE));
  say("allocation", (long)number(CL_DEVICE_MAX_MEM_ALLOC_SIZE));

  build("__kernel void k(__global float* x) { x[0] *= 2; }  // double", &code);
  say("float_builds", code == CL_SUCCESS);
  build("#ifdef cl_khr_fp64\n__kernel void k(__global double* x) { x[0] *= 2; }\n#else\n#error none\n#endif\n", &code);
  say("double_builds", code == CL_SUCCESS);
  cl_program vector = build("\n__kernel void k(__global double4* x) { x[0] *= 2; }\n", &code);
  say("double_vector_builds", code == CL_SUCCESS);
  clGetProgramBuildInfo(vector, device, CL_PROGRAM_BUILD_LOG, sizeof(words) - 1, words, NULL);
  say("line_of_error", strstr(words, ".cl:2:") != NULL);

  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, NULL);
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4 << 11, NULL, NULL);
  cl_kernel plain = clCreateKernel(build("__kernel void k(__global float* x) { x[get_global_id(0)] = 1; }", &code), "k", NULL);
  clSetKernelArg(plain, 0, sizeof(buffer), &buffer);
  const size_t all = 2048, most = 1024;
  say("group_of_1024", clEnqueueNDRangeKernel(queue, plain, 1, NULL, &all, &most, 0, NULL, NULL));
  say("group_of_2048", clEnqueueNDRangeKernel(queue, plain, 1, NULL, &all, &all, 0, NULL, NULL));
  cl_kernel shares = clCreateKernel(build("__kernel void k(__global float* x) { __local float s[9000]; s[get_local_id(0)] = 1;"
                                          " barrier(CLK_LOCAL_MEM_FENCE); x[get_global_id(0)] = s[0]; }", &code), "k", NULL);
  clSetKernelArg(shares, 0, sizeof(buffer), &buffer);
  say("local_of_36000", clEnqueueNDRangeKernel(queue, shares, 1, NULL, &all, &most, 0, NULL, NULL));
  clCreateBuffer(context, CL_MEM_READ_WRITE, ((size_t)1 << 30) + 4, NULL, &code);
  say("buffer_of_more_than_1_gib", code);
  const cl_image_format format = {CL_RGBA, CL_FLOAT};
  const cl_image_desc wide = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 16385, .image_height = 1};
  clCreateImage(context, CL_MEM_READ_WRITE, &format, &wide, NULL, &code);
  say("image_of_16385_pixels", code);
  images_over_a_buffer(queue);
  use_after_reuse(queue);
  return clFinish(queue);
}
