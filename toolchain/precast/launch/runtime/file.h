/* Read-only views of files, and paths inside a release. */
#ifndef PRECAST_FILE_H
#define PRECAST_FILE_H

#include "precast.h"

typedef struct precast_view {
    const unsigned char *data; /* NULL: not mapped */
    size_t size;
} precast_view;

precast_status precast_map_file(const char *path, precast_view *view);
void precast_unmap_file(precast_view *view);

/* Gives the pages of a span back to the system; they are read again when they are needed. */
void precast_forget_pages(const precast_view *view, size_t offset, size_t size);

/* "folder/name", to be freed; NULL when there is no memory. */
char *precast_join(const char *folder, const char *name);

/* The folder above the one of the shared object that `address` lies in, to be freed; NULL when not to be found. */
char *precast_folder_of(const void *address);

#endif
