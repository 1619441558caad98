/* Python values as slots and axis values, with one line for what does not fit. */
#include <string.h>

#include "extension.h"
#include "index.h"
#include "number.h"
#include "slots.h"

static const char *text_of(PyObject *name) {
    return PyUnicode_AsUTF8AndSize(name, NULL);
}

/* What a slot takes, for a message. */
static const char *kind_of(const precast_slot_record *slot) {
    if (slot->type & PRECAST_POINTER)
        return "a tensor, an address or None";
    return slot->type & PRECAST_DESCRIPTOR ? "a tensor or a tensor descriptor" : precast_type_name(slot->type);
}

static int wrong_type(kernel_object *kernel, const precast_slot_record *slot, PyObject *value) {
    const precast_index *index = precast_index_of(kernel->owner->release);
    PyObject *type = PyObject_GetAttrString((PyObject *)Py_TYPE(value), "__name__");
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "argument `%s` of `%s` takes %s, not %S", precast_text(index, slot->name),
                 text_of(kernel->name), kind_of(slot), type ? type : Py_None);
    Py_XDECREF(type);
    return -1;
}

static int does_not_fit(kernel_object *kernel, const precast_slot_record *slot, PyObject *value) {
    const precast_index *index = precast_index_of(kernel->owner->release);
    PyErr_Clear();
    PyErr_Format(PyExc_OverflowError, "argument `%s` of `%s` is %R, which does not fit in %s",
                 precast_text(index, slot->name), text_of(kernel->name), value, precast_type_name(slot->type));
    return -1;
}

static int fill_float(kernel_object *kernel, const precast_slot_record *slot, PyObject *value, uint64_t *out) {
    double real = PyFloat_AsDouble(value);
    if (PyErr_Occurred())
        return wrong_type(kernel, slot, value);
    *out = precast_float_bits(real, slot->type);
    return 0;
}

static int fill_integer(kernel_object *kernel, const precast_slot_record *slot, PyObject *value, uint64_t *out) {
    PyObject *number = PyLong_Check(value) ? value : PyNumber_Index(value);
    int overflow = 0;
    if (!number)
        return wrong_type(kernel, slot, value);
    int64_t integer = PyLong_AsLongLongAndOverflow(number, &overflow);
    uint64_t bits = overflow > 0 ? PyLong_AsUnsignedLongLong(number) : (uint64_t)integer;
    if (number != value)
        Py_DECREF(number);
    unsigned from = overflow > 0 ? PRECAST_U64 : PRECAST_I64;
    if (overflow < 0 || PyErr_Occurred() || !precast_integer_fits(bits, from, slot->type))
        return does_not_fit(kernel, slot, value);
    *out = bits;
    return 0;
}

/* All tensors of a call are on one device. */
static int note_device(kernel_object *kernel, const tensor_view *view, PyObject *name, call_values *values) {
    static const char *const names[] = {"", "cuda", "hip", "cpu"};
    tensor_origin *origin = &values->origin;
    if (!view->backend)
        return 0;
    if (!origin->backend) {
        *origin = (tensor_origin){view->from, name, view->backend, view->device, view->dl_device_type};
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

static int wrong_elements(kernel_object *kernel, const precast_slot_record *slot, PyObject *value) {
    const precast_index *index = precast_index_of(kernel->owner->release);
    PyObject *dtype = PyObject_GetAttr(value, kernel->owner->state->names[NAME_DTYPE]);
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "argument `%s` of `%U` has elements of type %S, which no kernel takes",
                 precast_text(index, slot->name), kernel->name, dtype ? dtype : Py_None);
    Py_XDECREF(dtype);
    return -1;
}

static int fill_pointer(kernel_object *kernel, const precast_slot_record *slot, uint32_t place, PyObject *value,
                        PyObject *name, call_values *values) {
    tensor_view view;
    if (read_tensor(kernel->owner->state, value, 0, kernel->wants_sizes, &view)) {
        if (view.from)
            return -1; /* the framework's own words */
        return wrong_type(kernel, slot, value);
    }
    if (!view.type && view.from && view.from->kind != READ_POINTER)
        return wrong_elements(kernel, slot, value);
    values->slots[place] = precast_slot_pointer(view.address);
    values->types[place] = view.type;
    if (kernel->wants_sizes)
        values->sizes[place] = view.bytes;
    return note_device(kernel, &view, name, values);
}

static int read_list(PyObject *owner, PyObject *name, int64_t *out, int *rank) {
    PyObject *list = PyObject_GetAttr(owner, name);
    Py_ssize_t count = list ? PySequence_Size(list) : -1;
    if (count > 5)
        PyErr_SetString(PyExc_ValueError, "a tensor descriptor has at most 5 dimensions");
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(list, i);
        out[i] = item ? PyLong_AsLongLong(item) : 0;
        Py_XDECREF(item);
    }
    Py_XDECREF(list);
    *rank = (int)count;
    return PyErr_Occurred() ? -1 : 0;
}

