#include "functions.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

enum { kMostPlatforms = 16, kMostDevices = 16, kMostBytes = 1 << 20, kMostVersions = 64 };

typedef struct {
  const char* key;
  cl_uint what;
} Fact;

static const Fact kTexts[] = {
    {"name", CL_DEVICE_NAME},
    {"version", CL_DEVICE_VERSION},
    {"driver_version", CL_DRIVER_VERSION},
    {"c_version", CL_DEVICE_OPENCL_C_VERSION},
    {"extensions", CL_DEVICE_EXTENSIONS},
};

static const Fact kNumbers[] = {
    {"image2d_max_width", CL_DEVICE_IMAGE2D_MAX_WIDTH},
    {"image2d_max_height", CL_DEVICE_IMAGE2D_MAX_HEIGHT},
    {"image_max_array_layers", CL_DEVICE_IMAGE_MAX_ARRAY_SIZE},
    {"image_max_buffer_pixels", CL_DEVICE_IMAGE_MAX_BUFFER_SIZE},
    {"image_pitch_alignment_pixels", CL_DEVICE_IMAGE_PITCH_ALIGNMENT},
    {"max_work_group_size", CL_DEVICE_MAX_WORK_GROUP_SIZE},
    {"compute_units", CL_DEVICE_MAX_COMPUTE_UNITS},
    {"max_clock_mhz", CL_DEVICE_MAX_CLOCK_FREQUENCY},
    {"global_memory_bytes", CL_DEVICE_GLOBAL_MEM_SIZE},
    {"local_memory_bytes", CL_DEVICE_LOCAL_MEM_SIZE},
    {"max_allocation_bytes", CL_DEVICE_MAX_MEM_ALLOC_SIZE},
    {"timer_resolution_ns", CL_DEVICE_PROFILING_TIMER_RESOLUTION},
    {"queue_properties", CL_DEVICE_QUEUE_PROPERTIES},
};

static void key(Text* json, const char* name) {
  text_add(json, ", \"");
  text_add(json, name);
  text_add(json, "\": ");
}

/// A text, to be freed; NULL of a driver that does not tell. `get` is clGetPlatformInfo or clGetDeviceInfo: same signature.
static char* device_text(GetDeviceInfo get, void* object, cl_uint what) {
  size_t size = 0;
  if (get((cl_device_id)object, what, 0, NULL, &size) != CL_SUCCESS || size > kMostBytes) return NULL;
  char* value = size ? (char*)calloc(size + 1, 1) : NULL;
  if (value != NULL && get((cl_device_id)object, what, size, value, NULL) == CL_SUCCESS) return value;
  free(value);
  return NULL;
}

static void add_text(Text* json, GetDeviceInfo get, void* object, cl_uint what) {
  char* value = device_text(get, object, what);
  if (value != NULL) {
    text_add_quoted(json, value, strlen(value), 255);
  } else {
    text_add(json, "null");
  }
  free(value);
}

/// Numbers of 4 or 8 bytes; how many the driver told, 0 if it failed.
static size_t numbers(GetDeviceInfo get, cl_device_id device, cl_uint what, size_t width, uint64_t* values, size_t most) {
  unsigned char raw[64] = {0};
  size_t size = 0;
  if (get(device, what, sizeof(raw), raw, &size) != CL_SUCCESS || size > sizeof(raw)) return 0;
  if (width == 0) width = size;  // a single number
  if (width != 4 && width != 8) return 0;
  const size_t count = size / width < most ? size / width : most;
  for (size_t i = 0; i < count; ++i) {
    values[i] = 0;
    memcpy(&values[i], raw + i * width, width);  // little-endian on every processor that this is built for
  }
  return count;
}

/// A number; null of a driver that does not tell, or says 0, which no limit of OpenCL is.
static void add_number(Text* json, GetDeviceInfo get, cl_device_id device, cl_uint what) {
  uint64_t value = 0;
  if (numbers(get, device, what, 0, &value, 1) == 1 && value != 0) {
    text_add_number(json, value);
  } else {
    text_add(json, "null");
  }
}

static void add_boolean(Text* json, GetDeviceInfo get, cl_device_id device, cl_uint what, uint64_t mask) {
  uint64_t value = 0;
  const int told = numbers(get, device, what, 0, &value, 1) == 1;
  text_add(json, !told ? "null" : (value & mask) != 0 ? "true" : "false");
}

static void add_work_item_sizes(Text* json, GetDeviceInfo get, cl_device_id device) {
  uint64_t sizes[3] = {0};
  const size_t count = numbers(get, device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(size_t), sizes, 3);
  text_add_numbers(json, sizes, count);
}

