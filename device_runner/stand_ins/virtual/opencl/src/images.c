#include "images.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kPageBytes = 4096, kUsualPitch = 64 };

typedef struct Backed {
  cl_mem buffer;
  cl_mem writer;  // the image through which it was written last
  void* memory;
  size_t size;
  struct Backed* next;
} Backed;

typedef struct Lying {
  const struct _cl_icd_dispatch* below;
  cl_mem image, buffer;
  size_t width, height, layers;
  int written;
  struct Lying* next;
} Lying;

enum { kMostArguments = 64 };

typedef struct Arguments {
  cl_kernel kernel;
  cl_mem given[kMostArguments];
  struct Arguments* next;
} Arguments;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Backed* all;
static Lying* images;
static Arguments* kernels;
static size_t bytes;

/// PHONE_GPU_COUNTS is a file that gets a letter for each: `b` for a buffer, `i` for an image that lies over one. At once,
/// because a server's processes are killed.
static void count(char letter) {
  const char* name = getenv("PHONE_GPU_COUNTS");
  const int file = name == NULL ? -1 : open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (write(file, &letter, 1) != 1) fprintf(stderr, "phone_gpu: %s cannot be written\n", name);
  close(file);
}

cl_uint pitch_alignment(void) {
  const char* wanted = getenv("PHONE_GPU_PITCH");
  const int value = wanted == NULL ? 0 : atoi(wanted);
  return value > 0 ? (cl_uint)value : kUsualPitch;
}

static cl_mem refuse(cl_int code, cl_int* told) {
  if (told != NULL) *told = code;
  return NULL;
}

static void CL_CALLBACK free_memory(cl_mem buffer, void* entry) {
  Backed* gone = (Backed*)entry;
  (void)buffer;
  pthread_mutex_lock(&mutex);
  for (Backed** at = &all; *at != NULL; at = &(*at)->next) {
    if (*at != gone) continue;
    *at = gone->next;
    break;
  }
  bytes -= gone->size;
  pthread_mutex_unlock(&mutex);
  free(gone->memory);
  free(gone);
}

static void CL_CALLBACK release_buffer(cl_mem image, void* entry) {
  Lying* lying = (Lying*)entry;
  (void)image;
  pthread_mutex_lock(&mutex);
  for (Lying** at = &images; *at != NULL; at = &(*at)->next) {
    if (*at != lying) continue;
    *at = lying->next;
    break;
  }
  pthread_mutex_unlock(&mutex);
  lying->below->clReleaseMemObject(lying->buffer);
  free(lying);
}

static size_t memory_of(const struct _cl_icd_dispatch* below, cl_context context) {
  cl_device_id device = NULL;
  cl_ulong size = 0;
  below->clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(device), &device, NULL);
  below->clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(size), &size, NULL);
  return size;
}