static int read_flags(module_state *state, PyObject *value, precast_tensor *tensor) {
    PyObject *padding = PyObject_GetAttr(value, state->names[NAME_PADDING]);
    const char *text = padding && PyUnicode_Check(padding) ? PyUnicode_AsUTF8AndSize(padding, NULL) : NULL;
    tensor->pad_with_nan = text && !strcmp(text, "nan");
    Py_XDECREF(padding);
    PyErr_Clear();
    PyObject *round = PyObject_GetAttr(value, state->names[NAME_ROUND]);
    int truth = round ? PyObject_IsTrue(round) : 0;
    tensor->round_to_tf32 = truth > 0;
    Py_XDECREF(round);
    PyErr_Clear();
    return 0;
}

/* A descriptor object (base, shape, strides, padding, as Triton's), or a tensor that describes itself. */
static int read_descriptor(module_state *state, PyObject *value, precast_tensor *tensor, tensor_view *view) {
    memset(tensor, 0, sizeof *tensor);
    if (PyObject_HasAttr(value, state->names[NAME_BASE]) && PyObject_HasAttr(value, state->names[NAME_STRIDES]) &&
        !PyObject_HasAttr(value, state->names[NAME_ARRAY_INTERFACE]) &&
        !PyObject_HasAttr(value, state->names[NAME_DLPACK])) { /* arrays have a `base` of their own */
        PyObject *base = PyObject_GetAttr(value, state->names[NAME_BASE]);
        int failed = !base || read_tensor(state, base, 0, 0, view), rank = 0;
        Py_XDECREF(base);
        if (failed || read_list(value, state->names[NAME_SHAPE], tensor->shape, &tensor->rank) ||
            read_list(value, state->names[NAME_STRIDES], tensor->strides, &rank) || rank != tensor->rank)
            return -1;
        read_flags(state, value, tensor);
    } else {
        if (read_tensor(state, value, 1, 0, view) || view->rank < 0 || view->rank > 5)
            return -1;
        tensor->rank = view->rank;
        memcpy(tensor->shape, view->shape, sizeof tensor->shape);
        memcpy(tensor->strides, view->strides, sizeof tensor->strides);
    }
    tensor->base = view->address;
    return 0;
}

static int fill_descriptor(kernel_object *kernel, const precast_slot_record *slot, uint32_t place, PyObject *value,
                           PyObject *name, call_values *values) {
    tensor_view view;
    memset(&view, 0, sizeof view);
    if (values->tensor_count == MOST_TENSORS) {
        PyErr_Format(PyExc_TypeError, "`%U` has more than %d tensor descriptors", kernel->name, MOST_TENSORS);
        return -1;
    }
    precast_tensor *tensor = &values->tensors[values->tensor_count++];
    if (read_descriptor(kernel->owner->state, value, tensor, &view))
        return wrong_type(kernel, slot, value);
    values->slots[place] = precast_slot_pointer(tensor);
    values->types[place] = view.type;
    return note_device(kernel, &view, name, values);
}

