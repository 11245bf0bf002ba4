/* Preloaded into a process: writes what it does to files below $CUTS_ROOT to $CUTS_LOG, in order.
 *
 * Nothing is really synced: the log tells what was. A record is: what (1 byte), length of the path (4), offset (8),
 * length of the data (4), the path, the data. C a new file, M a new folder, W a write, T a new length, S a sync,
 * R a rename (the data is the new name), U a removed name. Where $CUTS_FAIL is a number, the operation with that number
 * fails with the error $CUTS_ERROR, and with $CUTS_EVER all later ones do too; not those of a file named promises. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define LONGEST 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_file = -1, is_ready, fail_ever, fail_error = ENOSPC;
static long operations, fail_at = -1;
static char root[LONGEST];

static int (*real_open)(const char *, int, ...);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_fsync)(int), (*real_fdatasync)(int), (*real_ftruncate)(int, off_t);
static int (*real_rename)(const char *, const char *), (*real_unlink)(const char *);
static int (*real_mkdir)(const char *, mode_t);

static void prepare(void) {
  if (is_ready) return;
  is_ready = 1;
  real_open = dlsym(RTLD_NEXT, "open64");
  real_write = dlsym(RTLD_NEXT, "write");
  real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
  real_fsync = dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
  real_rename = dlsym(RTLD_NEXT, "rename");
  real_unlink = dlsym(RTLD_NEXT, "unlink");
  real_mkdir = dlsym(RTLD_NEXT, "mkdir");
  const char *place = getenv("CUTS_ROOT"), *file = getenv("CUTS_LOG"), *fail = getenv("CUTS_FAIL");
  if (place) strncpy(root, place, LONGEST - 1);
  if (fail) fail_at = atol(fail);
  if (getenv("CUTS_ERROR")) fail_error = atoi(getenv("CUTS_ERROR"));
  fail_ever = getenv("CUTS_EVER") != NULL;
  if (file) log_file = real_open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int is_ours(const char *path) { return root[0] && !strncmp(path, root, strlen(root)) && !strstr(path, "/lock"); }

static int path_of(int file, char *path) {
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", file);
  ssize_t length = readlink(name, path, LONGEST - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return is_ours(path);
}

/* Whether this operation fails; else it may go on, and has the lock. */
static int fails(const char *path) {
  pthread_mutex_lock(&lock);
  if (strstr(path, "/promises")) return 0;
  operations++;
  if (fail_at < 0 || operations < fail_at || (operations > fail_at && !fail_ever)) return 0;
  pthread_mutex_unlock(&lock);
  errno = fail_error;
  return 1;
}

static void note(char what, const char *path, int64_t offset, const void *data, uint32_t size) {
  char head[17];
  uint32_t length = strlen(path);
  int before = errno;
  head[0] = what;
  memcpy(head + 1, &length, 4);
  memcpy(head + 5, &offset, 8);
  memcpy(head + 13, &size, 4);
  struct iovec pieces[3] = {{head, 17}, {(void *)path, length}, {(void *)data, size}};
  if (log_file >= 0 && writev(log_file, pieces, 3) < 0) abort();
  errno = before;
}

#define DONE(result) do { pthread_mutex_unlock(&lock); return result; } while (0)

ssize_t write(int file, const void *data, size_t size) {
  char path[LONGEST];
  prepare();
  if (!path_of(file, path)) return real_write(file, data, size);
  if (fails(path)) return -1;
  off_t offset = lseek(file, 0, SEEK_CUR);
  ssize_t written = real_write(file, data, size);
  if (written > 0) note('W', path, offset, data, written);
  DONE(written);
}

ssize_t pwrite64(int file, const void *data, size_t size, off_t offset) {
  char path[LONGEST];
  prepare();
  if (!path_of(file, path)) return real_pwrite(file, data, size, offset);
  if (fails(path)) return -1;
  ssize_t written = real_pwrite(file, data, size, offset);
  if (written > 0) note('W', path, offset, data, written);
  DONE(written);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset) { return pwrite64(file, data, size, offset); }

int fsync(int file) {
  char path[LONGEST];
  prepare();
  if (!path_of(file, path)) return real_fsync(file);
  if (fails(path)) return -1;
  note('S', path, 0, "", 0);
  DONE(0);
}

int fdatasync(int file) { return fsync(file); }

int ftruncate64(int file, off_t size) {
  char path[LONGEST];
  prepare();
  if (!path_of(file, path)) return real_ftruncate(file, size);
  if (fails(path)) return -1;
  int result = real_ftruncate(file, size);
  if (!result) note('T', path, size, "", 0);
  DONE(result);
}

int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

int rename(const char *path, const char *target) {
  prepare();
  if (!is_ours(target)) return real_rename(path, target);
  if (fails(path)) return -1;
  int result = real_rename(path, target);
  if (!result) note('R', path, 0, target, strlen(target));
  DONE(result);
}

int unlink(const char *path) {
  prepare();
  if (!is_ours(path)) return real_unlink(path);
  if (fails(path)) return -1;
  int result = real_unlink(path);
  if (!result) note('U', path, 0, "", 0);
  DONE(result);
}

int mkdir(const char *path, mode_t mode) {
  prepare();
  if (!is_ours(path)) return real_mkdir(path, mode);
  if (fails(path)) return -1;
  int result = real_mkdir(path, mode);
  if (!result) note('M', path, 0, "", 0);
  DONE(result);
}

static int open_any(const char *path, int flags, mode_t mode) {
  struct stat before;
  prepare();
  if (!is_ours(path) || !(flags & (O_CREAT | O_TRUNC))) return real_open(path, flags, mode);
  int is_new = stat(path, &before) != 0;
  if (is_new ? fails(path) : (pthread_mutex_lock(&lock), 0)) return -1;
  int file = real_open(path, flags, mode);
  if (file >= 0 && is_new) note('C', path, 0, "", 0);
  if (file >= 0 && !is_new && (flags & O_TRUNC)) note('T', path, 0, "", 0);
  DONE(file);
}

#define MODE(mode) va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, int); va_end(rest)

int open64(const char *path, int flags, ...) { MODE(mode); return open_any(path, flags, mode); }

int open(const char *path, int flags, ...) { MODE(mode); return open_any(path, flags, mode); }
