#include "programs.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "opencl.h"

static const char* const kSource = "clCreateProgramWithSource";
static const char* const kBinary = "clCreateProgramWithBinary";

static int64_t from_source, from_binary;
static CreateProgramWithSource real_source;
static CreateProgramWithBinary real_binary;

static cl_program counting_source(cl_context context, cl_uint count, const char** strings, const size_t* lengths,
                                  cl_int* code) {
  const cl_program program = real_source(context, count, strings, lengths, code);
  if (program != NULL) __atomic_add_fetch(&from_source, 1, __ATOMIC_RELAXED);
  return program;
}

static cl_program counting_binary(cl_context context, cl_uint count, const cl_device_id* devices, const size_t* lengths,
                                  const unsigned char** binaries, cl_int* status, cl_int* code) {
  const cl_program program = real_binary(context, count, devices, lengths, binaries, status, code);
  if (program != NULL) __atomic_add_fetch(&from_binary, 1, __ATOMIC_RELAXED);
  return program;
}

/// What counts in place of the function of this name, which `real` is; NULL for every other name.
static void* counting(const char* name, void* real) {
  if (real == NULL) return NULL;
  if (strcmp(name, kSource) == 0) {
    real_source = (CreateProgramWithSource)real;
    return (void*)counting_source;
  }
  if (strcmp(name, kBinary) == 0) {
    real_binary = (CreateProgramWithBinary)real;
    return (void*)counting_binary;
  }
  return NULL;
}

static void* counting_dlsym(void* library, const char* name) {
  void* found = dlsym(library, name);
  void* instead = counting(name, found);
  return instead == NULL ? found : instead;
}

static int is_tvms(const char* file) {
  const char* slash = file == NULL ? NULL : strrchr(file, '/');
  return slash != NULL && strncmp(slash, "/libtvm", 7) == 0;
}

/// What an entry for this symbol is to hold; NULL if it is left as it is. Where a library of TVM's offers OpenCL's
/// functions to others, it is its wrapper, whose own calls are counted.
static void* replacement(const char* symbol) {
  Dl_info origin;
  if (strcmp(symbol, "dlsym") == 0) return (void*)counting_dlsym;
  if (strcmp(symbol, kSource) != 0 && strcmp(symbol, kBinary) != 0) return NULL;
  void* real = dlsym(RTLD_DEFAULT, symbol);  // first, because a preloaded library may stand before OpenCL's
  if (real == NULL) real = opencl_function(symbol);
  return real == NULL || (dladdr(real, &origin) != 0 && is_tvms(origin.dli_fname)) ? NULL : counting(symbol, real);
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

int count_programs(void) {
  static int places = 0;
  if (places == 0) dl_iterate_phdr(replace_in_object, &places);
  return places;
}

int64_t programs_from_source(void) { return __atomic_load_n(&from_source, __ATOMIC_RELAXED); }

int64_t programs_from_binary(void) { return __atomic_load_n(&from_binary, __ATOMIC_RELAXED); }
