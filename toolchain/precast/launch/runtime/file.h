/* Files: what kind and size they are before their bytes are read, and bytes that nobody else can change. */
#ifndef PRECAST_FILE_H
#define PRECAST_FILE_H

#include "precast.h"

/* Bytes of a file in this process's own memory: whatever becomes of the file later, they stay. */
typedef struct precast_view {
    unsigned char *data; /* NULL: none */
    size_t size;
} precast_view;

/* A file that was opened once: a change of its name leads nowhere else. */
typedef struct precast_file {
    int descriptor;
    uint64_t size;
} precast_file;

/* What a sane release stays below, so that a hole of a terabyte is no reason to read it. */
#define PRECAST_MOST_INDEX_BYTES (UINT64_C(256) << 20)
#define PRECAST_MOST_IMAGE_BYTES (UINT64_C(1) << 30)
#define PRECAST_MOST_FILE_BYTES (UINT64_C(4) << 30)

/* Opens a file that has bytes, at most `most`; never waits for a pipe or a device. */
precast_status precast_open_file(const char *path, uint64_t most, precast_file *file);
void precast_shut_file(precast_file *file);

/* Reads `size` bytes from `offset`; `path` stands for the file in an error. */
precast_status precast_read_span(const precast_file *file, const char *path, uint64_t offset, size_t size,
                                 unsigned char *data);

/* The whole file, to be dropped. */
precast_status precast_read_file(const char *path, uint64_t most, precast_view *view);
void precast_drop_view(precast_view *view);

/* "folder/name", to be freed; NULL when there is no memory. */
char *precast_join(const char *folder, const char *name);

/* Whether a path of an index stays inside its release: parts joined with `/`, none of them empty, `.` or `..`. */
int precast_stays_inside(const char *path);

/* The folder above the one of the shared object that `address` lies in, to be freed; NULL when not to be found. */
char *precast_folder_of(const void *address);

#endif
