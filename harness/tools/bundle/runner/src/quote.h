// Texts and files of the runner.
#pragma once

#include <stddef.h>

#include "text.h"

/// A JSON string of ASCII characters, each byte of the value one character from U+0000 to U+00FF.
void quote(Text* text, const char* value, size_t size);
/// Two digits for each byte.
void add_hex(Text* text, const char* data, size_t size);
/// 0, or -1 if not all of it could be written.
int write_all(int fd, const char* data, size_t size);
/// The newest so many bytes of a file, all of it for 0, followed by a zero. Its data is NULL if it cannot be read.
Text read_file(const char* path, size_t newest);
/// Writes a file whole or not at all; 0, or -1 if it cannot be written.
int save_file(const char* path, const char* data, size_t size);
