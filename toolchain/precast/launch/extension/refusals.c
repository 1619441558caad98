/* What is wrong with a call, in one line of the spec's words. Each gives -1. */
#include "extension.h"
#include "index.h"
#include "number.h"

/* What a slot takes. */
static const char *kind_of(const precast_slot_record *slot) {
    if (slot->type & PRECAST_POINTER)
        return "a tensor, an address or None";
    return slot->type & PRECAST_DESCRIPTOR ? "a tensor or a tensor descriptor" : precast_type_name(slot->type);
}

static const char *name_of(const kernel_object *kernel, const precast_slot_record *slot) {
    return precast_text(precast_index_of(kernel->owner->release), slot->name);
}

int wrong_type(const kernel_object *kernel, const precast_slot_record *slot, PyObject *value) {
    PyErr_Clear();
    PyObject *type = PyObject_GetAttrString((PyObject *)Py_TYPE(value), "__name__");
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "argument `%s` of `%U` takes %s, not %S", name_of(kernel, slot), kernel->name,
                 kind_of(slot), type ? type : Py_None);
    Py_XDECREF(type);
    return -1;
}

int wrong_elements(const kernel_object *kernel, const precast_slot_record *slot, PyObject *value) {
    PyErr_Clear();
    PyObject *dtype = PyObject_GetAttr(value, kernel->owner->state->names[NAME_DTYPE]);
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "argument `%s` of `%U` has elements of type %S, which no kernel takes",
                 name_of(kernel, slot), kernel->name, dtype ? dtype : Py_None);
    Py_XDECREF(dtype);
    return -1;
}

/* A tensor of a framework that gives no memory, as one that is traced: in the framework's words where it has some, of
 * which the first line is kept. Interrupts and the like are no refusals. */
int cannot_be_read(const kernel_object *kernel, const precast_slot_record *slot, PyObject *value) {
    PyObject *kind, *cause, *trace, *line = NULL;
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return -1;
    PyErr_Fetch(&kind, &cause, &trace);
    PyErr_NormalizeException(&kind, &cause, &trace);
    PyObject *text = PyObject_Str(cause ? cause : kind), *lines = text ? PyUnicode_Splitlines(text, 0) : NULL;
    if (lines && PyList_Size(lines))
        line = PyList_GetItem(lines, 0);
    PyErr_Clear();
    PyObject *type = PyObject_GetAttrString((PyObject *)Py_TYPE(value), "__name__");
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "argument `%s` of `%U` is a %S that cannot be launched with: %S",
                 name_of(kernel, slot), kernel->name, type ? type : Py_None, line ? line : kind);
    Py_XDECREF(type);
    Py_XDECREF(lines);
    Py_XDECREF(text);
    Py_XDECREF(kind);
    Py_XDECREF(cause);
    Py_XDECREF(trace);
    return -1;
}

int does_not_fit(const kernel_object *kernel, const precast_slot_record *slot, PyObject *value) {
    PyErr_Clear();
    if (slot->type & PRECAST_POINTER)
        PyErr_Format(PyExc_OverflowError, "argument `%s` of `%U` is %R, which is no address", name_of(kernel, slot),
                     kernel->name, value);
    else
        PyErr_Format(PyExc_OverflowError, "argument `%s` of `%U` is %R, which does not fit in %s",
                     name_of(kernel, slot), kernel->name, value, precast_type_name(slot->type));
    return -1;
}

/* The words of a list, which is taken, with commas between them; NULL with an error set. */
static PyObject *join(PyObject *list) {
    PyObject *comma = PyUnicode_FromString(", "), *text = list && comma ? PyUnicode_Join(comma, list) : NULL;
    Py_XDECREF(comma);
    Py_XDECREF(list);
    return text;
}

/* The names of the arguments that are not among `present` and must be, or of all, or of the axes. */
static PyObject *list_names(const kernel_object *kernel, int axes, PyObject *const *present) {
    uint32_t count = axes ? kernel->axis_count : kernel->argument_count;
    PyObject *list = count ? PyList_New(0) : NULL;
    for (uint32_t i = 0; list && i < count; i++)
        if (!present || (!present[i] && !kernel->arguments[i].standard))
            PyList_Append(list, axes ? kernel->axes[i].name : kernel->arguments[i].name);
    return count ? join(list) : PyUnicode_FromString("none");
}

static PyObject *list_values(const precast_index *index, const precast_axis_record *axis) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < axis->values.count; i++) {
        PyObject *word = PyUnicode_FromString(precast_text(index, index->values[axis->values.first + i].text));
        if (word)
            PyList_Append(list, word);
        Py_XDECREF(word);
    }
    return join(list);
}

/* As the runtime refuses a value that it can name. */
int no_such_value(const kernel_object *kernel, const precast_axis_record *axis, PyObject *value) {
    const precast_index *index = precast_index_of(kernel->owner->release);
    PyErr_Clear();
    PyObject *values = list_values(index, axis);
    PyObject *text = values ? PyUnicode_FromFormat("`%U` has no variant with %s=%R; there are %U", kernel->name,
                                                   precast_text(index, axis->name), value, values) : NULL;
    const char *sentence = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (sentence)
        raise_status(kernel->owner->state, precast_fail(PRECAST_NO_UNIT, "%s", sentence));
    Py_XDECREF(values);
    Py_XDECREF(text);
    return -1;
}

int wrong_count(const kernel_object *kernel, Py_ssize_t count) {
    PyObject *arguments = list_names(kernel, 0, NULL);
    if (arguments)
        PyErr_Format(PyExc_TypeError, "`%U` takes %u arguments (%U), not %zd", kernel->name, kernel->argument_count,
                     arguments, count);
    Py_XDECREF(arguments);
    return -1;
}

int lacks_arguments(const kernel_object *kernel, PyObject *const *arguments) {
    PyObject *absent = list_names(kernel, 0, arguments), *all = list_names(kernel, 0, NULL);
    if (absent && all)
        PyErr_Format(PyExc_TypeError, "the call of `%U` lacks %U; its arguments are %U", kernel->name, absent, all);
    Py_XDECREF(absent);
    Py_XDECREF(all);
    return -1;
}

int unknown_name(const kernel_object *kernel, PyObject *name) {
    PyObject *arguments = list_names(kernel, 0, NULL), *axes = list_names(kernel, 1, NULL);
    if (arguments && axes)
        PyErr_Format(PyExc_TypeError, "`%U` has no argument or axis `%U`; arguments: %U; axes: %U", kernel->name, name,
                     arguments, axes);
    Py_XDECREF(arguments);
    Py_XDECREF(axes);
    return -1;
}

int wrong_grid(const kernel_object *kernel, PyObject *grid) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "the grid of `%U` is %R; a grid is 1 to 3 integers", kernel->name, grid);
    return -1;
}
