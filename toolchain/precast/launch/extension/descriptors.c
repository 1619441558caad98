/* Tensor descriptors: an object that describes a tensor (as Triton's does), or a tensor that describes itself. */
#include <string.h>

#include "extension.h"
#include "index.h"
#include "slots.h"

enum { MOST_DIMENSIONS = 5 };

/* As many integers as there are; -1 with an error for what has none. At most MOST_DIMENSIONS are kept. */
static int read_list(PyObject *owner, PyObject *name, int64_t *out) {
    PyObject *list = PyObject_GetAttr(owner, name);
    Py_ssize_t count = list ? PySequence_Size(list) : -1;
    for (Py_ssize_t i = 0; i < count && i < MOST_DIMENSIONS && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(list, i);
        out[i] = item ? PyLong_AsLongLong(item) : 0;
        Py_XDECREF(item);
    }
    Py_XDECREF(list);
    return PyErr_Occurred() ? -1 : (int)count;
}

static void read_flags(module_state *state, PyObject *value, precast_tensor *tensor) {
    PyObject *padding = PyObject_GetAttr(value, state->names[NAME_PADDING]);
    const char *text = padding && PyUnicode_Check(padding) ? PyUnicode_AsUTF8AndSize(padding, NULL) : NULL;
    tensor->pad_with_nan = text && !strcmp(text, "nan");
    Py_XDECREF(padding);
    PyErr_Clear();
    PyObject *round = PyObject_GetAttr(value, state->names[NAME_ROUND]);
    tensor->round_to_tf32 = round && PyObject_IsTrue(round) > 0;
    Py_XDECREF(round);
    PyErr_Clear();
}

/* Arrays have a `base` of their own. */
static int is_descriptor(const module_state *state, PyObject *value) {
    return PyObject_HasAttr(value, state->names[NAME_BASE]) && PyObject_HasAttr(value, state->names[NAME_STRIDES]) &&
           !PyObject_HasAttr(value, state->names[NAME_ARRAY_INTERFACE]) &&
           !PyObject_HasAttr(value, state->names[NAME_DLPACK]);
}

static int wrong_rank(const kernel_object *kernel, PyObject *name, int rank, int strides) {
    if (rank > MOST_DIMENSIONS)
        PyErr_Format(PyExc_ValueError, "argument `%U` of `%U` has %d dimensions; a tensor descriptor has at most %d",
                     name, kernel->name, rank, MOST_DIMENSIONS);
    else
        PyErr_Format(PyExc_ValueError, "argument `%U` of `%U` has a shape of %d dimensions and strides of %d", name,
                     kernel->name, rank, strides);
    return -1;
}

static int read_described(kernel_object *kernel, const precast_slot_record *slot, PyObject *value, PyObject *name,
                          precast_tensor *tensor, tensor_view *view) {
    module_state *state = kernel->owner->state;
    PyObject *base = PyObject_GetAttr(value, state->names[NAME_BASE]);
    int failed = !base || read_tensor(state, base, SHAPE_UNUSED, view);
    if (!failed && !view->type && view->from.kind != READ_UNKNOWN && view->from.kind != READ_POINTER)
        failed = wrong_elements(kernel, slot, base);
    else if (failed)
        failed = base && view->from.kind != READ_UNKNOWN ? cannot_be_read(kernel, slot, base)
                                                         : wrong_type(kernel, slot, value);
    Py_XDECREF(base);
    if (failed)
        return -1;
    int rank = read_list(value, state->names[NAME_SHAPE], tensor->shape);
    int strides = rank < 0 ? -1 : read_list(value, state->names[NAME_STRIDES], tensor->strides);
    if (strides < 0)
        return wrong_type(kernel, slot, value);
    if (rank > MOST_DIMENSIONS || rank != strides)
        return wrong_rank(kernel, name, rank, strides);
    tensor->rank = rank;
    read_flags(state, value, tensor);
    return 0;
}

static int read_itself(kernel_object *kernel, const precast_slot_record *slot, PyObject *value, PyObject *name,
                       precast_tensor *tensor, tensor_view *view) {
    if (read_tensor(kernel->owner->state, value, SHAPE_NEEDED, view) || view->from.kind == READ_UNKNOWN)
        return view->from.kind != READ_UNKNOWN ? cannot_be_read(kernel, slot, value) : wrong_type(kernel, slot, value);
    if (!view->type)
        return wrong_elements(kernel, slot, value);
    if (view->rank < 0 || view->rank > MOST_DIMENSIONS)
        return view->rank < 0 ? wrong_type(kernel, slot, value) : wrong_rank(kernel, name, view->rank, view->rank);
    tensor->rank = view->rank;
    memcpy(tensor->shape, view->shape, sizeof tensor->shape);
    memcpy(tensor->strides, view->strides, sizeof tensor->strides);
    return 0;
}

int fill_descriptor(kernel_object *kernel, const precast_slot_record *slot, uint32_t place, PyObject *value,
                    PyObject *name, call_values *values) {
    tensor_view view;
    memset(&view, 0, sizeof view);
    if (values->tensor_count == MOST_TENSORS) {
        PyErr_Format(PyExc_TypeError, "`%U` has more than %d tensor descriptors", kernel->name, MOST_TENSORS);
        return -1;
    }
    precast_tensor *tensor = &values->tensors[values->tensor_count++];
    memset(tensor, 0, sizeof *tensor);
    if (is_descriptor(kernel->owner->state, value) ? read_described(kernel, slot, value, name, tensor, &view)
                                                   : read_itself(kernel, slot, value, name, tensor, &view))
        return -1;
    tensor->base = view.address;
    values->slots[place] = precast_slot_pointer(tensor);
    values->types[place] = view.type;
    return note_device(kernel, &view, name, values);
}
