/* Loaded into a test's child process with LD_PRELOAD. System calls on the file of an LMDB store fail with EIO while the file
 * that $FAULT_FILE names contains the name of the call: "write" for data pages, "meta-write" for the pages that make a commit
 * valid, which LMDB writes through a descriptor opened with O_DSYNC, "sync", and "read". With "read-page N", those reads fail
 * that include this page of 4,096 bytes. Reads through a memory map never fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int read_fault(int fd, char *fault, size_t size) {
  char link[64], path[4096] = {0};
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, path, sizeof path - 1) < 0) return 0;
  const char *base = strrchr(path, '/');
  if (!base || strcmp(base, "/store.mdb") != 0) return 0;
  FILE *file = fopen(getenv("FAULT_FILE"), "r");
  if (!file) return 0;
  if (!fgets(fault, size, file)) fault[0] = 0;
  fclose(file);
  return 1;
}

static int fails_at(int fd, size_t size, off_t offset) {
  char fault[64] = {0};
  long page;
  if (!read_fault(fd, fault, sizeof fault) || sscanf(fault, "read-page %ld", &page) != 1) return 0;
  if (offset + (off_t)size <= page * 4096 || offset >= (page + 1) * 4096) return 0;
  errno = EIO;
  return 1;
}

static int fails(int fd, const char *call) {
  char fault[64] = {0}, name[64];
  if (!read_fault(fd, fault, sizeof fault)) return 0;
  const int is_meta = strcmp(call, "write") == 0 && (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
  snprintf(name, sizeof name, "%s%s", is_meta ? "meta-" : "", call);
  if (strcmp(fault, name) != 0) return 0;
  errno = EIO;
  return 1;
}

#define WRAP_READ_AT(name)                                                              \
  ssize_t name(int fd, void *bytes, size_t size, off_t offset) {                        \
    static ssize_t (*next)(int, void *, size_t, off_t);                                 \
    if (!next) next = (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, #name);  \
    if (fails(fd, "read") || fails_at(fd, size, offset)) return -1;                     \
    return next(fd, bytes, size, offset);                                               \
  }

#define WRAP(type, name, call, parameters, ...)                \
  type name parameters {                                       \
    static type(*next) parameters;                             \
    if (!next) next = (type(*) parameters)dlsym(RTLD_NEXT, #name); \
    return fails(fd, call) ? -1 : next(__VA_ARGS__);           \
  }

WRAP(ssize_t, write, "write", (int fd, const void *bytes, size_t size), fd, bytes, size)
WRAP(ssize_t, writev, "write", (int fd, const struct iovec *parts, int count), fd, parts, count)
WRAP(ssize_t, pwrite, "write", (int fd, const void *bytes, size_t size, off_t offset), fd, bytes, size, offset)
WRAP(ssize_t, pwrite64, "write", (int fd, const void *bytes, size_t size, off_t offset), fd, bytes, size, offset)
WRAP(ssize_t, read, "read", (int fd, void *bytes, size_t size), fd, bytes, size)
WRAP_READ_AT(pread)
WRAP_READ_AT(pread64)
WRAP(int, fdatasync, "sync", (int fd), fd)
WRAP(int, fsync, "sync", (int fd), fd)
