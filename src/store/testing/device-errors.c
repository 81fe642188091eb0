/* Loaded into a test's child process with LD_PRELOAD. System calls on the file of an LMDB store fail with EIO while the file
 * that $FAULT_FILE names contains the name of the call: "write" for data pages, "meta-write" for the pages that make a commit
 * valid, which LMDB writes through a descriptor opened with O_DSYNC, "sync", and "read". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int fails(int fd, const char *call) {
  char link[64], path[4096] = {0}, fault[64] = {0}, name[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, path, sizeof path - 1) < 0) return 0;
  const char *base = strrchr(path, '/');
  if (!base || strcmp(base, "/store.mdb") != 0) return 0;
  FILE *file = fopen(getenv("FAULT_FILE"), "r");
  if (!file) return 0;
  if (!fgets(fault, sizeof fault, file)) fault[0] = 0;
  fclose(file);
  const int is_meta = strcmp(call, "write") == 0 && (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
  snprintf(name, sizeof name, "%s%s", is_meta ? "meta-" : "", call);
  if (strcmp(fault, name) != 0) return 0;
  errno = EIO;
  return 1;
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
WRAP(ssize_t, pread, "read", (int fd, void *bytes, size_t size, off_t offset), fd, bytes, size, offset)
WRAP(ssize_t, pread64, "read", (int fd, void *bytes, size_t size, off_t offset), fd, bytes, size, offset)
WRAP(int, fdatasync, "sync", (int fd), fd)
WRAP(int, fsync, "sync", (int fd), fd)
