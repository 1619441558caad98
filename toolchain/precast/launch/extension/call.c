/* From Python's arguments to a launch. */
#include <string.h>

#include "extension.h"
#include "index.h"

/* Arguments by place and by name, all borrowed. Those by place are copied only where others are to stand beside them. */
typedef struct given {
    PyObject *const *values; /* NULL for one that is not given */
    PyObject *stream;
    PyObject *copy[PRECAST_MAXIMUM_SLOTS];
} given;

static int is_same(PyObject *left, PyObject *right, int by_text) {
    return left == right || (by_text && PyUnicode_Compare(left, right) == 0);
}

static int find_axis(const kernel_object *kernel, PyObject *name, int by_text) {
    for (uint32_t i = 0; i < kernel->axis_count + kernel->constant_count; i++)
        if (is_same(kernel->axes[i].name, name, by_text))
            return (int)i;
    return -1;
}

static int find_argument(const kernel_object *kernel, PyObject *name, int by_text) {
    for (uint32_t i = 0; i < kernel->argument_count; i++)
        if (is_same(kernel->arguments[i].name, name, by_text))
            return (int)i;
    return -1;
}

/* Our names are interned and so are most of a call's: the first try, by identity, mostly finds one. */
static int take_named(kernel_object *kernel, PyObject *name, PyObject *value, int by_text, given *into,
                      call_values *values) {
    int place = find_axis(kernel, name, by_text);
    if (place >= 0)
        return fill_axis(kernel, (uint32_t)place, value, values);
    if (is_same(kernel->owner->state->names[NAME_STREAM], name, by_text)) {
        into->stream = value;
        return 0;
    }
    place = find_argument(kernel, name, by_text);
    if (place < 0)
        return by_text ? unknown_name(kernel, name) : take_named(kernel, name, value, 1, into, values);
    if (into->values[place]) {
        PyErr_Format(PyExc_TypeError, "`%U` got argument `%U` twice", kernel->name, name);
        return -1;
    }
    into->copy[place] = value;
    return 0;
}

/* Named values come as a dict (a call of an object) or as a tuple of names with values (a fast call). */
static int take_all_named(kernel_object *kernel, PyObject *names, PyObject *const *named, PyObject *keywords,
                          given *into, call_values *values) {
    PyObject *name, *value;
    Py_ssize_t place = 0, count = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (take_named(kernel, PyTuple_GetItem(names, i), named[i], 0, into, values))
            return -1;
    while (keywords && PyDict_Next(keywords, &place, &name, &value))
        if (take_named(kernel, name, value, 0, into, values))
            return -1;
    return 0;
}

/* A grid given as a function gets what the call says by name, as Triton's does, and what is known without saying. */
static PyObject *call_grid(kernel_object *kernel, PyObject *grid, const given *from, PyObject *names,
                           PyObject *const *named, PyObject *keywords, const call_values *values) {
    PyObject *meta = keywords ? PyDict_Copy(keywords) : PyDict_New(), *result = NULL;
    int failed = !meta;
    for (Py_ssize_t i = 0, count = names ? PyTuple_Size(names) : 0; !failed && i < count; i++)
        failed = PyDict_SetItem(meta, PyTuple_GetItem(names, i), named[i]);
    for (uint32_t i = 0; !failed && i < kernel->argument_count; i++)
        failed = PyDict_SetItem(meta, kernel->arguments[i].name,
                                from->values[i] ? from->values[i] : kernel->arguments[i].standard);
    for (uint32_t i = 0; !failed && i < kernel->axis_count + kernel->constant_count; i++) {
        int is_said = i < kernel->axis_count && values->axes_given >> i & 1;
        PyObject *value = is_said ? NULL : known_axis(kernel, i, values);
        if (value)
            failed = PyDict_SetItem(meta, kernel->axes[i].name, value);
        Py_XDECREF(value);
    }
    if (!failed)
        result = PyObject_CallFunctionObjArgs(grid, meta, NULL);
    Py_XDECREF(meta);
    return result;
}

/* What is beyond 64 bits is as wrong as the largest number. */
static int read_dimension(PyObject *item, int64_t *dimension) {
    int overflow = 0;
    PyObject *number = item ? PyNumber_Index(item) : NULL;
    if (!number)
        return -1;
    *dimension = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow)
        *dimension = overflow > 0 ? INT64_MAX : INT64_MIN;
    Py_DECREF(number);
    return 0;
}

int read_grid(PyObject *given_grid, precast_grid *grid) {
    int64_t dimensions[3] = {1, 1, 1};
    int is_one = !PyTuple_Check(given_grid) && !PyList_Check(given_grid);
    Py_ssize_t count = is_one ? 1 : PySequence_Size(given_grid);
    int failed = count < 1 || count > 3;
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        PyObject *item = is_one ? NULL : PySequence_GetItem(given_grid, i);
        failed = read_dimension(is_one ? given_grid : item, &dimensions[i]);
        Py_XDECREF(item);
    }
    *grid = (precast_grid){dimensions[0], dimensions[1], dimensions[2]};
    return failed ? -1 : 0;
}

static precast_call describe_call(const kernel_object *kernel, const precast_grid *grid, const call_values *values) {
    const tensor_origin *origin = &values->origin;
    return (precast_call){.kernel = kernel->number, .axes = values->axes, .axes_given = values->axes_given,
                          .slots = values->slots, .types = values->types,
                          .sizes = kernel->wants_sizes ? values->sizes : NULL, .grid = grid,
                          .backend = origin->backend, .device = origin->device,
                          .device_given = origin->backend && origin->backend != PRECAST_HOST && origin->device >= 0};
}