cl_mem buffer_with_memory(const struct _cl_icd_dispatch* below, cl_context context, cl_mem_flags flags, size_t size,
                          void* host, cl_int* told) {
  if (host != NULL || size == 0) return below->clCreateBuffer(context, flags, size, host, told);
  const size_t room = (size + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (bytes + size > memory_of(below, context)) return refuse(CL_MEM_OBJECT_ALLOCATION_FAILURE, told);
  Backed* made = (Backed*)calloc(1, sizeof(*made));
  void* memory = made == NULL ? NULL : aligned_alloc(kPageBytes, room);
  if (memory == NULL) {
    free(made);
    return refuse(CL_OUT_OF_HOST_MEMORY, told);
  }
  const cl_mem_flags kept = flags & ~(cl_mem_flags)CL_MEM_ALLOC_HOST_PTR;
  cl_mem buffer = below->clCreateBuffer(context, kept | CL_MEM_USE_HOST_PTR, size, memory, told);
  if (buffer == NULL || below->clSetMemObjectDestructorCallback(buffer, free_memory, made) != CL_SUCCESS) {
    if (buffer != NULL) below->clReleaseMemObject(buffer);
    free(memory);
    free(made);
    return buffer == NULL ? NULL : refuse(CL_OUT_OF_HOST_MEMORY, told);
  }
  pthread_mutex_lock(&mutex);
  *made = (Backed){buffer, NULL, memory, size, all};
  all = made;
  bytes += size;
  pthread_mutex_unlock(&mutex);
  count('b');
  return buffer;
}

static Backed found(cl_mem buffer) {
  Backed copy = {0};
  pthread_mutex_lock(&mutex);
  for (const Backed* at = all; at != NULL; at = at->next) {
    if (at->buffer == buffer) copy = *at;
  }
  pthread_mutex_unlock(&mutex);
  return copy;
}

static size_t texel_bytes(const cl_image_format* format) {
  switch (format->image_channel_data_type) {
    case CL_FLOAT:
    case CL_SIGNED_INT32:
    case CL_UNSIGNED_INT32:
      return 16;
    case CL_HALF_FLOAT:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
      return 8;
    default:
      return 4;
  }
}

cl_mem image_over_buffer(const struct _cl_icd_dispatch* below, cl_context context, cl_mem_flags flags,
                         const cl_image_format* format, const cl_image_desc* image, cl_int* told) {
  const Backed under = found(image->mem_object);
  const size_t layers = image->image_array_size == 0 ? 1 : image->image_array_size;
  const size_t row = image->image_width * texel_bytes(format), pitch = image->image_row_pitch == 0 ? row : image->image_row_pitch;
  const size_t slice = image->image_slice_pitch == 0 ? pitch * image->image_height : image->image_slice_pitch;
  const size_t needed = slice * layers;
  if (under.buffer == NULL) {
    fprintf(stderr, "phone_gpu: an image over something that is no buffer, or is one no more\n");
    return refuse(CL_INVALID_MEM_OBJECT, told);
  }
  if (pitch < row || pitch % pitch_alignment() != 0) {
    fprintf(stderr, "phone_gpu: an image with rows of %zu bytes has a pitch of %zu; it is to be a multiple of %u\n", row,
            pitch, pitch_alignment());
    return refuse(CL_INVALID_IMAGE_DESCRIPTOR, told);
  }
  if (needed > under.size) {
    fprintf(stderr, "phone_gpu: an image of %zu x %zu x %zu pixels needs %zu bytes, and its buffer has %zu\n",
            image->image_width, image->image_height, layers, needed, under.size);
    return refuse(CL_INVALID_IMAGE_SIZE, told);
  }
  Lying* lying = (Lying*)malloc(sizeof(*lying));
  if (lying == NULL) return refuse(CL_OUT_OF_HOST_MEMORY, told);
  cl_image_desc own = *image;
  own.mem_object = NULL;
  own.image_row_pitch = pitch;
  own.image_slice_pitch = slice;
  cl_mem made = below->clCreateImage(context, flags | CL_MEM_USE_HOST_PTR, format, &own, under.memory, told);
  if (made == NULL) {
    free(lying);
    return NULL;
  }
  pthread_mutex_lock(&mutex);
  *lying = (Lying){below, made, image->mem_object, image->image_width, image->image_height, layers, 0, images};
  images = lying;
  pthread_mutex_unlock(&mutex);
  below->clRetainMemObject(image->mem_object);  // OpenCL: an image keeps its buffer
  below->clSetMemObjectDestructorCallback(made, release_buffer, lying);
  count('i');
  return made;
}

static Lying* image_of(cl_mem memory) {
  Lying* at = images;
  while (at != NULL && at->image != memory) at = at->next;
  return at;
}

static Backed* buffer_of(const Lying* image) {
  Backed* at = all;
  while (at != NULL && at->buffer != image->buffer) at = at->next;
  return at;
}

static Arguments* arguments_of(cl_kernel kernel) {
  Arguments* at = kernels;
  while (at != NULL && at->kernel != kernel) at = at->next;
  return at;
}

void note_argument(cl_kernel kernel, cl_uint place, size_t size, const void* value) {
  if (place >= kMostArguments) return;
  pthread_mutex_lock(&mutex);
  Arguments* known = arguments_of(kernel);
  if (known == NULL && (known = (Arguments*)calloc(1, sizeof(*known))) != NULL) {
    known->kernel = kernel;
    known->next = kernels;
    kernels = known;
  }
  if (known != NULL) known->given[place] = size == sizeof(cl_mem) && value != NULL ? *(const cl_mem*)value : NULL;
  pthread_mutex_unlock(&mutex);
}

static void wrote(Lying* image) {
  Backed* under = buffer_of(image);
  image->written = 1;
  if (under != NULL) under->writer = image->image;
}

void note_write(cl_mem memory) {
  pthread_mutex_lock(&mutex);
  Lying* image = image_of(memory);
  if (image != NULL) wrote(image);
  pthread_mutex_unlock(&mutex);
}

cl_int note_launch(const struct _cl_icd_dispatch* below, cl_kernel kernel) {
  cl_uint count = 0;
  cl_int code = CL_SUCCESS;
  below->clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL);
  pthread_mutex_lock(&mutex);
  const Arguments* known = arguments_of(kernel);
  for (int writes = 0; known != NULL && writes < 2; ++writes) {  // what it reads was there before it writes
    for (cl_uint i = 0; i < count && i < kMostArguments; ++i) {
      Lying* image = known->given[i] == NULL ? NULL : image_of(known->given[i]);
      cl_kernel_arg_access_qualifier access = CL_KERNEL_ARG_ACCESS_NONE;
      if (image == NULL || below->clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof(access), &access,
                                                     NULL) != CL_SUCCESS) {
        continue;
      }
      if (writes && access != CL_KERNEL_ARG_ACCESS_READ_ONLY) wrote(image);
      const Backed* under = buffer_of(image);
      if (writes || access == CL_KERNEL_ARG_ACCESS_WRITE_ONLY || !image->written || under == NULL) continue;
      if (under->writer == image->image) continue;
      char name[256] = "?";
      below->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name), name, NULL);
      fprintf(stderr, "phone_gpu: %s reads an image of %zu x %zu x %zu pixels after another image was written over it\n",
              name, image->width, image->height, image->layers);
      code = CL_INVALID_MEM_OBJECT;
    }
  }
  pthread_mutex_unlock(&mutex);
  return code;
}
