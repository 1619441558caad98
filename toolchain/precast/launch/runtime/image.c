/* Images: found in a pack or a shared object, compared with their digest, handed to the driver or the linker. What was
 * compared is what is handed on: a copy in this process's memory, which no change of a file or its name reaches. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "elf_file.h"
#include "sha256.h"
#include "state.h"

enum { PAGE = 4096, CHUNK = 1 << 16 };

precast_status precast_compare_digest(const unsigned char digest[32], const unsigned char expected[32],
                                      const char *what, const char *file) {
    if (!memcmp(digest, expected, 32))
        return PRECAST_OK;
    char found[65], wanted[65];
    precast_hex(digest, found), precast_hex(expected, wanted);
    return precast_fail(PRECAST_DAMAGED, "%s in %s has digest %.12s, index.bin says %.12s", what, file, found, wanted);
}

precast_status precast_open_listed(const precast_release *release, uint32_t number, char **path, precast_file *file) {
    const precast_file_record *record = &release->index.files[number];
    *path = precast_join(release->folder, precast_text(&release->index, record->path));
    if (!*path)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for a path");
    precast_status status = precast_open_file(*path, UINT64_MAX, file);
    if (status == PRECAST_OK && file->size != record->size) {
        status = precast_fail(PRECAST_DAMAGED, "%s is %llu bytes long, index.bin says %llu", *path,
                              (unsigned long long)file->size, (unsigned long long)record->size);
        precast_shut_file(file);
    }
    if (status != PRECAST_OK)
        free(*path);
    return status;
}

/* Compares a span of a file with a digest, without keeping it. */
static precast_status compare_span(const precast_file *file, const char *path, uint64_t offset, uint64_t size,
                                   const unsigned char expected[32], const char *what, const char *name) {
    unsigned char chunk[CHUNK], digest[32];
    precast_status status = PRECAST_OK;
    precast_sha256 hash;
    precast_sha256_start(&hash);
    while (size && status == PRECAST_OK) {
        size_t count = size < CHUNK ? (size_t)size : CHUNK;
        status = precast_read_span(file, path, offset, count, chunk);
        if (status == PRECAST_OK)
            precast_sha256_add(&hash, chunk, count);
        offset += count, size -= count;
    }
    if (status != PRECAST_OK)
        return status;
    precast_sha256_finish(&hash, digest);
    return precast_compare_digest(digest, expected, what, name);
}

precast_status precast_check_image(precast_release *release, uint32_t image, const char *unit) {
    const precast_image_record *record = &release->index.images[image];
    precast_file file;
    char *path;
    precast_status status = precast_open_listed(release, record->file, &path, &file);
    if (status != PRECAST_OK)
        return status;
    status = compare_span(&file, path, record->offset, record->size, record->digest, unit,
                          precast_text(&release->index, release->index.files[record->file].path));
    precast_shut_file(&file);
    free(path);
    return status;
}

precast_status precast_check_file(precast_release *release, uint32_t number) {
    const precast_file_record *record = &release->index.files[number];
    precast_file file;
    char *path;
    precast_status status = precast_open_listed(release, number, &path, &file);
    if (status != PRECAST_OK)
        return status;
    status = compare_span(&file, path, 0, record->size, record->digest, "what is",
                          precast_text(&release->index, record->path));
    precast_shut_file(&file);
    free(path);
    return status;
}

/* A copy of the image at the start of a page, as where a pack is mapped; its digest is right, and it is whole. */
static precast_status copy_image(precast_release *release, const precast_image_record *record, const char *unit,
                                 precast_view *copy) {
    unsigned char digest[32];
    precast_sha256 hash;
    precast_file file;
    char *path;
    if (!record->size)
        return precast_fail(PRECAST_DAMAGED, "the image of %s is empty", unit);
    precast_status status = precast_open_listed(release, record->file, &path, &file);
    if (status != PRECAST_OK)
        return status;
    copy->size = (size_t)record->size;
    copy->data = aligned_alloc(PAGE, (copy->size + PAGE - 1) / PAGE * PAGE);
    status = copy->data ? precast_read_span(&file, path, record->offset, copy->size, copy->data)
                        : precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for the image of %s", unit);
    precast_shut_file(&file);
    free(path);
    if (status != PRECAST_OK)
        return status;
    precast_sha256_start(&hash);
    precast_sha256_add(&hash, copy->data, copy->size);
    precast_sha256_finish(&hash, digest);
    status = precast_compare_digest(digest, record->digest, unit,
                                    precast_text(&release->index, release->index.files[record->file].path));
    if (status == PRECAST_OK && !precast_elf_is_whole(copy->data, copy->size))
        status = precast_fail(PRECAST_DAMAGED, "the image of %s is no whole ELF file", unit);
    return status;
}

static precast_status load_on_gpu(precast_release *release, precast_device *device, const precast_unit_record *unit,
                                  void **module) {
    const char *text = precast_text(&release->index, unit->text);
    precast_view copy = {NULL, 0};
    precast_status status = copy_image(release, &release->index.images[unit->image], text, &copy);
    if (status == PRECAST_OK) {
        int code = device->driver->load(copy.data, module);
        if (code)
            status = precast_driver_failed(device->driver, code, "loading the image of", text);
    }
    /* CUDA has its own copy now; HIP may read the image as long as the module is loaded. */
    if (status == PRECAST_OK && device->driver->backend == PRECAST_HIP)
        device->images[unit->image] = copy;
    else
        precast_drop_view(&copy);
    return status;
}

precast_status precast_load_image(precast_release *release, precast_device *device, uint32_t unit, void **module) {
    const precast_unit_record *record = &release->index.units[unit];
    if (device->driver)
        return load_on_gpu(release, device, record, module);
    return precast_open_library(release, release->index.images[record->image].file, module);
}

precast_status precast_unload_device(precast_release *release, precast_device *device) {
    precast_status status = PRECAST_OK;
    pthread_mutex_lock(&device->loading);
    for (uint32_t unit = 0; unit < release->index.unit_count; unit++)
        free(atomic_exchange(&device->ready[unit], NULL));
    for (uint32_t image = 0; image < release->index.image_count; image++) {
        void *module = device->modules[image];
        device->modules[image] = NULL;
        if (!module)
            continue;
        int code = device->driver ? device->driver->unload(device->identity, device->context, module) : dlclose(module);
        if (code && device->driver)
            status = precast_driver_failed(device->driver, code, "unloading an image from", device->facts.name);
        precast_drop_view(&device->images[image]);
    }
    pthread_mutex_unlock(&device->loading);
    return status;
}
