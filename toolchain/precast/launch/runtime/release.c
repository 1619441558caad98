/* Opening, closing and asking about a release. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

static precast_status open_index(precast_release *release, const unsigned char *interface,
                                 const precast_policy *policy) {
    char *path = precast_join(release->folder, "index.bin");
    if (!path)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for a path");
    precast_status status = precast_open_index(path, interface, &release->index);
    free(path);
    return status == PRECAST_OK && policy ? precast_demand(release, policy) : status;
}

/* The folder's own path, which neither a change of the working folder nor one of a link turns into another. */
static precast_status find_folder(precast_release *release, const char *folder, const void *anchor) {
    release->folder = folder ? realpath(folder, NULL) : precast_folder_of(anchor);
    if (release->folder)
        return PRECAST_OK;
    if (folder)
        return precast_fail(PRECAST_NO_RELEASE, "cannot open %s/index.bin: %s", folder, strerror(errno));
    return precast_fail(PRECAST_NO_RELEASE, "cannot tell which release this library lies in; name its folder");
}

static precast_status fill(precast_release *release, const char *folder, const void *anchor,
                           const unsigned char *interface, const precast_policy *policy) {
    pthread_mutex_init(&release->meeting, NULL);
    pthread_mutex_init(&release->lock, NULL);
    precast_status status = find_folder(release, folder, anchor);
    if (status == PRECAST_OK)
        status = open_index(release, interface, policy);
    if (status != PRECAST_OK)
        return status;
    for (uint32_t i = 0; i < release->index.unit_count; i++)
        release->backends |= 1u << (release->index.units[i].backend & 7);
    release->usual = calloc(release->index.kernel_count + 1, sizeof *release->usual);
    release->pool = precast_open_pool();
    if (!release->usual || !release->pool)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for a release's tables");
    return PRECAST_OK;
}

precast_status precast_open_with(const char *folder, const void *anchor, const unsigned char *interface,
                                 const precast_policy *policy, precast_release **opened) {
    if (!opened)
        return precast_fail(PRECAST_BAD_ARGUMENT, "the address for the opened release is NULL");
    *opened = NULL;
    precast_release *release = calloc(1, sizeof *release);
    if (!release)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory to open a release");
    precast_status status = fill(release, folder, anchor, interface, policy);
    if (status != PRECAST_OK) {
        precast_close(release);
        return status;
    }
    precast_list_open(release);
    *opened = release;
    return PRECAST_OK;
}

precast_release *precast_open_threads(void) {
    precast_release *release = calloc(1, sizeof *release);
    if (!release)
        return NULL;
    pthread_mutex_init(&release->meeting, NULL);
    pthread_mutex_init(&release->lock, NULL);
    release->pool = precast_open_pool();
    if (!release->pool) {
        precast_close(release);
        return NULL;
    }
    precast_list_open(release);
    return release;
}

precast_status precast_open(const char *folder, const void *anchor, const unsigned char *interface,
                            const unsigned char *public_key, precast_release **opened) {
    const precast_policy policy = {.keys = public_key, .key_count = 1};
    return precast_open_with(folder, anchor, interface, public_key ? &policy : NULL, opened);
}

precast_status precast_demand(precast_release *release, const precast_policy *policy) {
    if (!release)
        return precast_not_open();
    precast_status status = precast_check_policy(release->folder, &release->index, policy);
    if (status == PRECAST_OK && precast_demands_signature(policy))
        atomic_store(&release->demanding, 1);
    return status;
}

precast_status precast_open_signed(const char *folder, const void *anchor, const unsigned char *interface,
                                   const unsigned char *public_key, precast_release **opened) {
    if (public_key)
        return precast_open(folder, anchor, interface, public_key, opened);
    if (opened)
        *opened = NULL;
    return precast_fail(PRECAST_UNTRUSTED, "a signature is required, and the key to check it with is NULL");
}

void precast_close(precast_release *release) {
    if (!release)
        return;
    precast_unlist_open(release);
    precast_unload(release);
    precast_free_devices(release);
    precast_close_pool(release->pool);
    precast_drop_view(&release->index.view);
    pthread_mutex_destroy(&release->lock);
    pthread_mutex_destroy(&release->meeting);
    free(release->usual);
    free(release->folder);
    free(release);
}

static precast_status find_current(precast_release *release, precast_stream stream, precast_device **device) {
    const precast_driver *driver;
    precast_call call = {.stream = stream};
    precast_status status = precast_choose_driver(release, &call, &driver);
    return status == PRECAST_OK ? precast_find_device(release, driver, stream, device) : status;
}

