/* Whether an image is a whole ELF file. */
#ifndef PRECAST_ELF_FILE_H
#define PRECAST_ELF_FILE_H

#include <stddef.h>

int precast_elf_is_whole(const unsigned char *image, size_t size);

#endif
