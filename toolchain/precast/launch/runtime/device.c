/* Devices that a release has met, and the functions loaded on each. */
#include <stdlib.h>

#include "table.h"

static precast_device *find_known(precast_release *release, const precast_driver *driver, uint64_t identity) {
    precast_device *device = atomic_load_explicit(&release->devices, memory_order_acquire);
    while (device && (device->driver != driver || device->identity != identity))
        device = device->next;
    return device;
}

static void free_device(precast_device *device) {
    pthread_mutex_destroy(&device->loading);
    free(device->cells_of_kernel);
    free(device->cells);
    free(device->order);
    free(device->candidates);
    free(device->tests);
    for (uint32_t kernel = 0; device->tables && kernel < device->kernel_count; kernel++)
        precast_free_table(device->tables[kernel]);
    free(device->tables);
    free(device->rows);
    free(device->modules);
    free(device->images);
    free(device->ready);
    free(device);
}

void precast_free_devices(precast_release *release) {
    precast_device *device = atomic_load(&release->devices);
    atomic_store(&release->devices, NULL);
    while (device) {
        precast_device *next = device->next;
        free_device(device);
        device = next;
    }
}

static precast_status describe(const precast_driver *driver, precast_device *device) {
    if (!driver) {
        device->facts.arch = precast_cpu_level();
        device->facts.ordinal = -1;
        for (int i = 0; i < 3; i++)
            device->facts.grid_limits[i] = INT32_MAX;
        /* Level 1 is plain x86-64, which no unit is built for. */
        static const char *const names[] = {
            "cpu", "cpu:x86-64", "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:x86-64-v4-vnni",
            "cpu:x86-64-v4-bf16", "cpu:x86-64-v4-amx", [PRECAST_AARCH64] = "cpu:aarch64",
        };
        for (int i = 0; (device->facts.name[i] = names[device->facts.arch][i]); i++)
            continue;
        precast_cpu_name(device->facts.product, sizeof device->facts.product);
        return PRECAST_OK;
    }
    int code = driver->context(&device->context);
    if (!code)
        code = driver->describe(&device->facts);
    return code ? precast_driver_failed(driver, code, "asking for the device's facts", NULL) : PRECAST_OK;
}

static precast_status make_tables(const precast_index *index, precast_device *device) {
    precast_status status = PRECAST_OK;
    device->kernel_count = index->kernel_count;
    device->tables = calloc(index->kernel_count + 1, sizeof *device->tables);
    device->rows = calloc(index->unit_count + 1, sizeof *device->rows);
    if (!device->tables || !device->rows)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for the tables of %s", device->facts.name);
    for (uint32_t kernel = 0; status == PRECAST_OK && kernel < index->kernel_count; kernel++)
        status = precast_make_table(index, device, kernel, &device->tables[kernel]);
    return status;
}

static precast_status make_device(precast_release *release, const precast_driver *driver, uint64_t identity,
                                  precast_device **made) {
    precast_device *device = calloc(1, sizeof *device);
    if (!device)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for a device's tables");
    device->driver = driver;
    device->identity = identity;
    pthread_mutex_init(&device->loading, NULL);
    precast_status status = describe(driver, device);
    if (status == PRECAST_OK)
        status = precast_list_candidates(&release->index, device);
    if (status == PRECAST_OK)
        status = make_tables(&release->index, device);
    if (status == PRECAST_OK) {
        device->modules = calloc(release->index.image_count + 1, sizeof *device->modules);
        device->images = calloc(release->index.image_count + 1, sizeof *device->images);
        device->ready = calloc(release->index.unit_count + 1, sizeof *device->ready);
        if (!device->modules || !device->images || !device->ready)
            status = precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for the tables of %s", device->facts.name);
    }
    if (status != PRECAST_OK) {
        free_device(device);
        return status;
    }
    *made = device;
    return PRECAST_OK;
}

static precast_status meet_device(precast_release *release, const precast_driver *driver, uint64_t identity,
                                  precast_device **device) {
    precast_status status = PRECAST_OK;
    pthread_mutex_lock(&release->meeting);
    *device = find_known(release, driver, identity);
    if (!*device && (status = make_device(release, driver, identity, device)) == PRECAST_OK) {
        (*device)->next = atomic_load(&release->devices);
        atomic_store_explicit(&release->devices, *device, memory_order_release);
    }
    pthread_mutex_unlock(&release->meeting);
    return status;
}

precast_status precast_find_device(precast_release *release, const precast_driver *driver, precast_stream stream,
                                   precast_device **device) {
    uint64_t identity = 0;
    if (driver) {
        int code = driver->current(&identity);
        if (!code && !identity && !(code = driver->enter(stream)))
            code = driver->current(&identity);
        if (code)
            return precast_driver_failed(driver, code, "looking for the current device", NULL);
    }
    *device = find_known(release, driver, identity);
    return *device ? PRECAST_OK : meet_device(release, driver, identity, device);
}

precast_device *precast_current_device(precast_release *release, const precast_driver *driver) {
    uint64_t identity = 0;
    return driver->current(&identity) || !identity ? NULL : find_known(release, driver, identity);
}

/* The slow way to a function, under the device's lock: others that want a loaded one do not come here. */
static precast_status load_function(precast_release *release, precast_device *device, uint32_t unit, void **function) {
    const precast_unit_record *record = &release->index.units[unit];
    const char *text = precast_text(&release->index, record->text);
    void **module = &device->modules[record->image];
    precast_status status = *module ? PRECAST_OK : precast_load_image(release, device, unit, module);
    if (status != PRECAST_OK)
        return status;
    if (!device->driver)
        return precast_find_entry(*module, precast_text(&release->index, record->symbol), text, function);
    int code = device->driver->find(*module, precast_text(&release->index, record->symbol), function);
    if (code)
        return precast_driver_failed(device->driver, code, "looking for the kernel's symbol in the image of", text);
    if (record->flags & PRECAST_COOPERATIVE && !device->facts.cooperative)
        return precast_fail(PRECAST_NO_UNIT, "%s needs a cooperative launch, which this device does not have", text);
    if (record->shared_bytes > device->facts.shared_limit)
        return precast_fail(PRECAST_NO_UNIT, "%s needs %u bytes of shared memory, this device gives a block %u", text,
                            record->shared_bytes, device->facts.shared_limit);
    code = device->driver->prepare(*function, record);
    return code ? precast_driver_failed(device->driver, code, "setting the attributes of", text) : PRECAST_OK;
}

precast_status precast_load_unit(precast_release *release, precast_device *device, uint32_t unit,
                                 const precast_ready **ready) {
    precast_status status = PRECAST_OK;
    void *function = NULL;
    pthread_mutex_lock(&device->loading);
    precast_ready *made = atomic_load(&device->ready[unit]);
    if (!made && (status = load_function(release, device, unit, &function)) == PRECAST_OK) {
        made = precast_make_ready(&release->index, device, unit, function);
        if (!made)
            status = precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for a unit's tables");
        atomic_store_explicit(&device->ready[unit], made, memory_order_release);
    }
    pthread_mutex_unlock(&device->loading);
    *ready = made;
    return status;
}
