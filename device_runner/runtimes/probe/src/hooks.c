#include "hooks.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "opencl.h"

static Hook* installed;

static Hook* hook_of(const char* name) {
  Hook* hook = __atomic_load_n(&installed, __ATOMIC_ACQUIRE);
  while (hook != NULL && strcmp(hook->name, name) != 0) hook = hook->next;
  return hook;
}

static void* hooked_dlsym(void* library, const char* name) {
  void* found = dlsym(library, name);
  Hook* hook = found == NULL ? NULL : hook_of(name);
  if (hook == NULL) return found;
  __atomic_store_n(&hook->real, found, __ATOMIC_RELEASE);
  return hook->ours;
}

static int is_tvms(const char* file) {
  const char* slash = file == NULL ? NULL : strrchr(file, '/');
  return slash != NULL && strncmp(slash, "/libtvm", 7) == 0;
}

/// What an entry for this symbol is to hold; NULL if it is left as it is. Where a library of TVM's offers OpenCL's
/// functions to others, it is its wrapper, whose own calls are led here.
static void* replacement(const char* symbol) {
  Dl_info origin;
  if (strcmp(symbol, "dlsym") == 0) return (void*)hooked_dlsym;
  Hook* hook = hook_of(symbol);
  if (hook == NULL) return NULL;
  void* real = dlsym(RTLD_DEFAULT, symbol);  // first, because a preloaded library may stand before OpenCL's
  if (real == NULL) real = opencl_function(symbol);
  if (real == NULL || (dladdr(real, &origin) != 0 && is_tvms(origin.dli_fname))) return NULL;
  __atomic_store_n(&hook->real, real, __ATOMIC_RELEASE);
  return hook->ours;
}

/// Replaces an entry, which the loader may have made read-only; it stays writable, as the loader may still write there.
static int replace(void** entry, void* value) {
  const uintptr_t page = (uintptr_t)getauxval(AT_PAGESZ);
  const uintptr_t begin = (uintptr_t)entry / page * page;
  if (mprotect((void*)begin, page, PROT_READ | PROT_WRITE) != 0) return 0;
  __atomic_store_n(entry, value, __ATOMIC_RELEASE);
  return 1;
}

typedef struct {
  ElfW(Addr) base;
  const ElfW(Sym) * symbols;
  const char* names;
} Object;

/// A table of entries to be filled in by the loader (ELF, "Relocation"), of which those of our functions are replaced.
static int replace_in(const Object* object, const ElfW(Rela) * table, size_t bytes) {
  int replaced = 0;
  for (size_t i = 0; table != NULL && i < bytes / sizeof(*table); ++i) {
    const size_t symbol = ELF64_R_SYM(table[i].r_info);
    if (symbol == 0 || table[i].r_addend != 0) continue;
    void* value = replacement(object->names + object->symbols[symbol].st_name);
    if (value != NULL) replaced += replace((void**)(object->base + table[i].r_offset), value);
  }
  return replaced;
}

/// An address of the dynamic section: glibc has made it absolute, bionic and musl leave it relative.
static const void* at(ElfW(Addr) base, ElfW(Addr) address) {
  return (const void*)(address < base ? base + address : address);
}

static int replace_in_object(struct dl_phdr_info* info, size_t size, void* context) {
  const ElfW(Dyn)* dynamic = NULL;
  (void)size;
  if (!is_tvms(info->dlpi_name)) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = (const ElfW(Dyn)*)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
  }
  Object object = {info->dlpi_addr, NULL, NULL};
  const ElfW(Rela)*calls = NULL, *data = NULL;
  size_t calls_bytes = 0, data_bytes = 0;
  for (; dynamic != NULL && dynamic->d_tag != DT_NULL; ++dynamic) {
    const void* address = at(info->dlpi_addr, dynamic->d_un.d_ptr);
    switch (dynamic->d_tag) {
      case DT_SYMTAB: object.symbols = (const ElfW(Sym)*)address; break;
      case DT_STRTAB: object.names = (const char*)address; break;
      case DT_JMPREL: calls = (const ElfW(Rela)*)address; break;
      case DT_PLTRELSZ: calls_bytes = dynamic->d_un.d_val; break;
      case DT_RELA: data = (const ElfW(Rela)*)address; break;
      case DT_RELASZ: data_bytes = dynamic->d_un.d_val; break;
    }
  }
  if (object.symbols != NULL && object.names != NULL) {
    *(int*)context += replace_in(&object, calls, calls_bytes) + replace_in(&object, data, data_bytes);
  }
  return 0;
}

int install(Hook* hooks, size_t count) {
  int places = 0;
  for (size_t i = 0; i < count; ++i) {
    hooks[i].next = installed;
    __atomic_store_n(&installed, &hooks[i], __ATOMIC_RELEASE);
  }
  dl_iterate_phdr(replace_in_object, &places);
  return places;
}
