/* From a call to a launch: the backend, the device, the unit, the grid. */
#include "grid.h"
#include "state.h"

/* The first backend that the release has units for and the machine has a device for. */
static precast_status choose_backend(precast_release *release, int *backend) {
    *backend = atomic_load_explicit(&release->automatic, memory_order_relaxed);
    if (*backend)
        return PRECAST_OK;
    if (release->backends & 1u << PRECAST_CUDA && precast_cuda())
        *backend = PRECAST_CUDA;
    else if (release->backends & 1u << PRECAST_HIP && precast_hip())
        *backend = PRECAST_HIP;
    else if (release->backends & 1u << PRECAST_HOST)
        *backend = PRECAST_HOST;
    if (!*backend) /* the driver has said why */
        return release->backends ? PRECAST_NO_DEVICE : precast_fail(PRECAST_NO_UNIT, "the release has no units");
    atomic_store_explicit(&release->automatic, *backend, memory_order_relaxed);
    return PRECAST_OK;
}

precast_status precast_choose_driver(precast_release *release, const precast_call *call,
                                     const precast_driver **driver) {
    int backend = call->stream == PRECAST_CPU ? PRECAST_HOST : call->backend;
    precast_status status = backend ? PRECAST_OK : choose_backend(release, &backend);
    *driver = NULL;
    if (status != PRECAST_OK || backend == PRECAST_HOST)
        return status;
    *driver = backend == PRECAST_CUDA ? precast_cuda() : precast_hip();
    return *driver ? PRECAST_OK : PRECAST_NO_DEVICE;
}

static precast_status find_grid(const precast_index *index, const precast_unit_record *unit, const precast_call *call,
                                int64_t grid[3]) {
    const precast_kernel_record *kernel = &index->kernels[call->kernel];
    const char *text = precast_text(index, unit->text);
    if (call->grid) {
        grid[0] = call->grid->x, grid[1] = call->grid->y, grid[2] = call->grid->z;
    } else {
        for (int i = 0; i < 3; i++) {
            precast_status status =
                precast_run_steps(index->steps + unit->grid_first[i], unit->grid_count[i], call->slots,
                                  index->slots + kernel->slots.first, text, &grid[i]);
            if (status != PRECAST_OK)
                return status;
        }
    }
    for (int i = 0; i < 3; i++) {
        if (grid[i] < 0)
            return precast_fail(PRECAST_BAD_GRID, "the grid of %s is negative along %c: %lld", text, "xyz"[i],
                                (long long)grid[i]);
        if (grid[i] > INT32_MAX)
            return precast_fail(PRECAST_BAD_GRID, "the grid of %s is %lld along %c, more than 2147483647", text,
                                (long long)grid[i], "xyz"[i]);
    }
    int64_t plane = grid[0] * grid[1], programs;
    if (__builtin_mul_overflow(plane, grid[2], &programs) || programs > INT64_MAX / 4)
        return precast_fail(PRECAST_BAD_GRID, "the grid of %s has too many programs", text);
    return PRECAST_OK;
}

static precast_status launch_here(precast_release *release, const precast_driver *driver, const precast_call *call) {
    precast_device *device;
    int64_t grid[3];
    uint32_t unit;
    precast_status status = precast_find_device(release, driver, call->stream, &device);
    if (status == PRECAST_OK)
        status = precast_select(release, device, call, &unit);
    if (status == PRECAST_OK)
        status = find_grid(&release->index, &release->index.units[unit], call, grid);
    if (status != PRECAST_OK || !grid[0] || !grid[1] || !grid[2])
        return status;
    return driver ? precast_launch_gpu(release, device, unit, call, grid)
                  : precast_launch_cpu(release, device, unit, call, grid);
}

precast_status precast_launch(precast_release *release, const precast_call *call) {
    const precast_driver *driver;
    void *previous = NULL;
    precast_status status = precast_choose_driver(release, call, &driver);
    if (status != PRECAST_OK || !driver || !call->device_given)
        return status == PRECAST_OK ? launch_here(release, driver, call) : status;
    int code = driver->push(call->device, &previous);
    if (code)
        return precast_driver_failed(driver, code, "going to the tensors' device", NULL);
    status = launch_here(release, driver, call);
    code = driver->pop(previous);
    return code && status == PRECAST_OK ? precast_driver_failed(driver, code, "going back to the current device", NULL)
                                        : status;
}

precast_status precast_launch_values(precast_release *release, uint32_t kernel, precast_stream stream,
                                     const int64_t *axes, const uint64_t *slots, const precast_grid *grid) {
    precast_call call = {.kernel = kernel, .stream = stream, .axes = axes, .slots = slots, .grid = grid};
    if (!release)
        return precast_fail(PRECAST_NO_RELEASE, "the release is not open");
    return precast_launch(release, &call);
}
