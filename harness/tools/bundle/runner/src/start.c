// Where an executable begins, for a compiler that has nothing of the device's C library.
//
// On Android it is what NDK's crtbegin_dynamic.o does, after bionic's libc/arch-common/bionic/crtbegin.c, from memory: no
// copy was at hand. The loader has run all constructors by then. With glibc it is what its crt1.o does
// (sysdeps/aarch64/start.S): the loader leaves in x0 what to call at the end. There are no constructors of ours.
#ifdef FOR_ANDROID
#include <stddef.h>

int main(int count, char** words);

typedef struct {
  void (**preinit_array)(void);
  void (**init_array)(void);
  void (**fini_array)(void);
  size_t preinit_array_count, init_array_count, fini_array_count;
} structors_array_t;

_Noreturn void __libc_init(void* raw_args, void (*onexit)(void), int (*slingshot)(int, char**, char**),
                           const structors_array_t* structors);

static int begin(int count, char** words, char** environment) {
  (void)environment;
  return main(count, words);
}

__attribute__((used)) static void start_main(void* raw_args) {
  static const structors_array_t none;
  __libc_init(raw_args, NULL, begin, &none);
}

__asm__(
    ".text\n.globl _start\n.type _start,%function\n_start:\n"
    "bti j\nmov x29, #0\nmov x30, #0\nmov x0, sp\nb start_main\n");
#endif

#ifdef FOR_GLIBC
int main(int count, char** words);

int __libc_start_main(int (*begin)(int, char**), int count, char** words, void (*init)(void), void (*fini)(void),
                      void (*at_end)(void), void* stack_end);

__attribute__((used)) static void start_main(void* stack, void (*at_end)(void)) {
  char** const words = (char**)stack + 1;
  __libc_start_main(main, (int)*(long*)stack, words, 0, 0, at_end, stack);
}

__asm__(
    ".text\n.globl _start\n.type _start,%function\n_start:\n"
    "bti j\nmov x29, #0\nmov x30, #0\nmov x1, x0\nmov x0, sp\nb start_main\n");
#endif
