#include "tell.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "quote.h"

static int telling_to = 1;

void tell_to(int fd) { telling_to = fd; }

static void send_line(Text* line) {
  text_add(line, "\n");
  if (line->failed || write_all(telling_to, line->data, line->size) != 0) _exit(3);
  text_free(line);
}

static Text begun(const char* name) {
  Text line = {0};
  quote(&line, name, strlen(name));
  text_add(&line, ": ");
  return line;
}

void tell_json(const char* name, const char* json, size_t size) {
  Text line = begun(name);
  text_append(&line, json, size);
  send_line(&line);
}

void tell_text(const char* name, const char* value, size_t size) {
  Text line = begun(name);
  quote(&line, value, size);
  send_line(&line);
}

void tell_bytes(const char* name, const char* data, size_t size) {
  Text line = begun(name);
  text_add(&line, "\"");
  add_hex(&line, data, size);
  text_add(&line, "\"");
  send_line(&line);
}

void tell_doing(const char* doing) { tell_text("doing", doing, strlen(doing)); }

static void add_number(Text* line, double value) {
  char digits[32];
  snprintf(digits, sizeof(digits), "%.17g", value);
  text_add(line, digits);
}

void tell_bool(const char* name, int value) { tell_json(name, value ? "true" : "false", value ? 4 : 5); }

void tell_number(const char* name, double value) {
  Text line = begun(name);
  add_number(&line, value);
  send_line(&line);
}

void tell_numbers(const char* name, const double* values, size_t count) {
  Text line = begun(name);
  text_add(&line, "[");
  for (size_t i = 0; i < count; ++i) {
    if (i) text_add(&line, ", ");
    add_number(&line, values[i]);
  }
  text_add(&line, "]");
  send_line(&line);
}

_Noreturn void tell_error(const char* text, size_t size) {
  tell_text("error", text, size);
  _exit(0);
}

_Noreturn void tell_broken(const char* what, const char* which) {
  Text text = {0};
  text_add(&text, what);
  text_add(&text, ": ");
  text_add(&text, which);
  tell_text("broken", text.data, text.size);
  _exit(telling_to == 1);  // without a process that is watched there is no object around it
}
