/* An audit library for the dynamic loader (man 7 rtld-audit) that hides instructions of this
 * processor from the given libraries.
 *
 * A program queries a processor's instructions with CPUID, which an unprivileged process cannot
 * intercept. So each CPUID of these libraries is replaced by UD2, which has the same length. UD2
 * raises SIGILL, and the signal handler emulates CPUID without the hidden bits.
 * older_processor.py writes the list of libraries and positions, one per line: the hexadecimal
 * offset from the library's load address, a blank, and the library's path.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define MAX_SITES 4096

struct site {
  unsigned long offset;
  char path[512];
};

static struct site sites[MAX_SITES];
static int num_sites;
static uintptr_t patched[MAX_SITES];
static int num_patched;
static int hides_avx;

static uint32_t without(uint32_t word, const int *bits, int num_bits) {
  for (int i = 0; i < num_bits; ++i) word &= ~(UINT32_C(1) << bits[i]);
  return word;
}
#define WITHOUT(word, ...)                                                       \
  (word) = without((word), (const int[]){__VA_ARGS__},                           \
                   sizeof((int[]){__VA_ARGS__}) / sizeof(int))

/* Emulates CPUID without AVX-512, VNNI, bf16 and AMX, and without AVX if hides_avx is set. */
static void answer(uint32_t leaf, uint32_t part, uint32_t *a, uint32_t *b, uint32_t *c,
                   uint32_t *d) {
  __cpuid_count(leaf, part, *a, *b, *c, *d);
  if (leaf == 7 && part == 0) {
    WITHOUT(*b, 16, 17, 21, 26, 27, 28, 30, 31);
    WITHOUT(*c, 1, 6, 11, 12, 14);
    WITHOUT(*d, 2, 3, 8, 22, 23, 24, 25);
  }
  if (leaf == 7 && part == 1) {
    WITHOUT(*a, 4, 5, 21, 23);
    WITHOUT(*d, 4, 5, 8, 10, 19);
  }
  if (!hides_avx) return;
  if (leaf == 1) WITHOUT(*c, 12, 26, 27, 28, 29);
  if (leaf == 7 && part == 0) {
    WITHOUT(*b, 3, 5, 8);
    WITHOUT(*c, 8, 9, 10);
  }
}

static void on_illegal(int signal_number, siginfo_t *info, void *context) {
  (void)info;
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const uintptr_t at = (uintptr_t)registers[REG_RIP];
  for (int i = 0; i < num_patched; ++i) {
    if (patched[i] != at) continue;
    uint32_t a, b, c, d;
    answer((uint32_t)registers[REG_RAX], (uint32_t)registers[REG_RCX], &a, &b, &c, &d);
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
    return;
  }
  signal(signal_number, SIG_DFL); /* A real illegal instruction, which runs again and is fatal. */
}

static void fail(const char *why, const char *what) {
  fprintf(stderr, "older_processor: %s (%s)\n", why, what);
  _exit(1);
}

static void patch(uint8_t *at, const char *path) {
  const long page = sysconf(_SC_PAGESIZE);
  uint8_t *start = (uint8_t *)((uintptr_t)at & ~(uintptr_t)(page - 1));
  if (at[0] != 0x0f || at[1] != 0xa2) fail("is not CPUID; remove the list of sites", path);
  if (mprotect(start, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC)) fail("mprotect", path);
  at[1] = 0x0b;
  if (mprotect(start, 2 * page, PROT_READ | PROT_EXEC)) fail("mprotect", path);
  patched[num_patched++] = (uintptr_t)at;
}

unsigned int la_version(unsigned int version) {
  const char *list = getenv("OLDER_PROCESSOR_SITES");
  const char *kind = getenv("OLDER_PROCESSOR");
  if (list == NULL || kind == NULL) fail("start it with older_processor.py", "environment");
  hides_avx = strcmp(kind, "avx2") != 0;
  FILE *file = fopen(list, "r");
  if (file == NULL) fail("cannot be read", list);
  while (num_sites < MAX_SITES &&
         fscanf(file, "%lx %511[^\n]", &sites[num_sites].offset, sites[num_sites].path) == 2) {
    ++num_sites;
  }
  fclose(file);
  return version;
}

unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) {
  (void)space;
  (void)cookie;
  int found = 0;
  char name[PATH_MAX]; /* The loader's name may contain other folders and symbolic links. */
  if (realpath(map->l_name, name) == NULL) return 0;
  for (int i = 0; i < num_sites; ++i) {
    if (strcmp(name, sites[i].path) != 0) continue;
    patch((uint8_t *)map->l_addr + sites[i].offset, name);
    found = 1;
  }
  if (found) {
    /* Installed again for each library, because Python's faulthandler may replace the handler. */
    struct sigaction action = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGILL, &action, NULL);
  }
  return 0;
}
