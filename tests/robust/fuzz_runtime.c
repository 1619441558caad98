/* Fuzzing what the C runtime reads: fuzz_runtime TARGET BASE WORK KEY SEED FIRST COUNT.
 *
 * Each round changes one file of the release BASE, writes it to its copy WORK, repairs the digests that would give the
 * change away (most of the time), opens WORK, and does everything with it that can be done. A round depends on SEED and
 * its number alone; where a sanitizer stops the program, it says which round that was. The target `corpus` takes what
 * once did harm: FOLDER/FIRST, FOLDER/FIRST + 1 …, where FOLDER is WORK.corpus, hold files that take the place of WORK's
 * for a round. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grid.h"
#include "index_fits.h"
#include "sha256.h"
#include "state.h"

void __sanitizer_set_death_callback(void (*)(void));
const void *__asan_region_is_poisoned(const void *, size_t);
void plain_sha256_add(precast_sha256 *, const void *, size_t);

enum { SPARE = 70000, DIGEST_AT = offsetof(precast_header, digest) };

typedef struct bytes { unsigned char *data; size_t size; } bytes;

static const char *target, *base, *work;
static unsigned char key[32];
static uint64_t state, seed, current_round, opened_rounds;

static void say_round(void) {
    fprintf(stderr, "\n%s: stopped in round %llu of seed %llu\n", target, (unsigned long long)current_round,
            (unsigned long long)seed);
}

static uint64_t random_bits(void) { /* splitmix64 */
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static uint64_t below(uint64_t limit) { return limit ? random_bits() % limit : 0; }
static int once_in(uint64_t times) { return !below(times); }

/* Numbers at the edges of a table with `count` records, and of machine words. */
static uint64_t odd_number(uint64_t count) {
    const uint64_t edges[] = {0, 1, 2, count, count - 1, count + 1, 255, 256, 0x7fff, 0xffff, 0x7fffffff, 0x80000000,
                              0xffffffff, UINT64_MAX, UINT64_MAX / 2, UINT64_MAX / 2 + 1};
    const uint64_t kinds = sizeof edges / sizeof *edges;
    uint64_t kind = below(kinds + 4);
    return kind < kinds ? edges[kind] : kind == kinds ? below(20) : kind == kinds + 1 ? below(count + 2)
                                    : kind == kinds + 2 ? random_bits() : UINT64_C(1) << below(64);
}

static bytes read_from(const char *folder, const char *name) {
    char path[8192];
    struct stat facts;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &facts)) {
        perror(path);
        exit(2);
    }
    bytes all = {malloc((size_t)facts.st_size), (size_t)facts.st_size};
    if (read(file, all.data, all.size) != (ssize_t)all.size)
        exit(2);
    close(file);
    return all;
}

static bytes read_base(const char *name) { return read_from(base, name); }

static void write_work(const char *name, const unsigned char *data, size_t size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", work, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || write(file, data, size) != (ssize_t)size) {
        perror(path);
        exit(2);
    }
    close(file);
}

/* The runtime's own, compiled as a release has it: most of the time goes here. That it may read its input is asked first. */
void precast_sha256_add(precast_sha256 *of, const void *data, size_t size) {
    const volatile unsigned char *wrong = size ? __asan_region_is_poisoned(data, size) : NULL;
    if (wrong && *wrong + 1) /* the sanitizer says what is wrong with it */
        abort();
    plain_sha256_add(of, data, size);
}

static void hash(const unsigned char *data, size_t size, unsigned char digest[32]) {
    precast_sha256 of;
    precast_sha256_start(&of);
    precast_sha256_add(&of, data, size);
    precast_sha256_finish(&of, digest);
}

/* ---- index ---- */

static void seal_index(unsigned char *data, size_t size) {
    memset(data + DIGEST_AT, 0, 32);
    unsigned char digest[32];
    hash(data, size, digest);
    memcpy(data + DIGEST_AT, digest, 32);
}

