/* A driver is told where an image begins, not where it ends: it believes the sizes inside. So all that an image says it
 * has must lie in it: the tables of sections and segments, what each of these holds, and the sections' names. */
#include "elf_file.h"

#include <elf.h>
#include <string.h>

typedef struct whole { const unsigned char *data; size_t size; } whole;

static int holds(whole image, uint64_t offset, uint64_t bytes) {
    return offset <= image.size && bytes <= image.size - offset;
}

/* Counts that do not fit into the header, and stand elsewhere, are refused. */
static int holds_table(whole image, uint64_t offset, uint16_t count, uint16_t entry, size_t expected) {
    return count < SHN_LORESERVE && entry == expected && holds(image, offset, count * expected);
}

static Elf64_Shdr section_at(whole image, const Elf64_Ehdr *header, uint16_t number) {
    Elf64_Shdr section;
    memcpy(&section, image.data + header->e_shoff + number * sizeof section, sizeof section);
    return section;
}

static int names_end(whole image, const Elf64_Shdr *names) {
    return names->sh_type == SHT_STRTAB && names->sh_size && holds(image, names->sh_offset, names->sh_size) &&
           !image.data[names->sh_offset + names->sh_size - 1];
}

static int holds_sections(whole image, const Elf64_Ehdr *header) {
    if (!header->e_shnum)
        return !header->e_shoff; /* else the count stands in the first section */
    if (!holds_table(image, header->e_shoff, header->e_shnum, header->e_shentsize, sizeof(Elf64_Shdr)) ||
        header->e_shstrndx >= header->e_shnum)
        return 0;
    Elf64_Shdr names = section_at(image, header, header->e_shstrndx);
    if (!names_end(image, &names))
        return 0;
    for (uint16_t i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section = section_at(image, header, i);
        int is_empty = section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS;
        if (section.sh_name >= names.sh_size || (!is_empty && !holds(image, section.sh_offset, section.sh_size)))
            return 0;
    }
    return 1;
}

static int holds_segments(whole image, const Elf64_Ehdr *header) {
    if (header->e_phnum &&
        !holds_table(image, header->e_phoff, header->e_phnum, header->e_phentsize, sizeof(Elf64_Phdr)))
        return 0;
    for (uint16_t i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, image.data + header->e_phoff + i * sizeof segment, sizeof segment);
        if (!holds(image, segment.p_offset, segment.p_filesz))
            return 0;
    }
    return 1;
}

int precast_elf_is_whole(const unsigned char *data, size_t size) {
    const whole image = {data, size};
    Elf64_Ehdr header;
    if (size < sizeof header)
        return 0;
    memcpy(&header, data, sizeof header);
    return !memcmp(header.e_ident, ELFMAG, SELFMAG) && header.e_ident[EI_CLASS] == ELFCLASS64 &&
           header.e_ident[EI_DATA] == ELFDATA2LSB && holds_sections(image, &header) && holds_segments(image, &header);
}
