/* From a call to a launch: the backend, the device, the unit, the grid. */
#include <stdio.h>
#include <string.h>

#include "grid.h"
#include "state.h"

/* What most launches run lies close together, the rest apart: after the driver's own work little of it is in the
 * nearest caches, and each line more is felt. */
#define CLOSE __attribute__((always_inline))
#define APART __attribute__((noinline))
#define HOT __attribute__((hot))

/* Why there is no GPU for the call: what each driver said, or that there is nothing to run on one. */
static APART precast_status explain_no_gpu(const precast_release *release, const char *reasons) {
    if (!release->backends)
        return precast_fail(PRECAST_NO_UNIT, "the release has no units");
    return precast_fail(PRECAST_NO_DEVICE, "%s", reasons[0] ? reasons : "the stream is a GPU's, and the release has "
                                                                        "units for the CPU alone");
}

/* The first backend that the release has units for and the machine has a device for. A driver that is there and does
 * not start ends the search, as what the call points to may well lie on its device. */
static precast_status choose_backend(precast_release *release, precast_stream stream, int *backend) {
    char reasons[PRECAST_MESSAGE_BYTES] = "";
    size_t length = 0;
    *backend = atomic_load_explicit(&release->automatic, memory_order_relaxed);
    if (*backend && (*backend != PRECAST_HOST || !stream))
        return PRECAST_OK;
    for (*backend = PRECAST_CUDA; *backend != PRECAST_HOST; ++*backend) {
        if (!(release->backends & 1u << *backend))
            continue;
        precast_found found = *backend == PRECAST_CUDA ? precast_cuda() : precast_hip();
        if (found.driver)
            break;
        if (!found.absent)
            return PRECAST_NO_DEVICE;
        length += (size_t)snprintf(reasons + length, sizeof reasons - length, "%s%s", length ? "; " : "", precast_error());
    }
    if (*backend == PRECAST_HOST && (stream || !(release->backends & 1u << PRECAST_HOST)))
        return explain_no_gpu(release, reasons);
    atomic_store_explicit(&release->automatic, *backend, memory_order_relaxed);
    return PRECAST_OK;
}

precast_status precast_choose_driver(precast_release *release, const precast_call *call,
                                     const precast_driver **driver) {
    int backend = call->stream == PRECAST_CPU ? PRECAST_HOST : call->backend;
    precast_status status = backend ? PRECAST_OK : choose_backend(release, call->stream, &backend);
    *driver = NULL;
    if (status != PRECAST_OK || backend == PRECAST_HOST)
        return status;
    *driver = backend == PRECAST_CUDA ? precast_cuda().driver : precast_hip().driver;
    if (!*driver)
        return PRECAST_NO_DEVICE;
    atomic_store_explicit(&release->driver, *driver, memory_order_release);
    return PRECAST_OK;
}

/* The driver of the last launch that had one, where this call means the same. */
static const precast_driver *find_usual_driver(precast_release *release, const precast_call *call) {
    const precast_driver *driver = atomic_load_explicit(&release->driver, memory_order_acquire);
    int backend = call->backend ? call->backend : atomic_load_explicit(&release->automatic, memory_order_relaxed);
    return driver && driver->backend == backend && call->stream != PRECAST_CPU ? driver : NULL;
}

static precast_status explain_grid(const char *text, const int64_t grid[3]) {
    for (int i = 0; i < 3; i++) {
        if (grid[i] < 0)
            return precast_fail(PRECAST_BAD_GRID, "the grid of %s is negative along %c: %lld", text, "xyz"[i],
                                (long long)grid[i]);
        if (grid[i] > INT32_MAX)
            return precast_fail(PRECAST_BAD_GRID, "the grid of %s is %lld along %c, more than 2147483647", text,
                                (long long)grid[i], "xyz"[i]);
    }
    return precast_fail(PRECAST_BAD_GRID, "the grid of %s has too many programs", text);
}

static precast_status find_dimension(const precast_index *index, const precast_unit_record *unit,
                                     const precast_call *call, int dimension, int64_t *size) {
    const precast_step_record *steps = index->steps + unit->grid_first[dimension];
    uint32_t count = unit->grid_count[dimension];
    if (precast_is_constant(steps, count))
        return *size = steps->operand, PRECAST_OK;
    return precast_run_steps(steps, count, call->slots, index->slots + index->kernels[call->kernel].slots.first,
                             precast_text(index, unit->text), size);
}

static precast_status find_grid(const precast_index *index, const precast_unit_record *unit,
                                const precast_ready *ready, const precast_call *call, int64_t grid[3]) {
    precast_status status = PRECAST_OK;
    int64_t programs;
    if (call->grid)
        grid[0] = call->grid->x, grid[1] = call->grid->y, grid[2] = call->grid->z;
    else if (!precast_has_grid(unit))
        return precast_fail(PRECAST_BAD_GRID, "%s has no grid in its spec: call `%s[grid](...)`",
                            precast_text(index, unit->text), precast_text(index, index->kernels[unit->kernel].name));
    else if (ready && ready->constant_grid)
        grid[0] = ready->grid[0], grid[1] = ready->grid[1], grid[2] = ready->grid[2];
    else if ((status = find_dimension(index, unit, call, 0, &grid[0])) != PRECAST_OK ||
             (status = find_dimension(index, unit, call, 1, &grid[1])) != PRECAST_OK ||
             (status = find_dimension(index, unit, call, 2, &grid[2])) != PRECAST_OK)
        return status;
    if ((uint64_t)(grid[0] | grid[1] | grid[2]) > INT32_MAX ||
        __builtin_mul_overflow(grid[0] * grid[1], grid[2], &programs) || programs > INT64_MAX / 4)
        return explain_grid(precast_text(index, unit->text), grid);
    return PRECAST_OK;
}