static void change_section(precast_header *header, size_t size) {
    precast_section *section = &header->sections[below(PRECAST_SECTIONS)];
    if (once_in(2))
        section->count = (uint32_t)odd_number(section->count);
    else
        section->offset = once_in(2) ? header->sections[below(PRECAST_SECTIONS)].offset : (uint32_t)odd_number(size);
}

static void change_record(unsigned char *data, size_t size) {
    const precast_header *header = (const precast_header *)data;
    unsigned number = once_in(3) ? PRECAST_UNITS : once_in(5) ? PRECAST_KERNELS : (unsigned)below(PRECAST_SECTIONS);
    precast_section section = header->sections[number];
    const size_t whole = precast_record_sizes[number];
    if (!section.count || section.offset + section.count * whole > size)
        return;
    unsigned char *record = data + section.offset + below(section.count) * whole;
    const unsigned char *other = data + section.offset + below(section.count) * whole;
    size_t width = whole == 1 ? 1 : (size_t)1 << below(4);
    size_t field = below(whole / width) * width;
    uint64_t value = odd_number(header->sections[below(PRECAST_SECTIONS)].count);
    if (once_in(4))
        memmove(record, other, whole);
    else if (once_in(4))
        memmove(record + field, other + field, width);
    else
        memcpy(record + field, &value, width);
}

static size_t change_index(unsigned char *data, size_t size) {
    for (uint64_t changes = 1 + below(3); changes; changes--) {
        uint64_t kind = below(16);
        if (kind == 0)
            change_section((precast_header *)data, size);
        else if (kind == 1)
            data[below(size)] ^= (unsigned char)(1u << below(8));
        else if (kind == 2 && size > sizeof(precast_header) + 64)
            ((precast_header *)data)->size = size -= below(64);
        else
            change_record(data, size);
    }
    return size;
}

/* The interface digest of an index whose records hold together, which is the last thing that is looked at. */
static void repair_interface(unsigned char *data) {
    precast_index index = {.header = (const precast_header *)data};
    const precast_section *sections = index.header->sections;
    index.strings = (const char *)data + sections[PRECAST_STRINGS].offset;
    index.kernels = (const void *)(data + sections[PRECAST_KERNELS].offset);
    index.arguments = (const void *)(data + sections[PRECAST_ARGUMENTS].offset);
    index.slots = (const void *)(data + sections[PRECAST_SLOTS].offset);
    index.axes = (const void *)(data + sections[PRECAST_AXES].offset);
    index.values = (const void *)(data + sections[PRECAST_AXIS_VALUES].offset);
    index.units = (const void *)(data + sections[PRECAST_UNITS].offset);
    index.kernel_count = sections[PRECAST_KERNELS].count;
    precast_digest_interface(&index, ((precast_header *)data)->interface);
}

static int is_of_another_interface(void) {
    precast_release *release;
    if (precast_open(work, NULL, NULL, NULL, &release) == PRECAST_OK)
        return precast_close(release), 0;
    return strstr(precast_error(), "interface digest") != NULL;
}

/* ---- everything that can be done with a release ---- */

static void launch_kernel(precast_release *release, uint32_t number) {
    static _Alignas(64) precast_tensor tensor = {.base = &tensor, .shape = {64, 64, 1, 1, 1}, .strides = {64, 1, 1, 1, 1},
                                                 .rank = 2};
    const precast_index *index = precast_index_of(release);
    const precast_kernel_record *kernel = &index->kernels[number];
    /* On the heap, with not a place more than the kernel has. */
    uint64_t *slots = malloc((kernel->slots.count + !kernel->slots.count) * sizeof *slots);
    int64_t *axes = malloc((kernel->axes.count + !kernel->axes.count) * sizeof *axes);
    uint8_t *types = malloc(kernel->slots.count + !kernel->slots.count);
    for (uint32_t i = 0; i < kernel->slots.count; i++) {
        int is_tensor = index->slots[kernel->slots.first + i].type == PRECAST_DESCRIPTOR;
        slots[i] = is_tensor || once_in(2) ? (uint64_t)(uintptr_t)&tensor : once_in(3) ? random_bits() : below(300);
        types[i] = once_in(2) ? 0 : (uint8_t)below(256);
    }
    for (uint32_t i = 0; i < kernel->axes.count; i++) {
        precast_span values = index->axes[kernel->axes.first + i].values;
        axes[i] = values.count && !once_in(8) ? index->values[values.first + below(values.count)].payload : (int64_t)below(3);
    }
    precast_grid grid = {(int64_t)below(4), 1, 1};
    precast_call call = {.kernel = number, .stream = once_in(2) ? PRECAST_CPU : NULL, .axes = axes, .slots = slots,
                         .axes_given = once_in(3) ? (uint32_t)random_bits() & ((1u << kernel->axes.count) - 1)
                                                  : PRECAST_GIVEN_BY_VALUE,
                         .types = once_in(2) ? types : NULL, .grid = once_in(2) ? &grid : NULL};
    precast_launch(release, &call);
    precast_launch_values(release, number, call.stream, axes, slots, call.grid);
    free(slots), free(axes), free(types);
}

