#include "values.h"

#include <string.h>

TVMFFIAny none(int32_t kind) {
  TVMFFIAny value;
  memset(&value, 0, sizeof(value));
  value.type_index = kind;
  return value;
}

TVMFFIAny an_int(int64_t value) {
  TVMFFIAny any = none(kTVMFFIInt);
  any.v_int64 = value;
  return any;
}

TVMFFIAny a_text(const char* value) {
  TVMFFIAny any = none(kTVMFFIRawStr);
  any.v_c_str = value;
  return any;
}

TVMFFIAny a_pointer(void* value) {
  TVMFFIAny any = none(kTVMFFIOpaquePtr);
  any.v_ptr = value;
  return any;
}

TVMFFIAny some_bytes(TVMFFIByteArray* value) {
  TVMFFIAny any = none(kTVMFFIByteArrayPtr);
  any.v_ptr = value;
  return any;
}

TVMFFIAny a_tensor(DLTensor* value) {
  TVMFFIAny any = none(kTVMFFIDLTensorPtr);
  any.v_ptr = value;
  return any;
}

TVMFFIAny a_device(int kind) {
  TVMFFIAny any = none(kTVMFFIDevice);
  any.v_device.device_type = (DLDeviceType)kind;
  return any;
}

void release(TVMFFIAny value) {
  if (value.type_index >= kTVMFFIStaticObjectBegin) TVMFFIObjectDecRef(value.v_obj);
}

TVMFFIByteArray content_of(const TVMFFIAny* value) {
  TVMFFIByteArray content = {NULL, 0};
  if (value->type_index == kTVMFFIStr || value->type_index == kTVMFFIBytes) {
    content = *(const TVMFFIByteArray*)((const char*)value->v_obj + sizeof(TVMFFIObject));
  } else if (value->type_index == kTVMFFISmallStr || value->type_index == kTVMFFISmallBytes) {
    content.data = value->v_bytes;
    content.size = value->small_str_len;
  }
  return content;
}
