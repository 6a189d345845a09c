// What a turn's process tells whoever watches it: one member of a JSON object in each line, as soon as it is known.
#pragma once

#include <stddef.h>

/// From now on lines go to this file descriptor.
void tell_to(int fd);

/// What is being done now, for whoever has to say what it was that crashed or hung.
void tell_doing(const char* doing);
void tell_number(const char* name, double value);
void tell_numbers(const char* name, const double* values, size_t count);
void tell_bool(const char* name, int value);
/// A text as JSON. Its bytes are written as U+0000 to U+00FF: what drivers say need not be UTF-8.
void tell_text(const char* name, const char* text, size_t size);
/// Bytes in hexadecimal digits.
void tell_bytes(const char* name, const char* data, size_t size);
/// What is JSON already.
void tell_json(const char* name, const char* json, size_t size);

/// Tells what went wrong and ends the process; whose fault it is, the host decides by the text.
_Noreturn void tell_error(const char* text, size_t size);
/// The same for what can only be wrong with the bundle or this machine.
_Noreturn void tell_broken(const char* what, const char* which);
