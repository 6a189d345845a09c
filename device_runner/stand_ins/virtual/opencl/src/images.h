// Images over buffers (cl_khr_image2d_from_buffer), as every Adreno from 630 on has them, arrays of images included.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_layer.h>

/// To how many bytes rows of such images are aligned. OpenCL counts pixels; TVM's runtime takes the number for bytes, and
/// Adreno accepts what it makes of it.
cl_uint pitch_alignment(void);

/// A buffer with memory of its own, on which images can be laid. Any other kind of buffer goes to the driver as it is.
cl_mem buffer_with_memory(const struct _cl_icd_dispatch* below, cl_context context, cl_mem_flags flags, size_t size,
                          void* host, cl_int* told);

/// An image over a buffer of `buffer_with_memory`. What OpenCL forbids of it is refused, and said on standard error.
cl_mem image_over_buffer(const struct _cl_icd_dispatch* below, cl_context context, cl_mem_flags flags,
                         const cl_image_format* format, const cl_image_desc* image, cl_int* told);

/// Notes what a kernel is given.
void note_argument(cl_kernel kernel, cl_uint place, size_t size, const void* value);

/// Notes what a kernel that is about to be launched reads and writes. CL_INVALID_MEM_OBJECT, and a line on standard error,
/// if it reads an image whose memory another image has taken since it was written: its content is gone.
cl_int note_launch(const struct _cl_icd_dispatch* below, cl_kernel kernel);

/// Notes that a command writes an image.
void note_write(cl_mem image);
