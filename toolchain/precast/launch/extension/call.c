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
    for (uint32_t i = 0; i < kernel->axis_count; i++)
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

static PyObject *list_names(kernel_object *kernel, int axes) {
    uint32_t count = axes ? kernel->axis_count : kernel->argument_count;
    if (!count)
        return PyUnicode_FromString("none");
    PyObject *list = PyList_New(0), *comma = PyUnicode_FromString(", "), *text = NULL;
    for (uint32_t i = 0; list && i < count; i++)
        PyList_Append(list, axes ? kernel->axes[i].name : kernel->arguments[i].name);
    if (list && comma)
        text = PyUnicode_Join(comma, list);
    Py_XDECREF(comma);
    Py_XDECREF(list);
    return text;
}

static int unknown_name(kernel_object *kernel, PyObject *name) {
    PyObject *arguments = list_names(kernel, 0), *axes = list_names(kernel, 1);
    if (arguments && axes)
        PyErr_Format(PyExc_TypeError, "`%U` has no argument or axis `%U`; arguments: %U; axes: %U", kernel->name, name,
                     arguments, axes);
    Py_XDECREF(arguments);
    Py_XDECREF(axes);
    return -1;
}

static int wrong_count(kernel_object *kernel, Py_ssize_t count) {
    PyObject *arguments = list_names(kernel, 0);
    if (arguments)
        PyErr_Format(PyExc_TypeError, "`%U` takes %u arguments (%U), not %zd", kernel->name, kernel->argument_count,
                     arguments, count);
    Py_XDECREF(arguments);
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

/* A grid given as a function gets what the call says by name, as Triton's does. */
static PyObject *call_grid(kernel_object *kernel, PyObject *grid, const given *from, PyObject *names,
                           PyObject *const *named, PyObject *keywords) {
    PyObject *meta = keywords ? PyDict_Copy(keywords) : PyDict_New(), *result = NULL;
    int failed = !meta;
    for (Py_ssize_t i = 0, count = names ? PyTuple_Size(names) : 0; !failed && i < count; i++)
        failed = PyDict_SetItem(meta, PyTuple_GetItem(names, i), named[i]);
    for (uint32_t i = 0; !failed && i < kernel->argument_count; i++)
        failed = PyDict_SetItem(meta, kernel->arguments[i].name, from->values[i]);
    if (!failed)
        result = PyObject_CallFunctionObjArgs(grid, meta, NULL);
    Py_XDECREF(meta);
    return result;
}

static int read_dimension(PyObject *item, int64_t *dimension) {
    *dimension = item ? PyLong_AsLongLong(item) : 0;
    return item && !PyErr_Occurred() ? 0 : -1;
}

static int read_grid(PyObject *given_grid, precast_grid *grid) {
    int64_t dimensions[3] = {1, 1, 1};
    if (!PyTuple_Check(given_grid) && !PyList_Check(given_grid)) {
        if (read_dimension(given_grid, &dimensions[0]))
            return -1;
    } else {
        Py_ssize_t count = PySequence_Size(given_grid);
        if (count < 1 || count > 3) {
            PyErr_Format(PyExc_ValueError, "a grid has 1 to 3 dimensions, not %zd", count);
            return -1;
        }
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *item = PySequence_GetItem(given_grid, i);
            int failed = read_dimension(item, &dimensions[i]);
            Py_XDECREF(item);
            if (failed)
                return -1;
        }
    }
    *grid = (precast_grid){dimensions[0], dimensions[1], dimensions[2]};
    return 0;
}

static PyObject *launch(kernel_object *kernel, const given *from, const precast_grid *grid, call_values *values) {
    module_state *state = kernel->owner->state;
    const tensor_origin *origin = &values->origin;
    precast_call call = {.kernel = kernel->number, .axes = values->axes, .axes_given = values->axes_given,
                         .slots = values->slots, .types = values->types, .grid = grid, .backend = origin->backend,
                         .device = origin->device};
    if (kernel->wants_sizes)
        call.sizes = values->sizes;
    if (find_stream(state, from->stream, origin, &call.stream))
        return NULL;
    call.device_given = call.backend && call.backend != PRECAST_HOST && call.device >= 0;
    precast_status status;
    Py_BEGIN_ALLOW_THREADS
    status = precast_launch(kernel->owner->release, &call);
    Py_END_ALLOW_THREADS
    if (status != PRECAST_OK || kernel->owner->failure)
        return raise_status(state, kernel->owner, status);
    Py_RETURN_NONE;
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

static void start_values(const kernel_object *kernel, call_values *values) {
    values->origin = (tensor_origin){.device = -1};
    values->axes_given = 0;
    values->tensor_count = 0;
    for (uint32_t i = 0; i < kernel->axis_count; i++)
        values->axes[i] = 0;
}

static int fill_all(kernel_object *kernel, PyObject *const *arguments, Py_ssize_t count, call_values *values) {
    uint32_t filled = fill_quickly(kernel, 0, arguments, values);
    while (filled < kernel->argument_count) {
        if (!arguments[filled])
            return wrong_count(kernel, count);
        if (fill_argument(kernel, filled, arguments[filled], values))
            return -1;
        filled = fill_quickly(kernel, filled + 1, arguments, values);
    }
    return 0;
}

static int find_grid(kernel_object *kernel, PyObject *grid, const given *from, PyObject *names,
                     PyObject *const *named, PyObject *keywords, precast_grid *size) {
    PyObject *result = PyCallable_Check(grid) ? call_grid(kernel, grid, from, names, named, keywords) : NULL;
    int failed = PyErr_Occurred() || read_grid(result ? result : grid, size);
    Py_XDECREF(result);
    return failed;
}

PyObject *call_kernel(kernel_object *kernel, PyObject *grid, PyObject *const *positional, Py_ssize_t count,
                      PyObject *names, PyObject *const *named, PyObject *keywords) {
    given from;
    call_values values;
    precast_grid size;
    if (count > kernel->argument_count)
        return wrong_count(kernel, count), NULL;
    start_given(kernel, positional, count, &from);
    start_values(kernel, &values);
    if (((names || keywords) && take_all_named(kernel, names, named, keywords, &from, &values)) ||
        fill_all(kernel, from.values, count, &values) ||
        (grid && find_grid(kernel, grid, &from, names, named, keywords, &size)))
        return NULL;
    return launch(kernel, &from, grid ? &size : NULL, &values);
}
