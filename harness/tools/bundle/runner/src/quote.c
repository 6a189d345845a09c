#include "quote.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void add_hex(Text* text, const char* data, size_t size) {
  static const char hex[] = "0123456789abcdef";
  for (size_t i = 0; i < size; ++i) {
    const unsigned char byte = (unsigned char)data[i];
    const char digits[2] = {hex[byte >> 4], hex[byte & 15]};
    text_append(text, digits, 2);
  }
}

void quote(Text* text, const char* value, size_t size) { text_add_quoted(text, value, size, 126); }

int write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, data, size);
    if (written <= 0) return -1;
    data += written;
    size -= (size_t)written;
  }
  return 0;
}

Text read_file(const char* path, size_t newest) {
  Text content = {0};
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return content;
  const off_t size = lseek(fd, 0, SEEK_END);
  lseek(fd, newest && size > (off_t)newest ? size - (off_t)newest : 0, SEEK_SET);
  char piece[4096];
  ssize_t got;
  while ((got = read(fd, piece, sizeof(piece))) > 0) text_append(&content, piece, (size_t)got);
  close(fd);
  text_append(&content, "", 1);
  content.size -= 1;
  if (got < 0 || content.failed) text_free(&content);
  return content;
}

int save_file(const char* path, const char* data, size_t size) {
  char scratch[4096];
  if (snprintf(scratch, sizeof(scratch), "%s.new", path) >= (int)sizeof(scratch)) return -1;
  const int fd = open(scratch, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  const int failed = write_all(fd, data, size) | fsync(fd) | close(fd);
  return failed ? -1 : rename(scratch, path);
}
