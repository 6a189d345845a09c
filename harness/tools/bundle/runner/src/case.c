#include "case.h"

#include <stdlib.h>
#include <string.h>

#include "quote.h"
#include "tell.h"

static const struct {
  const char* name;
  size_t offset;
} NUMBERS[] = {
#define NUMBER(name) {#name, offsetof(Protocol, name)},
    PROTOCOL_NUMBERS(NUMBER)
#undef NUMBER
};

/// What is a word and one text.
static const struct {
  const char* name;
  size_t offset;
} TEXTS[] = {
    {"loader", offsetof(Case, loader)},
    {"probe", offsetof(Case, probe)},
    {"peaks", offsetof(Case, peaks)},
    {"library", offsetof(Case, artifact.library)},
    {"entry", offsetof(Case, artifact.entry)},
    {"host_entry", offsetof(Case, artifact.host_entry)},
    {"binaries", offsetof(Case, binaries)},
    {"tuning_cache", offsetof(Case, tuning_cache)},
    {"reference", offsetof(Case, reference.library)},
    {"reference_binaries", offsetof(Case, reference_binaries)},
    {"reference_turns", offsetof(Case, reference_turns)},
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
static void read_tensor(char* rest, Tensor* tensor, int with_tolerance) {
  tensor->dtype = dtype_of(word(&rest));
  const double ndim = number(&rest);
  if (ndim < 0 || ndim > MOST_AXES) tell_broken("a tensor has too many axes", rest);
  tensor->ndim = (int)ndim;
  for (int axis = 0; axis < tensor->ndim; ++axis) tensor->shape[axis] = (int64_t)number(&rest);
  if (with_tolerance) tensor->tolerance = number(&rest);
  tensor->file = rest;
}

static Tensor* next_tensor(Tensor* tensors, size_t* count) {
  if (*count == MOST_TENSORS) tell_broken("there are too many tensors", "in the turn's file");
  return &tensors[(*count)++];
}

/// SHARE SAMPLES
static void read_share(char* rest, Share* shares, size_t* count) {
  if (*count == MOST_SHARES) tell_broken("there are too many shares", rest);
  Share* share = &shares[(*count)++];
  share->share = number(&rest);
  share->samples = number(&rest);
}

static void read_line(char* line, Case* into) {
  char* rest = line;
  const char* what = word(&rest);
  if (what == NULL) return;
  if (strcmp(what, "load") == 0) {
    if (into->library_count == MOST_LIBRARIES) tell_broken("there are too many libraries", rest);
    into->libraries[into->library_count++] = rest;
  } else if (strcmp(what, "vdevices") == 0) {
    into->artifact.vdevices = number(&rest);
  } else if (strcmp(what, "input") == 0) {
    read_tensor(rest, next_tensor(into->inputs, &into->input_count), 0);
  } else if (strcmp(what, "other") == 0) {
    read_tensor(rest, next_tensor(into->others, &into->other_count), 0);
  } else if (strcmp(what, "answer") == 0) {
    read_tensor(rest, next_tensor(into->answers, &into->answer_count), 1);
  } else if (strcmp(what, "labelled") == 0) {
    into->labelled_count = number(&rest);
    read_tensor(rest, &into->labelled, 0);
  } else if (strcmp(what, "try") == 0) {
    read_share(rest, into->tried, &into->tried_count);
  } else if (strcmp(what, "play") == 0) {
    read_share(rest, into->played, &into->played_count);
  } else {
    for (size_t i = 0; i < sizeof(TEXTS) / sizeof(*TEXTS); ++i) {
      if (strcmp(what, TEXTS[i].name) == 0) {
        *(const char**)((char*)into + TEXTS[i].offset) = rest;
        return;
      }
    }
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
  into->reference.entry = into->artifact.entry;
  into->reference.host_entry = into->artifact.host_entry;
  into->reference.vdevices = 1;
}

size_t bytes_of(const int64_t* shape, int ndim, DLDataType dtype) {
  size_t count = 1;
  for (int axis = 0; axis < ndim; ++axis) count *= (size_t)shape[axis];
  return count * (((size_t)dtype.bits * dtype.lanes + 7) / 8);
}
