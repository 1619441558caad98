/* CPU units: a shared object is copied into memory that is then sealed, compared with its digest there, and opened by
 * the linker from there. Who writes to the file or changes what its name means comes too early or too late. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sha256.h"
#include "state.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U /* asked for since Linux 6.3, unknown before */
#endif

enum { CHUNK = 1 << 16, MOST_PATH = 256 };
static const char own_files[] = "/proc/self/fd/";

/* By its number: glibc has a function for it from 2.27 on. */
static int create_memory(unsigned flags) {
    return (int)syscall(SYS_memfd_create, "precast", flags);
}

static int make_memory(void) {
    int memory = create_memory(MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    return memory < 0 && errno == EINVAL ? create_memory(MFD_CLOEXEC | MFD_ALLOW_SEALING) : memory;
}

static precast_status write_all(int memory, const unsigned char *data, size_t size) {
    while (size) {
        ssize_t count = write(memory, data, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for a copy of the CPU units: %s",
                                strerror(errno));
        data += count, size -= (size_t)count;
    }
    return PRECAST_OK;
}

static precast_status copy_file(const precast_file *file, const char *path, int memory) {
    unsigned char chunk[CHUNK];
    precast_status status = PRECAST_OK;
    for (uint64_t offset = 0; offset < file->size && status == PRECAST_OK; offset += CHUNK) {
        size_t count = file->size - offset < CHUNK ? (size_t)(file->size - offset) : CHUNK;
        status = precast_read_span(file, path, offset, count, chunk);
        if (status == PRECAST_OK)
            status = write_all(memory, chunk, count);
    }
    if (status == PRECAST_OK && fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        status = precast_fail(PRECAST_SYSTEM_FAILED, "cannot seal a copy of the CPU units: %s", strerror(errno));
    return status;
}

static precast_status compare_sealed(int memory, const precast_file_record *record, const char *name) {
    unsigned char digest[32];
    precast_sha256 hash;
    void *data = mmap(NULL, (size_t)record->size, PROT_READ, MAP_PRIVATE, memory, 0);
    if (data == MAP_FAILED)
        return precast_fail(PRECAST_SYSTEM_FAILED, "cannot map a copy of the CPU units: %s", strerror(errno));
    precast_sha256_start(&hash);
    precast_sha256_add(&hash, data, (size_t)record->size);
    precast_sha256_finish(&hash, digest);
    munmap(data, (size_t)record->size);
    return precast_compare_digest(digest, record->digest, "what is", name);
}

/* The linker takes two equal paths for one library, and a descriptor's number is soon used again: the memory's own
 * number makes each path another, as `/` and `./` between its folders. */
static void write_path(int memory, char path[MOST_PATH]) {
    struct stat facts = {0};
    fstat(memory, &facts);
    size_t length = strlen(strcpy(path, own_files));
    for (int bit = 0; bit < 64; bit++)
        length += (size_t)sprintf(path + length, "%s", (uint64_t)facts.st_ino >> bit & 1 ? "./" : "/");
    sprintf(path + length, "%d", memory);
}

/* `shown` is what an error calls the library. */
static precast_status link_units(const char *path, const char *shown, void **module) {
    *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*module)
        return PRECAST_OK;
    const char *reason = dlerror(), *rest = reason + strlen(path);
    if (strncmp(reason, path, strlen(path)))
        return precast_fail(PRECAST_SYSTEM_FAILED, "cannot open the CPU units: %s", reason);
    return precast_fail(PRECAST_SYSTEM_FAILED, "cannot open the CPU units: %s%s", shown, rest);
}

static precast_status link_copy(const precast_release *release, uint32_t number, const precast_file *file,
                                const char *path, int memory, void **module) {
    const precast_file_record *record = &release->index.files[number];
    char own_path[MOST_PATH];
    precast_status status = copy_file(file, path, memory);
    if (status == PRECAST_OK)
        status = compare_sealed(memory, record, precast_text(&release->index, record->path));
    if (status != PRECAST_OK)
        return status;
    write_path(memory, own_path);
    if (!access(own_path, R_OK))
        return link_units(own_path, path, module);
    /* Without /proc the linker must be given the file's name, whose meaning may change meanwhile. */
    if (atomic_load(&release->demanding))
        return precast_fail(PRECAST_UNTRUSTED, "a signature is required, and without /proc the CPU units that are checked "
                            "may not be those that run");
    return link_units(path, path, module);
}

precast_status precast_open_library(precast_release *release, uint32_t number, void **module) {
    precast_file file;
    char *path;
    precast_status status = precast_open_listed(release, number, &path, &file);
    if (status != PRECAST_OK)
        return status;
    int memory = make_memory();
    if (memory < 0)
        status = precast_fail(PRECAST_SYSTEM_FAILED, "cannot make memory for a copy of the CPU units: %s",
                              strerror(errno));
    else
        status = link_copy(release, number, &file, path, memory, module);
    if (memory >= 0)
        close(memory);
    precast_shut_file(&file);
    free(path);
    return status;
}
