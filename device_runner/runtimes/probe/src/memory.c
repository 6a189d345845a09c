#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "functions.h"

/// The beginning of a file of the kernel; empty if it cannot be read.
static void read_node(const char* path, char* out, size_t room) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  size_t size = 0;
  ssize_t part = 0;
  if (file >= 0) {
    while (size + 1 < room && (part = read(file, out + size, room - 1 - size)) > 0) size += (size_t)part;
    close(file);
  }
  out[size] = '\0';
}

/// The number that a text begins with, after spaces; 0 without.
static uint64_t leading_number(const char* text) {
  uint64_t number = 0;
  while (*text == ' ' || *text == '\t') ++text;
  for (; *text >= '0' && *text <= '9'; ++text) number = number * 10 + (uint64_t)(*text - '0');
  return number;
}

static uint64_t process_bytes(void) {
  static const char kPeak[] = "\nVmHWM:";
  char status[4096];
  read_node("/proc/self/status", status, sizeof(status));
  const char* const found = strstr(status, kPeak);
  return found == NULL ? 0 : leading_number(found + sizeof(kPeak) - 1) << 10;
}

static uint64_t gpu_bytes(void) {
  Text path = {0};
  char peak[32];
  text_add(&path, "/sys/class/kgsl/kgsl/proc/");
  text_add_number(&path, (uint64_t)getpid());
  text_append(&path, "/kernel_max", sizeof("/kernel_max"));  // with its zero
  peak[0] = '\0';
  if (!path.failed) read_node(path.data, peak, sizeof(peak));
  text_free(&path);
  return leading_number(peak);
}

void tell_memory(Text* json) {
  text_add(json, "{\"process\": ");
  text_add_number(json, process_bytes());
  text_add(json, ", \"gpu\": ");
  text_add_number(json, gpu_bytes());
  text_add(json, "}");
}