static void use(precast_release *release) {
    static precast_unit units[512];
    const precast_index *index = precast_index_of(release);
    precast_set_threads(release, 1);
    size_t count = precast_query(release, units, 512);
    for (size_t i = 0; i < count && i < 512; i++)
        if (strlen(units[i].unit) + strlen(units[i].kernel) + strlen(units[i].target) == 0)
            exit(3); /* never: it reads them all */
    if (once_in(4))
        precast_preload(release, once_in(2) ? PRECAST_CPU : NULL, NULL);
    if (once_in(8))
        precast_selfcheck(release);
    for (uint32_t kernel = 0; kernel < index->kernel_count; kernel++)
        for (int i = 0; i < 2; i++)
            launch_kernel(release, kernel);
    if (once_in(2))
        precast_unload(release);
}

static void open_and_use(void) {
    precast_release *release;
    if (precast_open(work, NULL, NULL, NULL, &release) != PRECAST_OK)
        return;
    opened_rounds++;
    use(release);
    precast_close(release);
}

static void open_demanding(void) {
    char ring[4096];
    precast_release *release;
    snprintf(ring, sizeof ring, "%s/ring", work);
    precast_policy policy = {.keys = once_in(2) ? key : NULL, .key_count = 1, .key_ring = once_in(2) ? ring : NULL,
                             .name = once_in(2) ? "small" : NULL, .minimum_version = once_in(2) ? "1.2" : NULL};
    if (once_in(3))
        policy.keys = NULL, policy.key_count = 0, policy.key_ring = NULL;
    if (precast_open_with(work, NULL, NULL, &policy, &release) != PRECAST_OK)
        return;
    opened_rounds++;
    if (once_in(8))
        precast_selfcheck(release);
    precast_close(release);
}

/* ---- targets ---- */

static void fuzz_index(const bytes *index, unsigned char *data) {
    memcpy(data, index->data, index->size);
    size_t size = change_index(data, index->size);
    if (!once_in(50))
        seal_index(data, size);
    write_work("index.bin", data, size);
    if (is_of_another_interface()) {
        repair_interface(data);
        seal_index(data, size);
        write_work("index.bin", data, size);
    }
    open_and_use();
}

/* A field of an ELF file's header, or of a record of its tables, becomes an odd number. */
static void change_elf(unsigned char *image, size_t size) {
    size_t width = (size_t)1 << (1 + below(3)), from = once_in(2) ? 0 : size - 3 * 64;
    uint64_t value = odd_number(size);
    memcpy(image + from + below((from ? 3 * 64 : 64) / width) * width, &value, width);
}

