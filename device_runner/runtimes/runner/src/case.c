#include "case.h"

#include <stdlib.h>
#include <string.h>

#include "quote.h"
#include "tell.h"

static const struct {
  const char* name;
  size_t offset;
} NUMBERS[] = {
#define NUMBER(name) {#name, offsetof(Protocol, name)}
    NUMBER(timeout_s),     NUMBER(seconds),       NUMBER(samples),         NUMBER(quick),       NUMBER(quick_samples),
    NUMBER(steady_s),      NUMBER(sampled_s),     NUMBER(fewest),          NUMBER(fewest_device), NUMBER(agree_within),
    NUMBER(warm_up_share), NUMBER(device_share),  NUMBER(warm_up_kept),    NUMBER(most_inferences),
    NUMBER(shortest_ms),   NUMBER(call_share),    NUMBER(batch_share),     NUMBER(batch_repeat),
    NUMBER(smallest_batch), NUMBER(largest_batch),
#undef NUMBER
};

/// The next word of a line, which it is cut off from; NULL if there is none.
static char* word(char** rest) {
  char* found = *rest;
  if (found == NULL || *found == 0) return NULL;
  char* end = strchr(found, ' ');
  if (end != NULL) *end = 0;
  *rest = end ? end + 1 : found + strlen(found);
  return found;
}

static double number(char** rest) {
  char* found = word(rest);
  char* end = found;
  const double value = found ? strtod(found, &end) : 0;
  if (found == NULL || end == found || *end != 0) tell_broken("a number is missing in the turn's file", found ? found : "");
  return value;
}

static DLDataType dtype_of(const char* name) {
  static const struct {
    const char* name;
    uint8_t code, bits;
  } KNOWN[] = {{"float32", kDLFloat, 32}, {"float16", kDLFloat, 16}, {"float64", kDLFloat, 64}, {"int8", kDLInt, 8},
               {"int16", kDLInt, 16},     {"int32", kDLInt, 32},     {"int64", kDLInt, 64},     {"uint8", kDLUInt, 8},
               {"uint16", kDLUInt, 16},   {"uint32", kDLUInt, 32},   {"uint64", kDLUInt, 64},   {"bool", kDLBool, 8}};
  for (size_t i = 0; name && i < sizeof(KNOWN) / sizeof(*KNOWN); ++i) {
    if (strcmp(name, KNOWN[i].name) == 0) return (DLDataType){KNOWN[i].code, KNOWN[i].bits, 1};
  }
  tell_broken("this runner knows no such type of number", name ? name : "");
}

/// TYPE NDIM SIZE... [TOLERANCE] FILE
static void read_tensor(char* rest, Tensor* tensors, size_t* count, int with_tolerance) {
  if (*count == MOST_TENSORS) tell_broken("there are too many tensors", rest);
  Tensor* tensor = &tensors[(*count)++];
  tensor->dtype = dtype_of(word(&rest));
  const double ndim = number(&rest);
  if (ndim < 0 || ndim > MOST_AXES) tell_broken("a tensor has too many axes", rest);
  tensor->ndim = (int)ndim;
  for (int axis = 0; axis < tensor->ndim; ++axis) tensor->shape[axis] = (int64_t)number(&rest);
  if (with_tolerance) tensor->tolerance = number(&rest);
  tensor->file = rest;
}

static void read_line(char* line, Case* into) {
  char* rest = line;
  const char* what = word(&rest);
  if (what == NULL) return;
  if (strcmp(what, "load") == 0) {
    if (into->library_count == MOST_LIBRARIES) tell_broken("there are too many libraries", rest);
    into->libraries[into->library_count++] = rest;
  } else if (strcmp(what, "probe") == 0) {
    into->probe = rest;
  } else if (strcmp(what, "library") == 0) {
    into->library = rest;
  } else if (strcmp(what, "entry") == 0) {
    into->entry = rest;
  } else if (strcmp(what, "host_entry") == 0) {
    into->host_entry = rest;
  } else if (strcmp(what, "vdevices") == 0) {
    into->vdevices = number(&rest);
  } else if (strcmp(what, "input") == 0) {
    read_tensor(rest, into->inputs, &into->input_count, 0);
  } else if (strcmp(what, "answer") == 0) {
    read_tensor(rest, into->answers, &into->answer_count, 1);
  } else {
    for (size_t i = 0; i < sizeof(NUMBERS) / sizeof(*NUMBERS); ++i) {
      if (strcmp(what, NUMBERS[i].name) == 0) {
        *(double*)((char*)&into->protocol + NUMBERS[i].offset) = number(&rest);
        return;
      }
    }
    tell_broken("the turn's file has a line that this runner does not know", what);
  }
}

void read_case(const char* path, Case* into) {
  Text content = read_file(path, 0);  // the case points into it
  if (content.data == NULL) tell_broken("the turn's file cannot be read", path);
  for (char* line = content.data; line != NULL && *line;) {
    char* end = strchr(line, '\n');
    if (end != NULL) *end = 0;
    read_line(line, into);
    line = end ? end + 1 : NULL;
  }
}

size_t bytes_of(const int64_t* shape, int ndim, DLDataType dtype) {
  size_t count = 1;
  for (int axis = 0; axis < ndim; ++axis) count *= (size_t)shape[axis];
  return count * (((size_t)dtype.bits * dtype.lanes + 7) / 8);
}