precast_status precast_preload(precast_release *release, precast_stream stream, const char *kernel) {
    precast_device *device;
    int found = 0;
    if (!release)
        return precast_not_open();
    precast_status status = find_current(release, stream, &device);
    for (uint32_t i = 0; status == PRECAST_OK && i < release->index.kernel_count; i++) {
        precast_span units = release->index.kernels[i].units;
        if (kernel && strcmp(kernel, precast_text(&release->index, release->index.kernels[i].name)))
            continue;
        found = 1;
        for (uint32_t unit = units.first; status == PRECAST_OK && unit < units.first + units.count; unit++) {
            const precast_ready *ready;
            if (precast_runs_on(&release->index, &release->index.units[unit], device) &&
                !precast_is_superseded(&release->index, device, unit))
                status = precast_load_unit(release, device, unit, &ready);
        }
    }
    if (status == PRECAST_OK && !found && kernel)
        status = precast_fail(PRECAST_NO_UNIT, "the release has no kernel `%s`", kernel);
    return status;
}

precast_status precast_unload(precast_release *release) {
    precast_status status = PRECAST_OK;
    if (!release)
        return precast_not_open();
    for (uint32_t kernel = 0; release->usual && kernel < release->index.kernel_count; kernel++)
        atomic_store(&release->usual[kernel], NULL);
    for (precast_device *device = atomic_load(&release->devices); device; device = device->next) {
        precast_status own = precast_unload_device(release, device);
        status = status == PRECAST_OK ? own : status;
    }
    return status;
}

const char *precast_row_text(const precast_index *index, uint32_t rule) {
    return rule ? precast_text(index, index->rules[rule - 1].row) : NULL;
}

size_t precast_query(precast_release *release, precast_unit *units, size_t capacity) {
    precast_device *device = NULL, *cpu = NULL;
    if (!release)
        return precast_not_open(), 0;
    const precast_index *index = &release->index;
    find_current(release, NULL, &device);
    find_current(release, PRECAST_CPU, &cpu);
    for (uint32_t i = 0; units && i < index->unit_count && i < capacity; i++) {
        const precast_unit_record *unit = &index->units[i];
        const char *text = precast_text(index, unit->text), *at = strrchr(text, '@');
        precast_device *on = unit->backend == PRECAST_HOST ? cpu : device;
        units[i] = (precast_unit){
            .unit = text,
            .kernel = precast_text(index, index->kernels[unit->kernel].name),
            .target = at ? at + 1 : text,
            .fits = on && precast_runs_on(index, unit, on),
            .loaded = on && precast_ready_unit(on, i) != NULL,
            .warps = (int32_t)unit->warps,
            .ctas = (int32_t)unit->ctas,
            .image_bytes = (int64_t)(unit->backend == PRECAST_HOST ? unit->code_bytes : index->images[unit->image].size),
            .shared_bytes = unit->shared_bytes,
            .registers = unit->registers,
            .spill_bytes = unit->spill_bytes,
            .row = on ? precast_row_text(index, atomic_load_explicit(&on->rows[i], memory_order_relaxed)) : NULL,
        };
    }
    return index->unit_count;
}

precast_status precast_selfcheck(precast_release *release) {
    if (!release)
        return precast_not_open();
    precast_status status = precast_check_manifest(release->folder, &release->index);
    for (uint32_t i = 0; status == PRECAST_OK && i < release->index.file_count; i++)
        status = precast_check_file(release, i);
    for (uint32_t i = 0; status == PRECAST_OK && i < release->index.unit_count; i++)
        status = precast_check_image(release, release->index.units[i].image,
                                     precast_text(&release->index, release->index.units[i].text));
    return status;
}

precast_status precast_set_threads(precast_release *release, int count) {
    if (!release)
        return precast_not_open();
    if (count < 0 || count > PRECAST_MOST_THREADS)
        return precast_fail(PRECAST_BAD_ARGUMENT, "a CPU launch cannot use %d threads: 1 to %d, or 0 for as many as "
                            "the process may run on", count, PRECAST_MOST_THREADS);
    precast_pool_threads(release->pool, count);
    return PRECAST_OK;
}

const precast_index *precast_index_of(const precast_release *release) {
    return &release->index;
}

const char *precast_folder(const precast_release *release) {
    return release->folder;
}
