/* Images: found in a pack or a shared object, compared with their digest, handed to the driver or the linker. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "sha256.h"
#include "state.h"

static precast_status compare_digest(const unsigned char *data, size_t size, const unsigned char expected[32],
                                     const char *what, const char *file) {
    unsigned char digest[32];
    precast_sha256 hash;
    precast_sha256_start(&hash);
    precast_sha256_add(&hash, data, size);
    precast_sha256_finish(&hash, digest);
    if (!memcmp(digest, expected, 32))
        return PRECAST_OK;
    char found[65], wanted[65];
    precast_hex(digest, found), precast_hex(expected, wanted);
    return precast_fail(PRECAST_DAMAGED, "%s in %s has digest %.12s, index.bin says %.12s", what, file, found, wanted);
}

static precast_status map_file(const precast_release *release, uint32_t file, precast_view *view) {
    const precast_file_record *record = &release->index.files[file];
    char *path = precast_join(release->folder, precast_text(&release->index, record->path));
    if (!path)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for a path");
    precast_status status = precast_map_file(path, view);
    if (status == PRECAST_OK && view->size != record->size) {
        status = precast_fail(PRECAST_DAMAGED, "%s is %zu bytes long, index.bin says %llu", path, view->size,
                              (unsigned long long)record->size);
        precast_unmap_file(view);
    }
    free(path);
    return status;
}

/* A pack stays mapped from its first use until the release is closed. */
static precast_status find_pack(precast_release *release, uint32_t file, precast_view *view) {
    precast_status status = PRECAST_OK;
    pthread_mutex_lock(&release->lock);
    if (!release->packs[file].data)
        status = map_file(release, file, &release->packs[file]);
    *view = release->packs[file];
    pthread_mutex_unlock(&release->lock);
    return status;
}

precast_status precast_check_image(precast_release *release, uint32_t image, const char *unit) {
    const precast_image_record *record = &release->index.images[image];
    precast_view view;
    precast_status status = find_pack(release, record->file, &view);
    if (status == PRECAST_OK)
        status = compare_digest(view.data + record->offset, record->size, record->digest, unit,
                                precast_text(&release->index, release->index.files[record->file].path));
    return status;
}

precast_status precast_check_file(precast_release *release, uint32_t file) {
    const precast_file_record *record = &release->index.files[file];
    const char *path = precast_text(&release->index, record->path);
    precast_view view = {NULL, 0};
    precast_status status = map_file(release, file, &view);
    if (status == PRECAST_OK)
        status = compare_digest(view.data, view.size, record->digest, "what is", path);
    precast_unmap_file(&view);
    return status;
}

static precast_status load_on_gpu(precast_release *release, const precast_driver *driver,
                                  const precast_image_record *record, const char *unit, void **module) {
    precast_view view;
    precast_status status = find_pack(release, record->file, &view);
    if (status != PRECAST_OK)
        return status;
    int code = driver->load(view.data + record->offset, module);
    /* The driver has its own copy now. */
    precast_forget_pages(&view, record->offset, record->size);
    return code ? precast_driver_failed(driver, code, "loading the image of", unit) : PRECAST_OK;
}

static precast_status open_shared_object(precast_release *release, const precast_image_record *record, void **module) {
    const precast_file_record *file = &release->index.files[record->file];
    precast_status status = precast_check_file(release, record->file);
    if (status != PRECAST_OK)
        return status;
    char *path = precast_join(release->folder, precast_text(&release->index, file->path));
    if (!path)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for a path");
    *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*module)
        status = precast_fail(PRECAST_SYSTEM_FAILED, "cannot open the CPU units: %s", dlerror());
    free(path);
    return status;
}

precast_status precast_load_image(precast_release *release, precast_device *device, uint32_t unit, void **module) {
    const precast_unit_record *record = &release->index.units[unit];
    const precast_image_record *image = &release->index.images[record->image];
    const char *text = precast_text(&release->index, record->text);
    if (!device->driver)
        return open_shared_object(release, image, module);
    precast_status status = precast_check_image(release, record->image, text);
    return status == PRECAST_OK ? load_on_gpu(release, device->driver, image, text, module) : status;
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
    }
    pthread_mutex_unlock(&device->loading);
    return status;
}
