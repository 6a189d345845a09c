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
/// A JSON array.
void text_add_numbers(Text* text, const uint64_t* values, size_t count);
/// A JSON string, in which bytes up to `last` stay as they are and others become U+0000 to U+00FF. With 255 the host
/// forgives what is not UTF-8; with 126 it gets each byte as one character.
void text_add_quoted(Text* text, const char* value, size_t size, unsigned char last);
