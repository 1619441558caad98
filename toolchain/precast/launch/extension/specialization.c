/* The specializations of a served function: what calls are meant, and which kernels they run. */
#include <string.h>

#include "served.h"

/* Triton's wrapper of a value stands for the value. */
static int is_same_constant(const dispatcher_object *dispatcher, PyObject *known, PyObject *value) {
    if ((PyObject *)Py_TYPE(value) != dispatcher->constexpr_type)
        return is_same_value(known, value);
    PyObject *inside = PyObject_GetAttr(value, dispatcher->state->names[NAME_VALUE]);
    int same = inside && is_same_value(known, inside);
    if (!inside)
        PyErr_Clear();
    Py_XDECREF(inside);
    return same;
}

static int has_option(const dispatcher_object *dispatcher, const specialization *each, PyObject *name, PyObject *value) {
    for (uint32_t i = 0; i < each->option_count; i++)
        if (each->options[2 * i] == name || !PyUnicode_Compare(each->options[2 * i], name))
            return is_same_constant(dispatcher, each->options[2 * i + 1], value);
    return 0;
}

int is_meant(const dispatcher_object *dispatcher, const specialization *each, const bound_call *bound) {
    if (bound->option_count != each->option_count || bound->by_name != each->by_name)
        return 0;
    for (uint32_t i = 0; i < each->constant_count; i++)
        if (!is_same_constant(dispatcher, each->constants[i], bound->constants[i]))
            return 0;
    for (uint32_t i = 0; i < bound->option_count; i++)
        if (!has_option(dispatcher, each, bound->option_names[i], bound->options[i]))
            return 0;
    return 1;
}

static int take_kernel(const served_function *served, PyObject *parts, served_kernel *into) {
    module_state *state = served->dispatcher->state;
    PyObject *kernel, *axes, *result, *name, *value;
    Py_ssize_t place = 0;
    if (!PyArg_ParseTuple(parts, "O!O!O", state->kernel_type, &kernel, &PyDict_Type, &axes, &result))
        return -1;
    Py_INCREF(kernel), into->kernel = (kernel_object *)kernel;
    Py_INCREF(result), into->result = result;
    if (into->kernel->argument_count != served->parameter_count - served->constant_count)
        return PyErr_SetString(PyExc_ValueError, "the kernel has other arguments than the function"), -1;
    call_values values;
    start_values(into->kernel, &values);
    while (PyDict_Next(axes, &place, &name, &value))
        for (uint32_t i = 0; i < into->kernel->axis_count; i++)
            if (!PyUnicode_Compare(into->kernel->axes[i].name, name) && fill_axis(into->kernel, i, value, &values))
                return -1;
    into->axes_given = values.axes_given;
    memcpy(into->axes, values.axes, into->kernel->axis_count * sizeof *into->axes);
    return 0;
}

/* The items of a tuple, each with a reference of its own. */
static PyObject **own_items(PyObject *tuple, uint32_t *count) {
    PyObject **items = PyMem_Calloc((size_t)PyTuple_Size(tuple) + 1, sizeof *items);
    for (*count = 0; items && *count < PyTuple_Size(tuple); ++*count) {
        items[*count] = PyTuple_GetItem(tuple, *count);
        Py_INCREF(items[*count]);
    }
    return items;
}

void free_specialization(specialization *each) {
    for (uint32_t i = 0; i < each->constant_count; i++)
        Py_DECREF(each->constants[i]);
    for (uint32_t i = 0; i < 2 * each->option_count; i++)
        Py_DECREF(each->options[i]);
    for (uint32_t i = 0; i < each->kernel_count; i++) {
        Py_XDECREF((PyObject *)each->kernels[i].kernel);
        Py_XDECREF(each->kernels[i].result);
    }
    PyMem_Free(each->constants);
    PyMem_Free(each->options);
    PyMem_Free(each->kernels);
    PyMem_Free(each);
}

int visit_specialization(const specialization *each, visitproc visit, void *arg) {
    for (uint32_t i = 0; i < each->constant_count; i++)
        Py_VISIT(each->constants[i]);
    for (uint32_t i = 0; i < 2 * each->option_count; i++)
        Py_VISIT(each->options[i]);
    for (uint32_t i = 0; i < each->kernel_count; i++) {
        Py_VISIT((PyObject *)each->kernels[i].kernel);
        Py_VISIT(each->kernels[i].result);
    }
    return 0;
}

static int fill_specialization(const served_function *served, specialization *each, PyObject *constants,
                               PyObject *options, PyObject *kernels) {
    Py_ssize_t count = PyTuple_Size(kernels);
    uint32_t option_items = 0;
    if ((uint32_t)PyTuple_Size(constants) != served->constant_count || PyTuple_Size(options) % 2)
        return PyErr_SetString(PyExc_ValueError, "a value for each constexpr, names with values for options"), -1;
    each->kernels = PyMem_Calloc((size_t)count + 1, sizeof *each->kernels);
    each->constants = own_items(constants, &each->constant_count);
    each->options = own_items(options, &option_items);
    each->option_count = option_items / 2;
    if (!each->kernels || !each->constants || !each->options)
        return PyErr_NoMemory(), -1;
    for (; each->kernel_count < count; each->kernel_count++)
        if (take_kernel(served, PyTuple_GetItem(kernels, each->kernel_count), &each->kernels[each->kernel_count]))
            return each->kernel_count++, -1;
    return 0;
}

static int is_known(const served_function *served, const specialization *wanted) {
    bound_call bound = {.by_name = wanted->by_name, .option_count = wanted->option_count};
    memcpy(bound.constants, wanted->constants, wanted->constant_count * sizeof *bound.constants);
    for (uint32_t i = 0; i < wanted->option_count; i++) {
        bound.option_names[i] = wanted->options[2 * i];
        bound.options[i] = wanted->options[2 * i + 1];
    }
    for (uint32_t i = 0; i < served->specialization_count; i++)
        if (served->specializations[i]->place == wanted->place &&
            is_meant(served->dispatcher, served->specializations[i], &bound))
            return 1;
    return 0;
}

static int append(served_function *served, specialization *each) {
    specialization **grown = PyMem_Realloc(served->specializations,
                                           (served->specialization_count + 1) * sizeof *grown);
    if (!grown)
        return PyErr_NoMemory(), -1;
    served->specializations = grown;
    grown[served->specialization_count++] = each;
    return 0;
}

PyObject *add_specialization(PyObject *self, PyObject *positional) {
    served_function *served = (served_function *)self;
    PyObject *constants, *options, *kernels;
    unsigned long long by_name;
    int place;
    if (!PyArg_ParseTuple(positional, "O!O!KiO!:add", &PyTuple_Type, &constants, &PyTuple_Type, &options, &by_name,
                          &place, &PyTuple_Type, &kernels))
        return NULL;
    specialization *each = PyMem_Calloc(1, sizeof *each);
    if (!each)
        return PyErr_NoMemory();
    each->by_name = by_name;
    each->place = place;
    int failed = fill_specialization(served, each, constants, options, kernels);
    int is_new = !failed && !is_known(served, each);
    if (is_new)
        failed = append(served, each);
    if (failed || !is_new)
        free_specialization(each);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}