/* Other spans, whose digests are right; images that say of themselves what is not so. */
static void fuzz_pack(const bytes *index, const bytes *pack, unsigned char *data) {
    unsigned char *changed = data + index->size + SPARE;
    size_t size = pack->size;
    memcpy(data, index->data, index->size);
    memcpy(changed, pack->data, size);
    precast_header *header = (precast_header *)data;
    precast_image_record *images = (void *)(data + header->sections[PRECAST_IMAGES].offset);
    precast_file_record *files = (void *)(data + header->sections[PRECAST_FILES].offset);
    precast_image_record *image = &images[below(header->sections[PRECAST_IMAGES].count)];
    for (uint64_t changes = below(4); changes; changes--)
        changed[below(size)] = once_in(2) ? 0 : (unsigned char)random_bits();
    if (once_in(3) && files[image->file].size == size)
        change_elf(changed + image->offset, image->size);
    if (once_in(4))
        size = below(size) + 1;
    if (once_in(3))
        image->offset = odd_number(size);
    if (once_in(3))
        image->size = odd_number(size);
    for (uint32_t i = 0; i < header->sections[PRECAST_FILES].count && !once_in(10); i++)
        if (files[i].size == pack->size) {
            files[i].size = size;
            hash(changed, size, files[i].digest);
        }
    for (uint32_t i = 0; i < header->sections[PRECAST_IMAGES].count && !once_in(10); i++)
        if (images[i].offset <= size && images[i].size <= size - images[i].offset && files[images[i].file].size == size)
            hash(changed + images[i].offset, images[i].size, images[i].digest);
    seal_index(data, index->size);
    write_work("index.bin", data, index->size);
    write_work("targets/cuda-90/steady.pack", changed, size);
    open_and_use();
}

static size_t change_text(const bytes *text, unsigned char *data) {
    size_t size = text->size;
    memcpy(data, text->data, size);
    for (uint64_t changes = 1 + below(4); changes && size > 2; changes--) {
        size_t place = below(size), more = below(200), from = below(text->size);
        switch (below(5)) {
        case 0: data[place] ^= (unsigned char)(1u << below(8)); break;
        case 1: data[place] = (unsigned char)"\"\\\n {}[]:,0\0\xff"[below(13)]; break;
        case 2: size = place; break;
        case 3:
            if (from + more > text->size || size + more > text->size + SPARE / 2)
                break;
            memmove(data + place + more, data + place, size - place);
            memcpy(data + place, text->data + from, more);
            size += more;
            break;
        default:
            more = more < size - place ? more : size - place;
            memmove(data + place, data + place + more, size - place - more);
            size -= more;
        }
    }
    return size;
}

/* The digest of a manifest's content over its text without what stands between strings. */
static void repair_manifest(unsigned char *data, size_t size) {
    enum { AT = sizeof "{\n \"content\": \"" - 1, REST = AT + 64 + sizeof "\",\n" - 1 };
    unsigned char digest[32], *compact = malloc(size + 1);
    size_t length = 0, quoted = 0;
    char digits[65];
    if (size < REST)
        return free(compact);
    compact[length++] = '{';
    for (size_t i = REST; i < size; i++) {
        if (!quoted && (data[i] == ' ' || data[i] == '\n'))
            continue;
        compact[length++] = data[i];
        if (quoted && data[i] == '\\' && i + 1 < size)
            compact[length++] = data[++i];
        else if (data[i] == '"')
            quoted = !quoted;
    }
    hash(compact, length, digest);
    free(compact);
    precast_hex(digest, digits);
    memcpy(data + AT, digits, 64);
}

static void fuzz_manifest(const bytes *manifest, unsigned char *data) {
    size_t size = change_text(manifest, data);
    if (!once_in(4))
        repair_manifest(data, size);
    write_work("manifest.json", data, size);
    open_demanding();
}

static void fuzz_signature(const bytes *signature, const bytes *ring, unsigned char *data) {
    const bytes *changed = once_in(2) ? signature : ring;
    write_work("manifest.json.sig", signature->data, signature->size);
    write_work("ring", ring->data, ring->size);
    size_t size = change_text(changed, data);
    write_work(changed == ring ? "ring" : "manifest.json.sig", data, size);
    open_demanding();
}

