/* A call of a served function: bound to its parameters, found among its specializations, launched. */
#include <string.h>

#include "served.h"

enum { IS_OPTION = -1, IS_GRID = -2, IS_WARMUP = -3 };

static int find_parameter(const served_function *served, PyObject *name) {
    for (uint32_t i = 0; i < served->parameter_count; i++)
        if (served->parameters[i].name == name)
            return (int)i;
    for (uint32_t i = 0; i < served->parameter_count; i++)
        if (!PyUnicode_Compare(served->parameters[i].name, name))
            return (int)i;
    return IS_OPTION;
}

static int find_place(const served_function *served, PyObject *name) {
    PyObject *const *names = served->dispatcher->state->names;
    int place = find_parameter(served, name);
    if (place == IS_OPTION)
        place = !PyUnicode_Compare(name, names[NAME_GRID])     ? IS_GRID
                : !PyUnicode_Compare(name, names[NAME_WARMUP]) ? IS_WARMUP
                                                               : IS_OPTION;
    return place;
}

/* What a call's keywords are: the same tuple of names comes from the same line of a program. */
static int find_places(served_function *served, PyObject *names) {
    Py_ssize_t count = PyTuple_Size(names);
    if (names == served->names)
        return 1;
    if (count > MOST_KEYWORDS)
        return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        served->places[i] = (int16_t)find_place(served, PyTuple_GetItem(names, i));
    PyObject *before = served->names;
    Py_INCREF(names);
    served->names = names;
    Py_XDECREF(before);
    return 1;
}

/* An option that is None is not said. */
static void take_option(bound_call *bound, PyObject *name, PyObject *value) {
    if (value == Py_None)
        return;
    bound->option_names[bound->option_count] = name;
    bound->options[bound->option_count++] = value;
}

/* One named value; 0 where Python has to look at the call. */
static int take_named(const served_function *served, int place, PyObject *name, PyObject *value, bound_call *bound) {
    if (place == IS_OPTION)
        return take_option(bound, name, value), 1;
    if (place == IS_WARMUP)
        return value == Py_False;
    PyObject **into = place == IS_GRID ? &bound->grid : &bound->all[place];
    if (*into)
        return 0;
    *into = value;
    if (place >= 0 && place < 64)
        bound->by_name |= (UINT64_C(1) << place) & served->double_meaning;
    return 1;
}

/* 0 where Python has to look at the call, which is none of this function, or unusual. */
static int bind_call(served_function *served, const triton_call *call, bound_call *bound) {
    Py_ssize_t named = call->names ? PyTuple_Size(call->names) : 0;
    uint32_t constants = 0, arguments = 0;
    if (call->count > served->parameter_count || (named && !find_places(served, call->names)))
        return 0;
    bound->grid = call->grid;
    bound->by_name = 0;
    bound->option_count = 0;
    memcpy(bound->all, call->values, (size_t)call->count * sizeof *bound->all);
    memset(bound->all + call->count, 0, (served->parameter_count - (size_t)call->count) * sizeof *bound->all);
    for (Py_ssize_t i = 0; i < named; i++)
        if (!take_named(served, served->places[i], PyTuple_GetItem(call->names, i), call->values[call->count + i], bound))
            return 0;
    for (uint32_t i = 0; i < served->parameter_count; i++) {
        const parameter *each = &served->parameters[i];
        PyObject *value = bound->all[i] ? bound->all[i] : each->standard;
        if (!(bound->all[i] = value))
            return 0;
        if (each->is_constexpr)
            bound->constants[constants++] = value;
        else
            bound->arguments[arguments++] = value;
    }
    return bound->grid != NULL;
}

