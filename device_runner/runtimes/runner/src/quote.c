#include "quote.h"

#include <fcntl.h>
#include <unistd.h>

void quote(Text* text, const char* value, size_t size) {
  static const char hex[] = "0123456789abcdef";
  text_append(text, "\"", 1);
  for (size_t i = 0; i < size; ++i) {
    const unsigned char byte = (unsigned char)value[i];
    const char escaped[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
    const int plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
    text_append(text, plain ? value + i : escaped, plain ? 1 : sizeof(escaped));
  }
  text_append(text, "\"", 1);
}

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
