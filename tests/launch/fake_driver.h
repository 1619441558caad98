/* What the drivers for tests have in common: calls are counted, fail and dawdle on demand; modules, launches and memory
 * are kept. Each driver includes it once.
 *
 * An image is an ELF file, of which all sections are read. The first one's text is `fake <symbol> <parameter sizes,
 * comma-separated>`; a launch copies its parameters by them. A stream's address says its device: (device + 1) << 16 |
 * number. Compiled with OLD a driver lacks what older ones lack; DEVICES says how many devices it has. */
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

#ifndef DEVICES
#define DEVICES 1
#endif

enum { MOST_DEVICES = 4, MOST_MODULES = 4096, MOST_RULES = 16 };
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, INVALID_HANDLE = 400, NOT_FOUND = 500 };

typedef struct module { char symbol[256]; int sizes[128]; int count, loaded, device; } module;
typedef struct rule { char function[64]; int code, after; } rule;
typedef struct called { const char *name; int count; } called;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static module modules[MOST_MODULES];
static rule rules[MOST_RULES];
static called calls[64];
static int module_count, launch_count, live_modules, live, load_delay_ms;
static int device_count = DEVICES, cooperative = 1;
static _Thread_local fake_launch last;

/* Notes the call; the code that a rule gives it. */
static int note(const char *function) {
    int code = 0;
    pthread_mutex_lock(&lock);
    called *entry = calls;
    while (entry->name && strcmp(entry->name, function))
        entry++;
    entry->name = function;
    entry->count++;
    for (int i = 0; i < MOST_RULES; i++)
        if (rules[i].code && !strcmp(rules[i].function, function) && !rules[i].after--) {
            code = rules[i].code;
            rules[i].code = 0;
        }
    pthread_mutex_unlock(&lock);
    return code;
}

#define CALL(name) do { int code = note(#name); if (code) return code; } while (0)

static int add_locked(int *counter, int by) {
    pthread_mutex_lock(&lock);
    int value = *counter += by;
    pthread_mutex_unlock(&lock);
    return value;
}

void fake_fail(const char *function, int code, int after) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_RULES; i++)
        if (!rules[i].code) {
            snprintf(rules[i].function, sizeof rules[i].function, "%s", function);
            rules[i].code = code, rules[i].after = after;
            break;
        }
    pthread_mutex_unlock(&lock);
}

int fake_count(const char *function) {
    int count = 0;
    pthread_mutex_lock(&lock);
    for (called *entry = calls; entry->name; entry++)
        count += strcmp(entry->name, function) ? 0 : entry->count;
    pthread_mutex_unlock(&lock);
    return count;
}

void fake_forget(void) {
    pthread_mutex_lock(&lock);
    memset(calls, 0, sizeof calls);
    launch_count = 0;
    pthread_mutex_unlock(&lock);
}

void fake_slow_loads(int milliseconds) { load_delay_ms = milliseconds; }
void fake_cooperative(int can) { cooperative = can; }
int fake_live_allocations(void) { return add_locked(&live, 0); }
int fake_live_modules(void) { return add_locked(&live_modules, 0); }
int fake_launch_count(void) { return add_locked(&launch_count, 0); }
const fake_launch *fake_last_launch(void) { return &last; }

/* A section's bytes, for whoever calls to free, with an end to their text. Believes what the image says. */
static char *read_section(const char *image, const Elf64_Ehdr *header, int number) {
    Elf64_Shdr section;
    memcpy(&section, image + header->e_shoff + number * sizeof section, sizeof section);
    size_t size = section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS ? 0 : section.sh_size;
    char *bytes = malloc(size + 1);
    if (bytes) {
        memcpy(bytes, image + section.sh_offset * !!size, size);
        bytes[size] = 0;
    }
    return bytes;
}

/* The text of an image that is one, cut to the size of `text`. */
static int read_image(const char *image, char text[1024]) {
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof header);
    if (memcmp(image, ELFMAG, SELFMAG))
        return 0;
    for (int i = 0; i < header.e_shnum; i++) {
        char *bytes = read_section(image, &header, i);
        if (i == 1 && bytes)
            snprintf(text, 1024, "%s", bytes);
        free(bytes);
    }
    return !strncmp(text, "fake ", 5);
}