static void fuzz_grid(void) {
    uint32_t count = (uint32_t)below(once_in(4) ? 300 : 12), arguments = (uint32_t)below(4), depth = 0;
    precast_step_record *steps = calloc(count + !count, sizeof *steps);
    uint64_t *slots = malloc((arguments + !arguments) * sizeof *slots);
    precast_slot_record *types = calloc(arguments + !arguments, sizeof *types);
    int64_t result;
    for (uint32_t i = 0; i < count; i++) {
        precast_step_record *step = &steps[i];
        int is_value = depth < 2 || (count - i > depth && once_in(2));
        step->opcode = (uint32_t)(is_value ? below(2) : 2 + below(8));
        step->operand = step->opcode == 1 ? (int64_t)below(arguments + once_in(30)) : (int64_t)odd_number(5);
        depth += is_value ? 1 : -1u;
        if (once_in(200))
            step->opcode = (uint32_t)odd_number(10);
    }
    for (uint32_t i = 0; i < arguments; i++) {
        slots[i] = odd_number(7);
        types[i].type = (uint8_t)(1 + below(19));
    }
    if (precast_grid_fits(steps, count, arguments)) {
        opened_rounds++;
        precast_run_steps(steps, count, slots, types, "a kernel", &result);
    }
    free(steps), free(slots), free(types);
}

/* Copies files of a flat folder into WORK; `#` stands for `/` in their names. */
static void put_files(const char *folder, int from_base) {
    struct dirent *entry;
    DIR *files = opendir(folder);
    while (files && (entry = readdir(files))) {
        char name[256];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s", entry->d_name);
        for (char *sign = name; *sign; sign++)
            *sign = *sign == '#' ? '/' : *sign;
        bytes data = from_base ? read_base(name) : read_from(folder, entry->d_name);
        write_work(name, data.data, data.size);
        free(data.data);
    }
    closedir(files);
}

static void take_from_corpus(void) {
    char folder[4096];
    snprintf(folder, sizeof folder, "%s.corpus/%llu", work, (unsigned long long)current_round);
    put_files(folder, 0);
    bytes index = read_from(work, "index.bin");
    if (index.size > sizeof(precast_header) && is_of_another_interface()) {
        repair_interface(index.data);
        seal_index(index.data, index.size);
        write_work("index.bin", index.data, index.size);
    }
    free(index.data);
    for (int turn = 0; turn < 4; turn++)
        open_and_use(), open_demanding();
    put_files(folder, 1);
}

int main(int count, char **words) {
    if (count != 8)
        return 2;
    target = words[1], base = words[2], work = words[3];
    for (int i = 0; i < 32; i++) {
        unsigned byte;
        sscanf(words[4] + 2 * i, "%2x", &byte);
        key[i] = (unsigned char)byte;
    }
    seed = strtoull(words[5], NULL, 0);
    uint64_t first = strtoull(words[6], NULL, 0), rounds = strtoull(words[7], NULL, 0);
    bytes index = read_base("index.bin"), pack = read_base("targets/cuda-90/steady.pack");
    bytes manifest = read_base("manifest.json"), signature = read_base("manifest.json.sig"), ring = read_base("ring");
    size_t largest = index.size + pack.size + manifest.size + ring.size;
    unsigned char *data = malloc(largest + 2 * SPARE);
    __sanitizer_set_death_callback(say_round);
    dlopen("libcrypto.so.3", RTLD_NOW); /* once, not in each round */
    for (current_round = first; current_round < first + rounds; current_round++) {
        state = seed * UINT64_C(1000003) + current_round;
        if (!strcmp(target, "index"))
            fuzz_index(&index, data);
        else if (!strcmp(target, "pack"))
            fuzz_pack(&index, &pack, data);
        else if (!strcmp(target, "manifest"))
            fuzz_manifest(&manifest, data);
        else if (!strcmp(target, "signature"))
            fuzz_signature(&signature, &ring, data);
        else if (!strcmp(target, "corpus"))
            take_from_corpus();
        else
            fuzz_grid();
    }
    printf("%s: seed %llu, %llu rounds, %llu were taken\n", target, (unsigned long long)seed, (unsigned long long)rounds,
           (unsigned long long)opened_rounds);
    free(data), free(index.data), free(pack.data), free(manifest.data), free(signature.data), free(ring.data);
    return 0;
}