static int launch_plainly(kernel_object *kernel, PyObject *stream, const precast_grid *grid, call_values *values) {
    precast_call call = describe_call(kernel, grid, values);
    precast_status status;
    if (find_stream(kernel->owner->state, stream, &values->origin, &call.stream))
        return -1;
    Py_BEGIN_ALLOW_THREADS
    status = precast_launch(kernel->owner->release, &call);
    Py_END_ALLOW_THREADS
    return (int)status;
}

/* An error of a callback comes before what the runtime makes of it; a launch inside of a callback has its own. */
int launch_values(kernel_object *kernel, PyObject *stream, const precast_grid *grid, call_values *values) {
    int has_callbacks = kernel->owner->allocate || kernel->owner->reader;
    PyObject *outer = has_callbacks ? exchange_failure(NULL) : NULL;
    int status = launch_plainly(kernel, stream, grid, values);
    PyObject *failure = has_callbacks || status ? exchange_failure(outer) : NULL;
    if (!failure)
        return status;
    PyErr_SetObject((PyObject *)Py_TYPE(failure), failure);
    Py_DECREF(failure);
    return -1;
}

static void start_given(const kernel_object *kernel, PyObject *const *positional, Py_ssize_t count, given *from) {
    from->stream = NULL;
    from->values = positional;
    if (count == kernel->argument_count)
        return;
    memset(from->copy, 0, kernel->argument_count * sizeof *from->copy);
    if (count)
        memcpy(from->copy, positional, (size_t)count * sizeof *from->copy);
    from->values = from->copy;
}

void start_values(const kernel_object *kernel, call_values *values) {
    values->origin = (tensor_origin){.device = -1};
    values->axes_given = 0;
    values->tensor_count = 0;
    for (uint32_t i = 0; i < kernel->axis_count; i++)
        values->axes[i] = 0;
}

int fill_all(kernel_object *kernel, PyObject *const *arguments, call_values *values) {
    uint32_t filled = fill_quickly(kernel, 0, arguments, values);
    while (filled < kernel->argument_count) {
        PyObject *value = arguments[filled] ? arguments[filled] : kernel->arguments[filled].standard;
        if (!value)
            return lacks_arguments(kernel, arguments);
        if (fill_argument(kernel, filled, value, values))
            return -1;
        filled = fill_quickly(kernel, filled + 1, arguments, values);
    }
    return 0;
}

static int find_grid(kernel_object *kernel, PyObject *grid, const given *from, PyObject *names,
                     PyObject *const *named, PyObject *keywords, const call_values *values, precast_grid *size) {
    PyObject *result = NULL;
    if (PyCallable_Check(grid) && !(result = call_grid(kernel, grid, from, names, named, keywords, values)))
        return -1;
    int failed = read_grid(result ? result : grid, size) ? wrong_grid(kernel, result ? result : grid) : 0;
    Py_XDECREF(result);
    return failed;
}

/* Everything that a call says but its grid. */
static int take_all(kernel_object *kernel, PyObject *const *positional, Py_ssize_t count, PyObject *names,
                    PyObject *const *named, PyObject *keywords, given *from, call_values *values) {
    if (count > kernel->argument_count)
        return wrong_count(kernel, count);
    start_given(kernel, positional, count, from);
    start_values(kernel, values);
    if ((names || keywords) && take_all_named(kernel, names, named, keywords, from, values))
        return -1;
    return fill_all(kernel, from->values, values);
}

PyObject *call_kernel(kernel_object *kernel, PyObject *grid, PyObject *const *positional, Py_ssize_t count,
                      PyObject *names, PyObject *const *named, PyObject *keywords) {
    given from;
    call_values values;
    precast_grid size;
    if (take_all(kernel, positional, count, names, named, keywords, &from, &values) ||
        (grid && find_grid(kernel, grid, &from, names, named, keywords, &values, &size)))
        return NULL;
    int status = launch_values(kernel, from.stream, grid ? &size : NULL, &values);
    if (status)
        return status < 0 ? NULL : raise_status(kernel->owner->state, status);
    Py_RETURN_NONE;
}

/* What a call would launch, and on which stream: loaded, so that all but the driver's own refusals are told. */
PyObject *choose_for_call(kernel_object *kernel, PyObject *const *positional, Py_ssize_t count, PyObject *keywords) {
    given from;
    call_values values;
    precast_chosen chosen;
    if (take_all(kernel, positional, count, NULL, NULL, keywords, &from, &values))
        return NULL;
    precast_call call = describe_call(kernel, NULL, &values);
    precast_status status;
    if (find_stream(kernel->owner->state, from.stream, &values.origin, &call.stream))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = precast_choose(kernel->owner->release, &call, &chosen);
    Py_END_ALLOW_THREADS
    if (status != PRECAST_OK)
        return raise_status(kernel->owner->state, status);
    const precast_index *index = precast_index_of(kernel->owner->release);
    return Py_BuildValue("(sKKz)", precast_text(index, index->units[chosen.unit].text),
                         (unsigned long long)(uintptr_t)chosen.function,
                         (unsigned long long)(uintptr_t)call.stream, chosen.row);
}