static int fill_slot(kernel_object *kernel, uint32_t place, PyObject *value, PyObject *name, call_values *values) {
    const precast_index *index = precast_index_of(kernel->owner->release);
    const precast_slot_record *slot = &index->slots[index->kernels[kernel->number].slots.first + place];
    values->types[place] = 0;
    values->sizes[place] = 0;
    if (slot->type & PRECAST_POINTER)
        return fill_pointer(kernel, slot, place, value, name, values);
    if (slot->type & PRECAST_DESCRIPTOR)
        return fill_descriptor(kernel, slot, place, value, name, values);
    if (precast_is_float(slot->type))
        return fill_float(kernel, slot, value, &values->slots[place]);
    return fill_integer(kernel, slot, value, &values->slots[place]);
}

/* The leaves of a tuple one after another. */
static int fill_leaves(kernel_object *kernel, PyObject *value, PyObject *name, uint32_t *place, uint32_t end,
                       call_values *values) {
    if (!PyTuple_Check(value) && !PyList_Check(value))
        return *place < end ? fill_slot(kernel, (*place)++, value, name, values) : -1;
    for (Py_ssize_t i = 0, count = PySequence_Size(value); i < count; i++) {
        PyObject *item = PySequence_GetItem(value, i);
        int failed = item ? fill_leaves(kernel, item, name, place, end, values) : -1;
        Py_XDECREF(item);
        if (failed)
            return -1;
    }
    return 0;
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

/* A word's number among the axis's values, from 1; 0 when it is none. */
static int64_t find_word(const precast_index *index, const precast_axis_record *axis, const char *word) {
    for (uint32_t i = 0; i < axis->values.count; i++)
        if (!strcmp(precast_text(index, index->values[axis->values.first + i].text), word))
            return index->values[axis->values.first + i].payload;
    return 0;
}

static int64_t read_word(const precast_index *index, const precast_axis_record *axis, PyObject *value) {
    if (value == Py_None || PyBool_Check(value))
        return find_word(index, axis, value == Py_None ? "none" : value == Py_True ? "true" : "false");
    PyObject *text = PyObject_Str(value);
    const char *word = text ? text_of(text) : NULL;
    int64_t payload = word ? find_word(index, axis, word) : 0;
    Py_XDECREF(text);
    return payload;
}

int fill_axis(kernel_object *kernel, uint32_t number, PyObject *value, call_values *values) {
    const precast_index *index = precast_index_of(kernel->owner->release);
    const precast_axis_record *axis = &index->axes[index->kernels[kernel->number].axes.first + number];
    int64_t payload = 0;
    int known = 1, overflow = 0;
    if (kernel->axes[number].kind == PRECAST_AXIS_INT && Py_TYPE(value) == &PyLong_Type) {
        payload = PyLong_AsLongLongAndOverflow(value, &overflow);
        known = !overflow;
    } else if (axis->kind == PRECAST_AXIS_DTYPE)
        known = (payload = known_dtype(kernel->owner->state, value)) != 0;
    else if (axis->kind == PRECAST_AXIS_WORD)
        known = (payload = read_word(index, axis, value)) != 0;
    else if (axis->kind == PRECAST_AXIS_FLOAT)
        payload = precast_axis_float(PyFloat_AsDouble(value));
    else
        payload = PyLong_Check(value) || PyIndex_Check(value) ? PyLong_AsLongLong(value) : (known = 0);
    if (PyErr_Occurred() || !known) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "`%U` has no variant with %s=%R", kernel->name,
                     precast_text(index, axis->name), value);
        return -1;
    }
    values->axes[number] = payload;
    values->axes_given |= UINT32_C(1) << number;
    return 0;
}