/// Whether a driver's list of extensions, which may be long and need not be a list, has this word.
static int has_extension(GetDeviceInfo get, cl_device_id device, const char* word) {
  char* list = device_text(get, device, CL_DEVICE_EXTENSIONS);
  const size_t length = strlen(word);
  int found = 0;
  for (const char* at = list; at != NULL && !found && (at = strstr(at, word)) != NULL; at += length) {
    found = (at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0');
  }
  free(list);
  return found;
}

/// OpenCL ML's interface versions in its own order; null where they cannot be asked.
static void add_clml(Text* json, GetDeviceInfo get, cl_platform_id platform, cl_device_id device) {
  static const char* const name = "clQueryMLInterfaceVersionsQCOM";
  cl_int major[kMostVersions], minor[kMostVersions];
  cl_uint count = 0;
  QueryMLInterfaceVersionsQCOM query = NULL;
  if (has_extension(get, device, "cl_qcom_ml_ops")) {
    query = (QueryMLInterfaceVersionsQCOM)opencl_function(name);  // as TVM's runtime, which is linked to it
    const GetExtensionFunctionAddressForPlatform address =
        (GetExtensionFunctionAddressForPlatform)opencl_function("clGetExtensionFunctionAddressForPlatform");
    if (query == NULL && address != NULL) query = (QueryMLInterfaceVersionsQCOM)address(platform, name);
  }
  if (query == NULL || query(NULL, NULL, 0, &count) != CL_SUCCESS || count == 0 || count > kMostVersions ||
      query(major, minor, count, NULL) != CL_SUCCESS) {
    text_add(json, "null");
    return;
  }
  text_add(json, "[");
  for (cl_uint i = 0; i < count; ++i) {
    text_add(json, i ? ", \"" : "\"");
    text_add_number(json, (uint64_t)(uint32_t)major[i]);
    text_add(json, ".");
    text_add_number(json, (uint64_t)(uint32_t)minor[i]);
    text_add(json, "\"");
  }
  text_add(json, "]");
}

static void add_device(Text* json, cl_platform_id platform, cl_device_id device) {
  const GetDeviceInfo get = (GetDeviceInfo)opencl_function("clGetDeviceInfo");
  const GetDeviceInfo of_platform = (GetDeviceInfo)opencl_function("clGetPlatformInfo");
  text_add(json, "{\"platform\": ");
  add_text(json, of_platform, platform, CL_PLATFORM_NAME);
  key(json, "platform_version");
  add_text(json, of_platform, platform, CL_PLATFORM_VERSION);
  for (size_t i = 0; i < sizeof(kTexts) / sizeof(*kTexts); ++i) {
    key(json, kTexts[i].key);
    add_text(json, get, device, kTexts[i].what);
  }
  for (size_t i = 0; i < sizeof(kNumbers) / sizeof(*kNumbers); ++i) {
    key(json, kNumbers[i].key);
    add_number(json, get, device, kNumbers[i].what);
  }
  key(json, "max_work_item_sizes");
  add_work_item_sizes(json, get, device);
  key(json, "gpu");
  add_boolean(json, get, device, CL_DEVICE_TYPE, CL_DEVICE_TYPE_GPU);
  key(json, "images");
  add_boolean(json, get, device, CL_DEVICE_IMAGE_SUPPORT, 1);
  key(json, "clml_versions");
  add_clml(json, get, platform, device);
  text_add(json, "}");
}

/// The devices of every platform; what went wrong, or NULL.
static const char* add_devices(Text* json) {
  const GetPlatformIDs get_platforms = (GetPlatformIDs)opencl_function("clGetPlatformIDs");
  const GetDeviceIDs get_devices = (GetDeviceIDs)opencl_function("clGetDeviceIDs");
  cl_platform_id platforms[kMostPlatforms];
  cl_uint platform_count = 0;
  if (opencl_library() == NULL) return "there is no OpenCL library";
  if (get_platforms == NULL || get_devices == NULL || opencl_function("clGetPlatformInfo") == NULL ||
      opencl_function("clGetDeviceInfo") == NULL) {
    return "the OpenCL library lacks functions of OpenCL 1.0";
  }
  if (get_platforms(kMostPlatforms, platforms, &platform_count) != CL_SUCCESS) return "OpenCL has no platform";
  size_t found = 0;
  for (cl_uint p = 0; p < platform_count && p < kMostPlatforms; ++p) {
    cl_device_id devices[kMostDevices];
    cl_uint device_count = 0;
    if (get_devices(platforms[p], CL_DEVICE_TYPE_ALL, kMostDevices, devices, &device_count) != CL_SUCCESS) continue;
    for (cl_uint d = 0; d < device_count && d < kMostDevices; ++d) {
      if (found++) text_add(json, ", ");
      add_device(json, platforms[p], devices[d]);
    }
  }
  return found ? NULL : "no platform of OpenCL has a device";
}

typedef struct {
  Text* json;
  int found;
} Files;

/// Files that OpenCL consists of, by their names: the loader or driver itself, and what Adreno's driver brings along.
/// TVM's own and ours, this one included, have such names, too.
static int add_file(struct dl_phdr_info* info, size_t size, void* context) {
  static const char* const parts[] = {"OpenCL", "opencl", "pocl",     "CLML",    "clml",
                                      "adreno", "libCB.", "llvm-qcom", "libgsl.", "libkcl."};
  Files* files = (Files*)context;
  const char* slash = info->dlpi_name == NULL ? NULL : strrchr(info->dlpi_name, '/');
  (void)size;
  if (slash == NULL || strstr(slash, "tvm") != NULL || strstr(slash, "adreno_bench") != NULL) return 0;
  if (strstr(slash, ".probe.so") != NULL) return 0;
  for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); ++i) {
    if (strstr(slash, parts[i]) == NULL) continue;
    if (files->found++) text_add(files->json, ", ");
    text_add_quoted(files->json, info->dlpi_name, strlen(info->dlpi_name), 255);
    break;
  }
  return 0;
}

void describe(Text* json) {
  text_add(json, "{\"devices\": [");
  const char* problem = add_devices(json);
  text_add(json, "], \"files\": [");
  Files files = {json, 0};
  dl_iterate_phdr(add_file, &files);
  text_add(json, "], \"problem\": ");
  text_add_quoted(json, problem ? problem : "", problem ? strlen(problem) : 0, 255);
  text_add(json, "}");
}
