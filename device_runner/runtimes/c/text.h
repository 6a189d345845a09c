// A text that grows, and values as JSON in it.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
  char* data;
  size_t size;
  size_t room;
  int failed;  // there was no memory
} Text;

void text_free(Text* text);
void text_append(Text* text, const char* piece, size_t size);
void text_add(Text* text, const char* piece);
void text_add_number(Text* text, uint64_t value);
/// A JSON string. Bytes above 127 are left as they are: what a driver says need not be UTF-8, and the host forgives it.
void text_add_quoted(Text* text, const char* value, size_t size);
