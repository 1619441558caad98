#include "file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

precast_status precast_open_file(const char *path, uint64_t most, precast_file *file) {
    struct stat facts;
    file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file->descriptor < 0)
        return precast_fail(PRECAST_NO_RELEASE, "cannot open %s: %s", path, strerror(errno));
    precast_status status = PRECAST_OK;
    if (fstat(file->descriptor, &facts) || !S_ISREG(facts.st_mode) || facts.st_size == 0)
        status = precast_fail(PRECAST_DAMAGED, "%s is empty or not a file", path);
    else if ((uint64_t)facts.st_size > most)
        status = precast_fail(PRECAST_DAMAGED, "%s is %llu bytes long, more than the %llu that it may have", path,
                              (unsigned long long)facts.st_size, (unsigned long long)most);
    else
        file->size = (uint64_t)facts.st_size;
    if (status != PRECAST_OK)
        precast_shut_file(file);
    return status;
}

void precast_shut_file(precast_file *file) {
    if (file->descriptor >= 0)
        close(file->descriptor);
    file->descriptor = -1;
}

precast_status precast_read_span(const precast_file *file, const char *path, uint64_t offset, size_t size,
                                 unsigned char *data) {
    while (size) {
        ssize_t count = pread(file->descriptor, data, size, (off_t)offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return precast_fail(PRECAST_SYSTEM_FAILED, "cannot read %s: %s", path, strerror(errno));
        if (!count)
            return precast_fail(PRECAST_DAMAGED, "%s became shorter while it was read", path);
        data += count, offset += (uint64_t)count, size -= (size_t)count;
    }
    return PRECAST_OK;
}

static precast_status read_all(const precast_file *file, const char *path, precast_view *view) {
    view->size = (size_t)file->size;
    view->data = malloc(view->size);
    if (!view->data)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for %s", path);
    precast_status status = precast_read_span(file, path, 0, view->size, view->data);
    if (status != PRECAST_OK)
        precast_drop_view(view);
    return status;
}

precast_status precast_read_file(const char *path, uint64_t most, precast_view *view) {
    precast_file file;
    precast_status status = precast_open_file(path, most, &file);
    if (status != PRECAST_OK)
        return status;
    status = read_all(&file, path, view);
    precast_shut_file(&file);
    return status;
}

void precast_drop_view(precast_view *view) {
    free(view->data);
    view->data = NULL;
    view->size = 0;
}

int precast_stays_inside(const char *path) {
    for (;;) {
        size_t part = strcspn(path, "/");
        if (!part || (part == 1 && path[0] == '.') || (part == 2 && path[0] == '.' && path[1] == '.'))
            return 0;
        if (!path[part])
            return 1;
        path += part + 1;
    }
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
