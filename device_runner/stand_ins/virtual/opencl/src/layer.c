// A layer of the OpenCL loader (OPENCL_LAYERS) that gives whatever driver lies below the limits of an Adreno 7xx.
//
// The driver's own limits stay where they are lower. What an Adreno refuses is refused with the code that OpenCL has for
// it. Limits: clinfo of an Adreno 740 and 750 (CodeLinaro/llama.cpp #17, Oblomov/clinfo #92). There is no arithmetic in
// double precision on any Adreno.
#include <stdlib.h>
#include <string.h>

#include "images.h"

enum {
  kMostItems = 1024,
  kMostPixels = 16384,
  kMostLayers = 2048,
  kLocalBytes = 32 << 10,
  kAllocationBytes = 1 << 30,
};

static const char kDouble[] = "cl_khr_fp64", kImages[] = "cl_khr_image2d_from_buffer";
/// Before the source of every program: the extension's macro is gone, and so are the types that come with it.
static const char kNoDouble[] =
    "#undef cl_khr_fp64\n#pragma GCC poison double double2 double3 double4 double8 double16\n#line 1\n";

static const struct _cl_icd_dispatch* below;
static struct _cl_icd_dispatch ours;

static cl_int answer(const void* value, size_t size, size_t room, void* out, size_t* told) {
  if (out != NULL && room < size) return CL_INVALID_VALUE;
  if (out != NULL) memcpy(out, value, size);
  if (told != NULL) *told = size;
  return CL_SUCCESS;
}

/// Takes each `word` out of a list that is separated by spaces.
static void without(char* list, const char* word) {
  const size_t length = strlen(word);
  for (char* at = list; (at = strstr(at, word)) != NULL;) {
    const int whole = (at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0');
    const size_t cut = length + (at[length] == ' ');
    if (whole) memmove(at, at + cut, strlen(at + cut) + 1);
    if (!whole) at += length;
  }
}

static cl_int extensions(cl_device_id device, size_t room, void* out, size_t* told) {
  size_t size = 0;
  cl_int code = below->clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &size);
  char* list = code == CL_SUCCESS ? (char*)calloc(size + sizeof(kImages) + 1, 1) : NULL;
  if (list == NULL) return code == CL_SUCCESS ? CL_OUT_OF_HOST_MEMORY : code;
  code = below->clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, size, list, NULL);
  without(list, kDouble);
  if (strstr(list, kImages) == NULL) strcat(strcat(list, *list == '\0' || list[strlen(list) - 1] == ' ' ? "" : " "), kImages);
  if (code == CL_SUCCESS) code = answer(list, strlen(list) + 1, room, out, told);
  free(list);
  return code;
}

/// What an Adreno answers at most; 0 if it is not limited here.
static cl_ulong limit(cl_device_info what) {
  switch (what) {
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
      return kMostItems;
    case CL_DEVICE_IMAGE2D_MAX_WIDTH:
    case CL_DEVICE_IMAGE2D_MAX_HEIGHT:
      return kMostPixels;
    case CL_DEVICE_IMAGE_MAX_ARRAY_SIZE:
      return kMostLayers;
    case CL_DEVICE_LOCAL_MEM_SIZE:
      return kLocalBytes;
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
      return kAllocationBytes;
    default:
      return 0;
  }
}

/// PHONE_GPU_MEMORY is how much memory the device tells of itself, in bytes; it has no less of it.
static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t room, void* out, size_t* told) {
  size_t size = 0;
  if (what == CL_DEVICE_EXTENSIONS) return extensions(device, room, out, told);
  if (what == CL_DEVICE_IMAGE_PITCH_ALIGNMENT || what == CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT) {
    const cl_uint alignment = pitch_alignment();
    return answer(&alignment, sizeof(alignment), room, out, told);
  }
  if (what == CL_DEVICE_GLOBAL_MEM_SIZE && getenv("PHONE_GPU_MEMORY") != NULL) {
    const cl_ulong memory = strtoull(getenv("PHONE_GPU_MEMORY"), NULL, 10);
    return answer(&memory, sizeof(memory), room, out, told);
  }
  const cl_int code = below->clGetDeviceInfo(device, what, room, out, &size);
  if (told != NULL && code == CL_SUCCESS) *told = size;
  if (code != CL_SUCCESS || out == NULL) return code;
  if (what == CL_DEVICE_DOUBLE_FP_CONFIG || what == CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE ||
      what == CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE) {
    memset(out, 0, size);
  } else if (limit(what) != 0) {  // one or several size_t or cl_ulong
    for (cl_ulong* value = (cl_ulong*)out; value + 1 <= (cl_ulong*)((char*)out + size); ++value) {
      if (*value > limit(what)) *value = limit(what);
    }
  }
  return code;
}

static cl_int CL_API_CALL group_info(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t room,
                                     void* out, size_t* told) {
  const cl_int code = below->clGetKernelWorkGroupInfo(kernel, device, what, room, out, told);
  if (code == CL_SUCCESS && what == CL_KERNEL_WORK_GROUP_SIZE && out != NULL && *(size_t*)out > kMostItems) {
    *(size_t*)out = kMostItems;
  }
  return code;
}

static cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char** texts,
                                             const size_t* lengths, cl_int* told) {
  if (texts == NULL || count == 0) return below->clCreateProgramWithSource(context, count, texts, lengths, told);
  const char** all = (const char**)calloc(count + 1, sizeof(*all));
  size_t* sizes = (size_t*)calloc(count + 1, sizeof(*sizes));
  cl_program made = NULL;
  if (all == NULL || sizes == NULL) {
    if (told != NULL) *told = CL_OUT_OF_HOST_MEMORY;
  } else {
    all[0] = kNoDouble;
    memcpy(all + 1, texts, count * sizeof(*texts));
    if (lengths != NULL) memcpy(sizes + 1, lengths, count * sizeof(*lengths));
    made = below->clCreateProgramWithSource(context, count + 1, all, sizes, told);  // a length of 0: up to the zero
  }
  free(all);
  free(sizes);
  return made;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size, void* host, cl_int* told) {
  if (size <= kAllocationBytes) return buffer_with_memory(below, context, flags, size, host, told);
  if (told != NULL) *told = CL_INVALID_BUFFER_SIZE;
  return NULL;
}

static cl_mem CL_API_CALL create_image(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                                       const cl_image_desc* image, void* host, cl_int* told) {
  if (image == NULL || (image->image_width <= kMostPixels && image->image_height <= kMostPixels &&
                        image->image_array_size <= kMostLayers)) {
    if (image != NULL && format != NULL && image->mem_object != NULL && image->image_type != CL_MEM_OBJECT_IMAGE1D_BUFFER) {
      return image_over_buffer(below, context, flags, format, image, told);
    }
    return below->clCreateImage(context, flags, format, image, host, told);
  }
  if (told != NULL) *told = CL_INVALID_IMAGE_SIZE;
  return NULL;
}

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                         const size_t* offset, const size_t* global, const size_t* local,
                                         cl_uint count, const cl_event* events, cl_event* event) {
  size_t items = 1;
  for (cl_uint i = 0; local != NULL && i < dimensions; ++i) items *= local[i];
  if (items > kMostItems) return CL_INVALID_WORK_GROUP_SIZE;
  cl_device_id device = NULL;
  cl_ulong bytes = 0;
  if (below->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL) == CL_SUCCESS &&
      below->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof(bytes), &bytes, NULL) ==
          CL_SUCCESS &&
      bytes > kLocalBytes) {
    return CL_OUT_OF_RESOURCES;
  }
  const cl_int stale = note_launch(below, kernel);
  if (stale != CL_SUCCESS) return stale;
  return below->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count, events, event);
}

/// Asks the compiler to keep which images a kernel reads and writes; otherwise it need not tell.
static cl_int CL_API_CALL build_program(cl_program program, cl_uint count, const cl_device_id* devices,
                                        const char* options, void(CL_CALLBACK* notify)(cl_program, void*), void* data) {
  static const char kept[] = " -cl-kernel-arg-info";
  const char* const own = options == NULL ? "" : options;
  char* const more = (char*)malloc(strlen(own) + sizeof(kept));
  if (more == NULL) return CL_OUT_OF_HOST_MEMORY;
  strcat(strcpy(more, own), kept);
  const cl_int code = below->clBuildProgram(program, count, devices, more, notify, data);
  free(more);
  return code;
}

static cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint place, size_t size, const void* value) {
  note_argument(kernel, place, size, value);
  return below->clSetKernelArg(kernel, place, size, value);
}

static cl_int CL_API_CALL write_image(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t* origin,
                                      const size_t* region, size_t row, size_t slice, const void* from, cl_uint count,
                                      const cl_event* events, cl_event* event) {
  note_write(image);
  return below->clEnqueueWriteImage(queue, image, blocking, origin, region, row, slice, from, count, events, event);
}

static cl_int CL_API_CALL copy_image(cl_command_queue queue, cl_mem from, cl_mem to, const size_t* origin,
                                     const size_t* target, const size_t* region, cl_uint count, const cl_event* events,
                                     cl_event* event) {
  note_write(to);
  return below->clEnqueueCopyImage(queue, from, to, origin, target, region, count, events, event);
}

static cl_int CL_API_CALL copy_into_image(cl_command_queue queue, cl_mem from, cl_mem image, size_t offset,
                                          const size_t* origin, const size_t* region, cl_uint count,
                                          const cl_event* events, cl_event* event) {
  note_write(image);
  return below->clEnqueueCopyBufferToImage(queue, from, image, offset, origin, region, count, events, event);
}

cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t room, void* out, size_t* told) {
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  return what == CL_LAYER_API_VERSION ? answer(&version, sizeof(version), room, out, told) : CL_INVALID_VALUE;
}

cl_int CL_API_CALL clInitLayer(cl_uint count, const struct _cl_icd_dispatch* target, cl_uint* entries,
                               const struct _cl_icd_dispatch** layer) {
  (void)count;
  below = target;
  ours.clGetDeviceInfo = device_info;
  ours.clGetKernelWorkGroupInfo = group_info;
  ours.clCreateProgramWithSource = create_program;
  ours.clCreateBuffer = create_buffer;
  ours.clCreateImage = create_image;
  ours.clEnqueueNDRangeKernel = enqueue_kernel;
  ours.clBuildProgram = build_program;
  ours.clSetKernelArg = set_argument;
  ours.clEnqueueWriteImage = write_image;
  ours.clEnqueueCopyImage = copy_image;
  ours.clEnqueueCopyBufferToImage = copy_into_image;
  *layer = &ours;
  *entries = sizeof(ours) / sizeof(void*);
  return CL_SUCCESS;
}