static APART precast_status explain_launch(const precast_release *release, const precast_shortcut *shortcut, int code) {
    return precast_driver_failed(shortcut->device->driver, code, "launching",
                                 precast_text(&release->index, release->index.units[shortcut->unit].text));
}

/* All parameters in one buffer, which the driver takes faster than an array of their places. */
static inline CLOSE precast_status launch_straight(const precast_release *release, const precast_ready *ready,
                                                    precast_stream stream, const uint64_t *slots, uint32_t x,
                                                    uint32_t y, uint32_t z) {
    const precast_shortcut *shortcut = &ready->shortcut;
    unsigned char buffer[PRECAST_MOST_DIRECT_BYTES + PRECAST_MOST_HIDDEN_BYTES];
    size_t bytes = shortcut->parameter_bytes;
    void *extra[] = {PRECAST_EXTRA_BUFFER, buffer, PRECAST_EXTRA_BYTES, &bytes, NULL};
    for (const precast_move *move = shortcut->moves, *end = move + shortcut->move_count; move < end; move++)
        memcpy(buffer + move->place, &slots[move->slot], sizeof *slots);
    memset(buffer + shortcut->hidden_at, 0, PRECAST_MOST_HIDDEN_BYTES);
    int code = shortcut->direct.start(shortcut->function, x, y, z, shortcut->threads, 1, 1, shortcut->shared_bytes,
                                      stream, NULL, extra);
    return __builtin_expect(code, 0) ? explain_launch(release, shortcut, code) : PRECAST_OK;
}

static precast_status launch_unit(precast_release *release, precast_device *device, uint32_t unit,
                                  const precast_ready *ready, const precast_call *call) {
    int64_t grid[3];
    precast_status status = find_grid(&release->index, &release->index.units[unit], ready, call, grid);
    if (status != PRECAST_OK || !grid[0] || !grid[1] || !grid[2])
        return status;
    if (!ready && (status = precast_load_unit(release, device, unit, &ready)) != PRECAST_OK)
        return status;
    if (ready->shortcut.direct.start) {
        if (atomic_load_explicit(&release->usual[call->kernel], memory_order_relaxed) != ready)
            atomic_store_explicit(&release->usual[call->kernel], ready, memory_order_release);
        if (!precast_exceeds(device, 1, grid)) /* else it is explained below */
            return launch_straight(release, ready, call->stream, call->slots, (uint32_t)grid[0], (uint32_t)grid[1],
                                   (uint32_t)grid[2]);
    }
    return device->driver ? precast_launch_gpu(release, device, unit, ready, call, grid)
                          : precast_launch_cpu(release, device, unit, ready, call, grid);
}

static precast_status launch_on(precast_release *release, precast_device *device, const precast_call *call) {
    uint32_t unit;
    precast_status status = precast_select(release, device, call, &unit);
    if (status != PRECAST_OK)
        return status;
    const precast_ready *ready = precast_ready_unit(device, unit);
    if (!call->chosen)
        return launch_unit(release, device, unit, ready, call);
    if (!ready && (status = precast_load_unit(release, device, unit, &ready)) != PRECAST_OK)
        return status;
    uint32_t rule = atomic_load_explicit(&device->rows[unit], memory_order_relaxed);
    *call->chosen = (precast_chosen){unit, ready->function, precast_row_text(&release->index, rule)};
    return PRECAST_OK;
}

static precast_status launch_here(precast_release *release, const precast_driver *driver, const precast_call *call) {
    precast_device *device;
    precast_status status = precast_find_device(release, driver, call->stream, &device);
    return status == PRECAST_OK ? launch_on(release, device, call) : status;
}

/* On the device that the call names, which becomes current meanwhile. */
static precast_status launch_there(precast_release *release, const precast_driver *driver, const precast_call *call) {
    precast_visit visit;
    precast_device *device = precast_current_device(release, driver);
    if (device && device->facts.ordinal == call->device)
        return launch_on(release, device, call);
    int code = driver->push(call->device, &visit);
    if (code)
        return precast_driver_failed(driver, code, "going to the tensors' device", NULL);
    precast_status status = launch_here(release, driver, call);
    code = driver->pop(&visit);
    return code && status == PRECAST_OK ? precast_driver_failed(driver, code, "going back to the current device", NULL)
                                        : status;
}

