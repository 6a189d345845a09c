#include "text.h"

#include <stdlib.h>
#include <string.h>

void text_append(Text* text, const char* piece, size_t size) {
  if (text->failed) return;
  if (text->room - text->size < size) {
    const size_t room = 2 * (text->size + size) + 256;
    char* data = (char*)realloc(text->data, room);
    if (data == NULL) {
      text->failed = 1;
      return;
    }
    text->data = data;
    text->room = room;
  }
  memcpy(text->data + text->size, piece, size);
  text->size += size;
}

void text_free(Text* text) {
  free(text->data);
  memset(text, 0, sizeof(*text));
}

void text_add(Text* text, const char* piece) { text_append(text, piece, strlen(piece)); }

void text_add_number(Text* text, uint64_t value) {
  char digits[20];
  size_t at = sizeof(digits);
  do digits[--at] = (char)('0' + value % 10);
  while (value /= 10);
  text_append(text, digits + at, sizeof(digits) - at);
}

void text_add_numbers(Text* text, const uint64_t* values, size_t count) {
  text_add(text, "[");
  for (size_t i = 0; i < count; ++i) {
    if (i) text_add(text, ", ");
    text_add_number(text, values[i]);
  }
  text_add(text, "]");
}

void text_add_quoted(Text* text, const char* value, size_t size, unsigned char last) {
  static const char* const hex = "0123456789abcdef";
  text_append(text, "\"", 1);
  for (size_t i = 0; i < size; ++i) {
    const unsigned char byte = (unsigned char)value[i];
    const char escaped[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
    const int plain = byte >= 0x20 && byte <= last && byte != '"' && byte != '\\';
    text_append(text, plain ? value + i : escaped, plain ? 1 : sizeof(escaped));
  }
  text_append(text, "\"", 1);
}