static PyObject *call_grid(const served_function *served, const bound_call *bound) {
    PyObject *meta = PyDict_New();
    for (uint32_t i = 0; meta && i < served->parameter_count; i++)
        if (PyDict_SetItem(meta, served->parameters[i].name, bound->all[i]))
            Py_CLEAR(meta);
    PyObject *grid = meta ? PyObject_CallFunctionObjArgs(bound->grid, meta, NULL) : NULL;
    Py_XDECREF(meta);
    return grid;
}

static int read_size(const served_function *served, PyObject *grid, precast_grid *size) {
    PyObject *numbers = PyTuple_Check(grid) || PyList_Check(grid) ? grid : PySequence_Tuple(grid);
    int failed = !numbers || read_grid(numbers, size);
    if (numbers != grid)
        Py_XDECREF(numbers);
    if (failed && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError)))
        PyErr_Format(PyExc_TypeError, "the grid of `%U` is one to three integers, not %R", served->title, grid);
    return failed ? -1 : 0;
}

static int find_size(const served_function *served, const bound_call *bound, precast_grid *size) {
    if (!PyCallable_Check(bound->grid))
        return read_size(served, bound->grid, size);
    PyObject *grid = call_grid(served, bound);
    int failed = grid ? read_size(served, grid, size) : -1;
    Py_XDECREF(grid);
    return failed;
}

static int is_there(int place, const tensor_origin *origin) {
    return place == ANYWHERE || place == (!origin->backend                  ? WITHOUT_TENSORS
                                          : origin->backend == PRECAST_HOST ? ON_CPU
                                                                            : ON_GPU);
}

/* Whether the error says that the arguments are not the kernel's; then it is gone. */
static int is_refusal(const module_state *state) {
    PyObject *const kinds[] = {PyExc_TypeError, PyExc_ValueError, PyExc_OverflowError, state->error};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (PyErr_ExceptionMatches(kinds[i]))
            return PyErr_Clear(), 1;
    return 0;
}

static int is_no_fit(int status) {
    return status == PRECAST_NO_DEVICE || status == PRECAST_NO_UNIT || status == PRECAST_BAD_ARGUMENT ||
           status == PRECAST_UNMET;
}

/* The first kernel that takes the arguments; NULL without an error where none does. */
static PyObject *launch_first(const served_function *served, const specialization *each, const bound_call *bound) {
    module_state *state = served->dispatcher->state;
    precast_grid size;
    int has_size = 0;
    for (uint32_t i = 0; i < each->kernel_count; i++) {
        const served_kernel *one = &each->kernels[i];
        call_values values;
        start_values(one->kernel, &values);
        values.axes_given = one->axes_given;
        memcpy(values.axes, one->axes, one->kernel->axis_count * sizeof *values.axes);
        if (fill_all(one->kernel, bound->arguments, &values)) {
            if (!is_refusal(state))
                return NULL;
            continue;
        }
        if (!is_there(each->place, &values.origin) || (!has_size && find_size(served, bound, &size)))
            return NULL;
        has_size = 1;
        int status = launch_values(one->kernel, NULL, &size, &values);
        if (status < 0 || (status && !is_no_fit(status)))
            return status < 0 ? NULL : raise_status(state, status);
        if (status)
            continue;
        Py_INCREF(one->result);
        return one->result;
    }
    return NULL;
}

static void move_to_front(served_function *served, uint32_t place) {
    specialization *each = served->specializations[place];
    memmove(served->specializations + 1, served->specializations, place * sizeof each);
    served->specializations[0] = each;
}

PyObject *call_served(served_function *served, const triton_call *call) {
    bound_call bound;
    if (PyList_Size(served->hooks) || !is_as_digested(served) || !bind_call(served, call, &bound))
        return NULL;
    for (uint32_t i = 0; i < served->specialization_count; i++) {
        specialization *each = served->specializations[i];
        if (!is_meant(served->dispatcher, each, &bound))
            continue;
        move_to_front(served, i);
        PyObject *result = launch_first(served, each, &bound);
        if (result || PyErr_Occurred())
            return result;
    }
    return NULL;
}
