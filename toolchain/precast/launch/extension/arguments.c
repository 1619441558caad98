/* Python values as slots: every kind of value that an argument takes, with one line for what does not fit. */
#include <string.h>

#include "extension.h"
#include "index.h"
#include "number.h"
#include "slots.h"

static int fill_float(kernel_object *kernel, const precast_slot_record *slot, PyObject *value, uint64_t *out) {
    double real = PyFloat_AsDouble(value);
    if (PyErr_Occurred())
        return PyErr_ExceptionMatches(PyExc_OverflowError) ? does_not_fit(kernel, slot, value)
                                                           : wrong_type(kernel, slot, value);
    *out = precast_float_bits(real, slot->type);
    return 0;
}

/* NumPy's truth values are no numbers. */
PyObject *number_of_truth(PyObject *value) {
    PyObject *type = (PyObject *)Py_TYPE(value);
    PyObject *name = PyObject_GetAttrString(type, "__name__");
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    int is_truth = text && !strncmp(text, "bool", 4) && comes_from(type, "numpy");
    Py_XDECREF(name);
    PyErr_Clear();
    return is_truth ? PyLong_FromLong(PyObject_IsTrue(value)) : NULL;
}

/* `given`: what the value's own type says of the number, where units differ in it. */
static int fill_integer(kernel_object *kernel, const precast_slot_record *slot, PyObject *value, uint64_t *out,
                        uint8_t *given) {
    PyObject *number = PyNumber_Index(value);
    int overflow = 0;
    int is_truth = slot->type == PRECAST_I1 || slot->type == PRECAST_U1;
    if (!number && !(is_truth && (number = number_of_truth(value))))
        return wrong_type(kernel, slot, value);
    int64_t integer = PyLong_AsLongLongAndOverflow(number, &overflow);
    uint64_t bits = overflow > 0 ? PyLong_AsUnsignedLongLong(number) : (uint64_t)integer;
    Py_DECREF(number);
    unsigned from = overflow > 0 ? PRECAST_U64 : PRECAST_I64;
    int varied = slot->flags & PRECAST_VARIED;
    if (overflow < 0 || PyErr_Occurred() || (!varied && !precast_integer_fits(bits, from, slot->type)))
        return does_not_fit(kernel, slot, value);
    *given = varied && overflow > 0 ? PRECAST_U64 : varied && PyBool_Check(value) ? PRECAST_I1 : 0;
    *out = bits;
    return 0;
}

/* All tensors of a call are on one device. */
int note_device(kernel_object *kernel, const tensor_view *view, PyObject *name, call_values *values) {
    static const char *const names[] = {"", "cuda", "hip", "cpu"};
    tensor_origin *origin = &values->origin;
    if (!view->backend)
        return 0;
    if (!origin->backend) {
        *origin = (tensor_origin){view->framework, name, view->backend, view->device, view->dl_device_type};
        return 0;
    }
    if (origin->device < 0 && origin->backend == view->backend)
        origin->device = view->device;
    if (origin->backend == view->backend && (view->device < 0 || view->device == origin->device))
        return 0;
    PyErr_Format(PyExc_ValueError, "argument `%U` of `%U` is on %s:%d, and `%U` is on %s:%d", name, kernel->name,
                 names[view->backend], view->device < 0 ? 0 : view->device, origin->name, names[origin->backend],
                 origin->device < 0 ? 0 : origin->device);
    return -1;
}

static int fill_pointer(kernel_object *kernel, const precast_slot_record *slot, uint32_t place, PyObject *value,
                        PyObject *name, call_values *values) {
    tensor_view view;
    if (read_tensor(kernel->owner->state, value, kernel->wants_sizes ? SHAPE_OF_USE : SHAPE_UNUSED, &view)) {
        if (view.from.kind != READ_UNKNOWN)
            return cannot_be_read(kernel, slot, value);
        return PyErr_ExceptionMatches(PyExc_OverflowError) ? does_not_fit(kernel, slot, value)
                                                           : wrong_type(kernel, slot, value);
    }
    if (!view.type && view.from.kind != READ_UNKNOWN && view.from.kind != READ_POINTER)
        return wrong_elements(kernel, slot, value);
    values->slots[place] = precast_slot_pointer(view.address);
    values->types[place] = view.type | (view.read_only ? PRECAST_READ_ONLY : 0);
    if (kernel->wants_sizes)
        values->sizes[place] = view.bytes;
    return note_device(kernel, &view, name, values);
}

static int fill_slot(kernel_object *kernel, uint32_t place, PyObject *value, PyObject *name, call_values *values) {
    const precast_index *index = precast_index_of(kernel->owner->release);
    const precast_slot_record *slot = &index->slots[index->kernels[kernel->number].slots.first + place];
    values->types[place] = 0;
    values->sizes[place] = 0;
    if (value == Py_None && (slot->type & PRECAST_POINTER || slot->flags & PRECAST_OPTIONAL)) {
        values->slots[place] = 0;
        values->types[place] = PRECAST_NOTHING;
        return 0;
    }
    if (slot->type & PRECAST_POINTER)
        return fill_pointer(kernel, slot, place, value, name, values);
    if (slot->type & PRECAST_DESCRIPTOR)
        return fill_descriptor(kernel, slot, place, value, name, values);
    if (precast_is_float(slot->type))
        return fill_float(kernel, slot, value, &values->slots[place]);
    return fill_integer(kernel, slot, value, &values->slots[place], &values->types[place]);
}

/* The leaves of a tuple one after another. */
static int fill_leaves(kernel_object *kernel, PyObject *value, PyObject *name, uint32_t *place, uint32_t end,
                       call_values *values) {
    if (!PyTuple_Check(value) && !PyList_Check(value))
        return *place < end ? fill_slot(kernel, (*place)++, value, name, values) : -1;
    if (Py_EnterRecursiveCall(" in a tuple of arguments"))
        return -1;
    int failed = 0;
    for (Py_ssize_t i = 0, count = PySequence_Size(value); i < count && !failed; i++) {
        PyObject *item = PySequence_GetItem(value, i);
        failed = item ? fill_leaves(kernel, item, name, place, end, values) : -1;
        Py_XDECREF(item);
    }
    Py_LeaveRecursiveCall();
    return failed;
}

int fill_argument(kernel_object *kernel, uint32_t number, PyObject *value, call_values *values) {
    const argument_info *argument = &kernel->arguments[number];
    uint32_t place = argument->first, end = argument->first + argument->slots;
    if (!PyTuple_Check(value) && argument->slots == 1)
        return fill_slot(kernel, place, value, argument->name, values);
    int failed = fill_leaves(kernel, value, argument->name, &place, end, values);
    if ((failed && !PyErr_Occurred()) || (!failed && place != end))
        PyErr_Format(PyExc_TypeError, "argument `%U` of `%U` takes a tuple of %u values in all", argument->name,
                     kernel->name, argument->slots);
    return PyErr_Occurred() ? -1 : 0;
}
