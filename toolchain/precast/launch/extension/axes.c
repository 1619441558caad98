/* The values of a call's axes: what is given as their payloads, and what is known of the others. */
#include <string.h>

#include "extension.h"
#include "index.h"
#include "number.h"
#include "slots.h"

static int find_word(const precast_index *index, const precast_axis_record *axis, const char *word, int64_t *payload) {
    for (uint32_t i = 0; i < axis->values.count; i++)
        if (!strcmp(precast_text(index, index->values[axis->values.first + i].text), word)) {
            *payload = index->values[axis->values.first + i].payload;
            return 1;
        }
    return 0;
}

static PyObject *spell(PyObject *value);

static PyObject *spell_items(PyObject *tuple) {
    PyObject *items = PyList_New(0), *comma = PyUnicode_FromString(","), *joined = NULL, *text = NULL;
    int failed = !items || !comma;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_Size(tuple); i++) {
        PyObject *item = spell(PyTuple_GetItem(tuple, i));
        failed = !item || PyList_Append(items, item);
        Py_XDECREF(item);
    }
    if (!failed && (joined = PyUnicode_Join(comma, items)))
        text = PyUnicode_FromFormat("(%U)", joined);
    Py_XDECREF(joined);
    Py_XDECREF(comma);
    Py_XDECREF(items);
    return text;
}

/* A value as a unit's text has it: `none`, `true`, `(16,(8,none))`. */
static PyObject *spell(PyObject *value) {
    if (value == Py_None || PyBool_Check(value))
        return PyUnicode_FromString(value == Py_None ? "none" : value == Py_True ? "true" : "false");
    if (!PyTuple_Check(value))
        return PyObject_Str(value);
    if (Py_EnterRecursiveCall(" in an axis's value"))
        return NULL;
    PyObject *text = spell_items(value);
    Py_LeaveRecursiveCall();
    return text;
}

static int read_word(const precast_index *index, const precast_axis_record *axis, PyObject *value, int64_t *payload) {
    PyObject *text = spell(value);
    const char *word = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    int known = word && find_word(index, axis, word, payload);
    Py_XDECREF(text);
    return known;
}

static int read_number(uint32_t kind, PyObject *value, int64_t *payload) {
    PyObject *truth = kind == PRECAST_AXIS_BOOL ? number_of_truth(value) : NULL;
    int known = truth || PyLong_Check(value) || PyIndex_Check(value);
    *payload = known ? PyLong_AsLongLong(truth ? truth : value) : 0;
    Py_XDECREF(truth);
    return known;
}

int fill_axis(kernel_object *kernel, uint32_t number, PyObject *value, call_values *values) {
    const precast_index *index = precast_index_of(kernel->owner->release);
    const precast_axis_record *axis = &index->axes[index->kernels[kernel->number].axes.first + number];
    int64_t payload = 0;
    uint32_t kind = kernel->axes[number].kind;
    int known = 1, overflow = 0;
    if (kind == PRECAST_AXIS_INT && Py_TYPE(value) == &PyLong_Type) {
        payload = PyLong_AsLongLongAndOverflow(value, &overflow);
        known = !overflow;
    } else if (kind == PRECAST_AXIS_DTYPE)
        known = (payload = known_dtype(kernel->owner->state, value)) != 0;
    else if (kind == PRECAST_AXIS_WORD)
        known = read_word(index, axis, value, &payload);
    else if (kind == PRECAST_AXIS_FLOAT)
        payload = precast_axis_float(PyFloat_AsDouble(value));
    else
        known = read_number(kind, value, &payload);
    int is_constant = number >= kernel->axis_count;
    if (!known || PyErr_Occurred() || (is_constant && index->values[axis->values.first].payload != payload))
        return no_such_value(kernel, axis, value);
    if (is_constant)
        return 0;
    values->axes[number] = payload;
    values->axes_given |= UINT32_C(1) << number;
    return 0;
}

/* The element type of the tensors that say this axis; 0 where none does. */
static uint8_t find_type(const kernel_object *kernel, uint32_t number, const call_values *values) {
    const precast_index *index = precast_index_of(kernel->owner->release);
    precast_span slots = index->kernels[kernel->number].slots;
    for (uint32_t i = 0; i < slots.count; i++) {
        uint8_t type = values->types[i] & PRECAST_ELEMENT;
        if (index->slots[slots.first + i].dtype_axis == number && type && type != PRECAST_NOTHING)
            return type;
    }
    return 0;
}

static PyObject *object_of(const precast_index *index, const precast_axis_record *axis,
                           const precast_value_record *value) {
    const char *text = precast_text(index, value->text);
    switch (axis->kind) {
    case PRECAST_AXIS_INT:
        return PyLong_FromLongLong(value->payload);
    case PRECAST_AXIS_BOOL:
        return PyBool_FromLong(value->payload != 0);
    case PRECAST_AXIS_FLOAT:
        return PyFloat_FromDouble(precast_axis_real(value->payload));
    default:
        return PyUnicode_FromString(text);
    }
}

PyObject *known_axis(const kernel_object *kernel, uint32_t number, const call_values *values) {
    const precast_index *index = precast_index_of(kernel->owner->release);
    const precast_axis_record *axis = &index->axes[index->kernels[kernel->number].axes.first + number];
    if (axis->values.count == 1)
        return object_of(index, axis, &index->values[axis->values.first]);
    uint8_t type = axis->kind == PRECAST_AXIS_DTYPE ? find_type(kernel, number, values) : 0;
    return type ? PyUnicode_FromString(precast_type_name(type)) : NULL;
}
