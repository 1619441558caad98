#include "file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

precast_status precast_map_file(const char *path, precast_view *view) {
    struct stat facts;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return precast_fail(PRECAST_NO_RELEASE, "cannot open %s: %s", path, strerror(errno));
    if (fstat(file, &facts) || !S_ISREG(facts.st_mode) || facts.st_size == 0) {
        close(file);
        return precast_fail(PRECAST_DAMAGED, "%s is empty or not a file", path);
    }
    void *data = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    int reason = errno;
    close(file);
    if (data == MAP_FAILED)
        return precast_fail(PRECAST_SYSTEM_FAILED, "cannot map %s: %s", path, strerror(reason));
    view->data = data;
    view->size = (size_t)facts.st_size;
    return PRECAST_OK;
}

void precast_unmap_file(precast_view *view) {
    if (view->data)
        munmap((void *)view->data, view->size);
    view->data = NULL;
    view->size = 0;
}

void precast_forget_pages(const precast_view *view, size_t offset, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t start = (offset + page - 1) / page * page, end = (offset + size) / page * page;
    if (start < end)
        madvise((void *)(view->data + start), end - start, MADV_DONTNEED);
}

char *precast_join(const char *folder, const char *name) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

char *precast_folder_of(const void *address) {
    Dl_info facts;
    char *path, *slash;
    if (!dladdr(address, &facts) || !facts.dli_fname || !(path = realpath(facts.dli_fname, NULL)))
        return NULL;
    for (int level = 0; level < 2; level++) {
        slash = strrchr(path, '/');
        if (!slash || slash == path) {
            free(path);
            return NULL;
        }
        *slash = 0;
    }
    return path;
}
