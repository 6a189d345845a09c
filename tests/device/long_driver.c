// A layer of the OpenCL loader (OPENCL_LAYERS): all devices have a driver version of 200 characters, as an Adreno 630 has.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_layer.h>
#include <string.h>

static const struct _cl_icd_dispatch* below;
static struct _cl_icd_dispatch ours;

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t room, void* out, size_t* told) {
  if (what != CL_DRIVER_VERSION) return below->clGetDeviceInfo(device, what, room, out, told);
  char version[201];
  memset(version, 'v', 200);
  version[200] = '\0';
  if (told != NULL) *told = sizeof(version);
  if (out != NULL && room < sizeof(version)) return CL_INVALID_VALUE;
  if (out != NULL) memcpy(out, version, sizeof(version));
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t room, void* out, size_t* told) {
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  if (out != NULL && room >= sizeof(version)) memcpy(out, &version, sizeof(version));
  if (told != NULL) *told = sizeof(version);
  return CL_SUCCESS;
}

cl_int CL_API_CALL clInitLayer(cl_uint count, const struct _cl_icd_dispatch* target, cl_uint* entries,
                               const struct _cl_icd_dispatch** layer) {
  (void)count;
  below = target;
  ours.clGetDeviceInfo = device_info;
  *layer = &ours;
  *entries = sizeof(ours) / sizeof(void*);
  return CL_SUCCESS;
}