static APART precast_status launch_anew(precast_release *release, const precast_call *call) {
    const precast_driver *driver = find_usual_driver(release, call);
    precast_status status = driver ? PRECAST_OK : precast_choose_driver(release, call, &driver);
    if (status != PRECAST_OK)
        return status;
    return driver && call->device_given ? launch_there(release, driver, call) : launch_here(release, driver, call);
}

precast_status precast_choose(precast_release *release, const precast_call *call, precast_chosen *chosen) {
    precast_call choosing = *call;
    choosing.chosen = chosen;
    return launch_anew(release, &choosing);
}

/* With a grid of its own, or where there is no usual unit. */
static APART precast_status launch_values(precast_release *release, const precast_ready *usual, uint32_t kernel,
                                         precast_stream stream, const int64_t *axes, const uint64_t *slots,
                                         const precast_grid *grid) {
    precast_call call = {.kernel = kernel, .stream = stream, .axes = axes, .axes_given = PRECAST_GIVEN_BY_VALUE,
                         .slots = slots, .grid = grid};
    if (!release)
        return precast_not_open();
    return usual ? launch_unit(release, usual->shortcut.device, usual->shortcut.unit, usual, &call)
                 : launch_anew(release, &call);
}

/* Which axes do not say the unit's value; an axis that is not given differs unless it may be left out. */
static inline CLOSE uint32_t find_other_axes(const precast_shortcut *shortcut, const precast_call *call) {
    uint32_t differ = 0, any = 0, by_value = call->axes_given == PRECAST_GIVEN_BY_VALUE;
    for (uint32_t i = 0; i < shortcut->axis_count; i++) {
        differ |= (uint32_t)(call->axes[i] != shortcut->axes[i]) << i;
        any |= (uint32_t)(call->axes[i] == PRECAST_ANY) << i;
    }
    uint32_t left_out = by_value ? any : ~call->axes_given & ((UINT32_C(1) << shortcut->axis_count) - 1);
    uint32_t may = shortcut->sole_axes | (call->types ? shortcut->typed_axes : 0u);
    return (differ & ~left_out) | (left_out & ~may);
}

static APART int meets_all(const precast_release *release, uint32_t unit, const uint64_t *slots) {
    return precast_meets_all(&release->index, &release->index.units[unit], slots);
}

/* The unit of the kernel's last launch, where the same choice would be made again. */
static inline CLOSE const precast_ready *find_usual(const precast_release *release, const precast_call *call) {
    const precast_ready *ready = atomic_load_explicit(&release->usual[call->kernel], memory_order_acquire);
    const uint64_t *slots = call->slots;
    unsigned long long identity = 0;
    uint32_t answers = 0;
    if (!ready)
        return NULL;
    const precast_shortcut *shortcut = &ready->shortcut;
    uint32_t differs = find_other_axes(shortcut, call);
    for (uint32_t i = 0; i < shortcut->question_count; i++) {
        const precast_question *question = &shortcut->questions[i];
        uint32_t equal = (slots[question->slot] & question->mask) == question->value;
        answers |= (equal ^ question->negated) << i;
    }
    for (uint32_t i = 0; i < shortcut->last_need; i++)
        if ((answers & shortcut->needs[i]) == shortcut->needs[i])
            return NULL;
    if (differs | (shortcut->needs[shortcut->last_need] & ~answers) || !precast_keeps(ready, slots) ||
        shortcut->direct.identify(NULL, &identity) || identity != shortcut->identity)
        return NULL;
    if (__builtin_expect(shortcut->requires, 0) && !meets_all(release, shortcut->unit, slots))
        return NULL;
    return ready;
}

/* With the grid that is the same for all launches. */
static inline CLOSE precast_status launch_as_usual(const precast_release *release, const precast_ready *ready,
                                                    precast_stream stream, const uint64_t *slots) {
    const uint32_t *grid = ready->shortcut.grid;
    return launch_straight(release, ready, stream, slots, grid[0], grid[1], grid[2]);
}

HOT precast_status precast_launch(precast_release *release, const precast_call *call) {
    const precast_ready *ready = NULL;
    if (call->stream != PRECAST_CPU && (!call->backend || call->backend == PRECAST_CUDA))
        ready = find_usual(release, call);
    if (!ready || (call->device_given && call->device != ready->shortcut.ordinal) ||
        (call->types && memcmp(call->types, ready->types, ready->slot_count)))
        return launch_anew(release, call);
    if (call->grid || !ready->shortcut.grid[0])
        return launch_unit(release, ready->shortcut.device, ready->shortcut.unit, ready, call);
    return launch_as_usual(release, ready, call->stream, call->slots);
}

HOT precast_status precast_launch_values(precast_release *release, uint32_t kernel, precast_stream stream,
                                         const int64_t *axes, const uint64_t *slots, const precast_grid *grid) {
    precast_call call = {.kernel = kernel, .axes = axes, .axes_given = PRECAST_GIVEN_BY_VALUE, .slots = slots};
    const precast_ready *ready = release && stream != PRECAST_CPU ? find_usual(release, &call) : NULL;
    if (!ready || grid || !ready->shortcut.grid[0])
        return launch_values(release, ready, kernel, stream, axes, slots, grid);
    return launch_as_usual(release, ready, stream, slots);
}