static int load_module(void **found, const char *image, int device) {
    char sizes[512] = "", text[1024] = "", *rest;
    if (load_delay_ms)
        usleep((useconds_t)load_delay_ms * 1000);
    if (!read_image(image, text))
        return INVALID_IMAGE;
    pthread_mutex_lock(&lock);
    module *made = &modules[module_count++];
    memset(made, 0, sizeof *made);
    sscanf(text, "fake %255s %511s", made->symbol, sizes);
    for (char *part = strtok_r(sizes, ",", &rest); part && made->count < 128; part = strtok_r(NULL, ",", &rest))
        made->sizes[made->count++] = atoi(part);
    made->loaded = 1;
    made->device = device;
    live_modules++;
    pthread_mutex_unlock(&lock);
    *found = made;
    return 0;
}

static int unload_module(module *gone, int device) {
    pthread_mutex_lock(&lock);
    int known = gone->loaded && gone->device == device;
    gone->loaded = 0;
    live_modules--;
    pthread_mutex_unlock(&lock);
    return known ? 0 : INVALID_HANDLE;
}

static int find_function(void **function, module *in, const char *symbol) {
    *function = in;
    return strcmp(in->symbol, symbol) ? NOT_FOUND : 0;
}

/* Where a parameter lies in a buffer of all of them: each as its size aligns it. */
static int place_of(const module *function, int parameter) {
    int at = 0;
    for (int i = 0;; at += function->sizes[i++]) {
        int alignment = function->sizes[i] > 8 ? 64 : function->sizes[i] > 0 ? function->sizes[i] : 1;
        at = (at + alignment - 1) / alignment * alignment;
        if (i == parameter)
            return at;
    }
}

/* The buffer of `extra`, whose keys are 1 for it and 2 for its size; NULL when it is not as the function needs it. */
static const char *find_buffer(const module *function, void **extra) {
    int final = function->count - 1;
    if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4])
        return NULL;
    size_t wanted = final < 0 ? 0 : (size_t)place_of(function, final) + (size_t)function->sizes[final];
    return *(size_t *)extra[3] == wanted ? extra[1] : NULL;
}

/* A launch on `device`, the calling thread's current one. */
static int record(const module *function, int device, const fake_config *with, void **parameters, void **extra) {
    const char *buffer = extra ? find_buffer(function, extra) : NULL;
    size_t stream = (size_t)with->stream;
    if (!function->loaded || function->device != device || (stream > 2 && (int)(stream >> 16) - 1 != device))
        return INVALID_HANDLE;
    if ((extra && !buffer) || (extra && parameters))
        return INVALID_VALUE;
    memset(&last, 0, sizeof last);
    snprintf(last.symbol, sizeof last.symbol, "%s", function->symbol);
    memcpy(last.grid, with->grid, sizeof last.grid);
    last.threads = with->block[0], last.shared_bytes = with->shared_bytes, last.stream = with->stream;
    last.parameter_count = function->count, last.device = device;
    for (int i = 0, at = 0; i < function->count; at += function->sizes[i++]) {
        last.offsets[i] = at;
        if (!buffer && function->sizes[i] == 128)
            last.map_misaligned |= (size_t)parameters[i] % 64 != 0;
        memcpy(last.bytes + at, buffer ? buffer + place_of(function, i) : parameters[i], (size_t)function->sizes[i]);
    }
    last.attribute_count = (int)with->attribute_count;
    if (with->attribute_count)
        memcpy(last.attributes, with->attributes, with->attribute_count * sizeof *with->attributes);
    add_locked(&launch_count, 1);
    return 0;
}

static inline int allocate_block(void **memory, size_t bytes) {
    *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*memory)
        return OUT_OF_MEMORY;
    memset(*memory, 0xee, bytes);
    add_locked(&live, 1);
    return 0;
}
