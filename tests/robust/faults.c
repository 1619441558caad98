/* Loaded before a process's own libraries: writes down what it does to files below a folder, and lets one such call fail.
 *
 * FAULT_ROOT: the folder. FAULT_AT: the number of the call that fails, counted over all processes that share FAULT_COUNT,
 * a file of eight bytes. FAULT_ERRNO: how. FAULT_KEEP: it and all after it. FAULT_ALL: calls that only ask, list or map
 * count as well. FAULT_ONLY: the end of the paths whose calls count. FAULT_TOLD: a file that gets what failed. FAULT_LOG: a
 * file that gets one line for each call, in the order in which the calls were made; what a file held when it was synced is
 * copied to FAULT_COPIES. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, #name)

static const char *root, *copies, *only;
static int64_t *count, at;
static int fault, keep, journal = -1, told = -1, on, all;

/* Of the journal, for threads share it and so its lock. */
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void hold(void) { pthread_mutex_lock(&held); }
static void let_go(void) { pthread_mutex_unlock(&held); }

__attribute__((constructor)) static void start(void) {
  const char *shared = getenv("FAULT_COUNT"), *lines = getenv("FAULT_LOG"), *words = getenv("FAULT_TOLD");
  root = getenv("FAULT_ROOT");
  copies = getenv("FAULT_COPIES");
  only = getenv("FAULT_ONLY");
  all = getenv("FAULT_ALL") != NULL;
  if (!root || !shared) return;
  int file = open(shared, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (count == MAP_FAILED) return;
  at = getenv("FAULT_AT") ? atoll(getenv("FAULT_AT")) : 0;
  fault = getenv("FAULT_ERRNO") ? atoi(getenv("FAULT_ERRNO")) : EIO;
  keep = getenv("FAULT_KEEP") != NULL;
  if (lines) journal = open(lines, O_WRONLY | O_APPEND | O_CLOEXEC);
  pthread_atfork(hold, let_go, let_go);
  if (words) told = open(words, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  on = 1;
}

/* The absolute path of what a call is about; 0 when that is not below the folder. */
static int ours(int folder, const char *path, char *full) {
  char base[4096] = "", link[64];
  if (!on || !path) return 0;
  if (path[0] != '/') {
    if (folder == AT_FDCWD) {
      if (!getcwd(base, sizeof base)) return 0;
    } else {
      snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
      ssize_t size = syscall(SYS_readlink, link, base, sizeof base - 1);
      if (size < 0) return 0;
      base[size] = 0;
    }
    snprintf(full, 8192, "%s%s%s", base, path[0] ? "/" : "", path);
  } else {
    snprintf(full, 8192, "%s", path);
  }
  size_t size = strlen(root);
  return !strncmp(full, root, size) && (full[size] == '/' || !full[size]);
}

static int ours_open(int file, char *full) { return file > 2 && ours(file, "", full); }

static int ends_with(const char *path, const char *end) {
  size_t size = strlen(path), more = strlen(end);
  return size >= more && !strcmp(path + size - more, end);
}

static int fails(const char *call, const char *path) {
  if (only && !ends_with(path, only)) return 0;
  int64_t number = __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
  if (!at || (keep ? number < at : number != at)) return 0;
  if (told >= 0) dprintf(told, "%s %s\n", call, path);
  errno = fault;
  return 1;
}

/* Holds the journal while a call is made and written down, so that the lines are in the order of the calls, and what one
 * thread copies is not another's. */
static void begin(void) {
  if (journal < 0) return;
  hold();
  syscall(SYS_flock, journal, LOCK_EX);
}

static void end(int done, const char *what, const char *path, const char *other) {
  int before = errno;
  if (journal >= 0) {
    if (done) dprintf(journal, "%s\t%s\t%s\n", what, path, other);
    syscall(SYS_flock, journal, LOCK_UN);
    let_go();
  }
  errno = before;
}

#define OPEN(name, folder, ...)                                                                   \
  REAL(name);                                                                                     \
  mode_t mode = 0;                                                                                \
  char full[8192];                                                                                \
  if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); } \
  if (!ours(folder, path, full)) return real(__VA_ARGS__, flags, mode);                           \
  if (fails(#name, full)) return -1;                                                              \
  if (!(flags & O_CREAT)) return real(__VA_ARGS__, flags, mode);                                  \
  begin();                                                                                        \
  int fresh = syscall(SYS_access, full, F_OK) != 0, file = real(__VA_ARGS__, flags, mode);                     \
  end(file >= 0 && fresh, "create", full, "");                                                    \
  return file

int open(const char *path, int flags, ...) { OPEN(open, AT_FDCWD, path); }
int open64(const char *path, int flags, ...) { OPEN(open64, AT_FDCWD, path); }
int openat(int folder, const char *path, int flags, ...) { OPEN(openat, folder, folder, path); }
int openat64(int folder, const char *path, int flags, ...) { OPEN(openat64, folder, folder, path); }

#define MOVE(name, from_folder, from, to_folder, to, what, ...)                                   \
  REAL(name);                                                                                     \
  char source[8192], target[8192];                                                                \
  if (!ours(to_folder, to, target)) return real(__VA_ARGS__);                                     \
  ours(from_folder, from, source);                                                                \
  if (fails(#name, target)) return -1;                                                            \
  begin();                                                                                        \
  int code = real(__VA_ARGS__);                                                                   \
  end(code == 0, what, target, source);                                                           \
  return code

int rename(const char *from, const char *to) { MOVE(rename, AT_FDCWD, from, AT_FDCWD, to, "rename", from, to); }
int link(const char *from, const char *to) { MOVE(link, AT_FDCWD, from, AT_FDCWD, to, "link", from, to); }
int linkat(int a, const char *from, int b, const char *to, int flags) { MOVE(linkat, a, from, b, to, "link", a, from, b, to, flags); }

#define CHANGE(name, folder, path, what, other, ...)                                              \
  REAL(name);                                                                                     \
  char full[8192];                                                                                \
  if (!ours(folder, path, full)) return real(__VA_ARGS__);                                        \
  if (fails(#name, full)) return -1;                                                              \
  begin();                                                                                        \
  int code = real(__VA_ARGS__);                                                                   \
  end(code == 0, what, full, other);                                                              \
  return code

int symlink(const char *to, const char *path) { CHANGE(symlink, AT_FDCWD, path, "symlink", to, to, path); }
int unlink(const char *path) { CHANGE(unlink, AT_FDCWD, path, "remove", "", path); }
int unlinkat(int folder, const char *path, int flags) { CHANGE(unlinkat, folder, path, "remove", "", folder, path, flags); }
int rmdir(const char *path) { CHANGE(rmdir, AT_FDCWD, path, "remove", "", path); }
int mkdir(const char *path, mode_t mode) { CHANGE(mkdir, AT_FDCWD, path, "folder", "", path, mode); }

int fsync(int file) {
  REAL(fsync);
  char full[8192], copy[64] = "";
  if (!ours_open(file, full)) return real(file);
  if (fails("fsync", full)) return -1;
  begin();
  struct stat status;
  if (copies && !fstat(file, &status) && S_ISREG(status.st_mode)) {
    snprintf(copy, sizeof copy, "%d-%lld", (int)getpid(), (long long)*count);
    char place[8192];
    snprintf(place, sizeof place, "%s/%s", copies, copy);
    int out = open(place, O_WRONLY | O_CREAT | O_TRUNC, 0644), in = open(full, O_RDONLY);
    char block[65536];
    for (ssize_t size; in >= 0 && out >= 0 && (size = read(in, block, sizeof block)) > 0;)
      if (write(out, block, (size_t)size) != size) break;
    close(in);
    close(out);
  }
  int code = real(file);
  end(code == 0, "sync", full, copy);
  return code;
}

#define MOVES_BYTES(name, type, ...)                                                              \
  REAL(name);                                                                                     \
  char full[8192];                                                                                \
  if (ours_open(file, full) && fails(#name, full)) return -1;                                                \
  return real(file, __VA_ARGS__)

ssize_t read(int file, void *data, size_t size) { MOVES_BYTES(read, ssize_t, data, size); }
ssize_t write(int file, const void *data, size_t size) { MOVES_BYTES(write, ssize_t, data, size); }
ssize_t pread64(int file, void *data, size_t size, off64_t from) { MOVES_BYTES(pread64, ssize_t, data, size, from); }
ssize_t pwrite64(int file, const void *data, size_t size, off64_t from) { MOVES_BYTES(pwrite64, ssize_t, data, size, from); }
int ftruncate64(int file, off64_t size) { MOVES_BYTES(ftruncate64, int, size); }
int fdatasync(int file) { REAL(fdatasync); char full[8192]; return ours_open(file, full) && fails("fdatasync", full) ? -1 : real(file); }

/* What only asks, lists or maps, and what changes no folder. */
#define ASKS(name, failed, folder, path, ...)                                                     \
  REAL(name);                                                                                     \
  char full[8192];                                                                                \
  if (all && ours(folder, path, full) && fails(#name, full)) return failed;                       \
  return real(__VA_ARGS__)
#define ASKS_OPEN(name, failed, file, ...)                                                        \
  REAL(name);                                                                                     \
  char full[8192];                                                                                \
  if (all && ours_open(file, full) && fails(#name, full)) return failed;                          \
  return real(__VA_ARGS__)

int stat64(const char *path, struct stat64 *out) { ASKS(stat64, -1, AT_FDCWD, path, path, out); }
int lstat64(const char *path, struct stat64 *out) { ASKS(lstat64, -1, AT_FDCWD, path, path, out); }
int fstat64(int file, struct stat64 *out) { ASKS_OPEN(fstat64, -1, file, file, out); }
int fstatat64(int folder, const char *path, struct stat64 *out, int flags) { ASKS(fstatat64, -1, folder, path, folder, path, out, flags); }
int access(const char *path, int mode) { ASKS(access, -1, AT_FDCWD, path, path, mode); }
int faccessat(int folder, const char *path, int mode, int flags) { ASKS(faccessat, -1, folder, path, folder, path, mode, flags); }
ssize_t readlink(const char *path, char *out, size_t size) { ASKS(readlink, -1, AT_FDCWD, path, path, out, size); }
ssize_t readlinkat(int folder, const char *path, char *out, size_t size) { ASKS(readlinkat, -1, folder, path, folder, path, out, size); }
int chmod(const char *path, mode_t mode) { ASKS(chmod, -1, AT_FDCWD, path, path, mode); }
int fchmod(int file, mode_t mode) { ASKS_OPEN(fchmod, -1, file, file, mode); }
int utimensat(int folder, const char *path, const struct timespec times[2], int flags) { ASKS(utimensat, -1, folder, path, folder, path, times, flags); }
int truncate64(const char *path, off64_t size) { ASKS(truncate64, -1, AT_FDCWD, path, path, size); }
int flock(int file, int how) { ASKS_OPEN(flock, -1, file, file, how); }
DIR *opendir(const char *path) { ASKS(opendir, NULL, AT_FDCWD, path, path); }
DIR *fdopendir(int file) { ASKS_OPEN(fdopendir, NULL, file, file); }
struct dirent64 *readdir64(DIR *folder) { ASKS_OPEN(readdir64, NULL, dirfd(folder), folder); }
void *mmap64(void *at_place, size_t size, int how, int flags, int file, off64_t from) { ASKS_OPEN(mmap64, MAP_FAILED, file, at_place, size, how, flags, file, from); }
ssize_t sendfile64(int to, int file, off64_t *from, size_t size) { ASKS_OPEN(sendfile64, -1, to, to, file, from, size); }
ssize_t copy_file_range(int file, off64_t *from, int to, off64_t *place, size_t size, unsigned flags) { ASKS_OPEN(copy_file_range, -1, to, file, from, to, place, size, flags); }
