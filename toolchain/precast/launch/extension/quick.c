/* The values that most calls have, read at once: numbers of Python's own types, and tensors by their framework's table
 * of functions. Whatever is not one of them, or has a fault, is left to arguments.c. */
#include "extension.h"
#include "number.h"
#include "slots.h"

quick_argument choose_quick(uint32_t slot, unsigned type) {
    quick_argument quick = {(uint16_t)slot, QUICK_NONE, 0};
    if (type & PRECAST_POINTER) {
        quick.kind = QUICK_POINTER;
    } else if (type == PRECAST_FP32 || type == PRECAST_FP64) {
        quick.kind = type == PRECAST_FP32 ? QUICK_FP32 : QUICK_FP64;
    } else if (type >= PRECAST_I1 && type <= PRECAST_U64) {
        quick.kind = precast_is_signed(type) ? QUICK_SIGNED : QUICK_UNSIGNED;
        quick.unused_bits = (uint8_t)(64 - precast_integer_bits(type));
        if (quick.kind == QUICK_UNSIGNED && !quick.unused_bits)
            quick.unused_bits = 1; /* what needs 64 bits goes the general way */
    }
    return quick;
}

static int read_long(PyObject *value, int64_t *integer) {
    int overflow = 0;
    *integer = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

static int fill_integer(quick_argument quick, PyObject *value, uint64_t *slot) {
    int64_t integer;
    if (Py_TYPE(value) != &PyLong_Type || !read_long(value, &integer))
        return 0;
    *slot = (uint64_t)integer;
    if (quick.kind == QUICK_UNSIGNED)
        return !(*slot >> (64 - quick.unused_bits));
    return (int64_t)(*slot << quick.unused_bits) >> quick.unused_bits == integer;
}

static int fill_float(quick_argument quick, PyObject *value, uint64_t *slot) {
    if (Py_TYPE(value) != &PyFloat_Type)
        return 0;
    double real = PyFloat_AsDouble(value);
    *slot = quick.kind == QUICK_FP32 ? precast_slot_fp32((float)real) : precast_slot_fp64(real);
    return 1;
}

/* Whether the tensor is where the call's other tensors are; the first one says where that is. */
static int is_here(const reader *from, const dl_tensor *tensor, PyObject *name, tensor_origin *origin) {
    if (origin->backend)
        return tensor->device.id == origin->device && tensor->device.type == origin->dl_device_type;
    int backend = backend_of(tensor->device.type);
    if (backend < 0)
        return 0;
    *origin = (tensor_origin){*from, name, backend, tensor->device.id, tensor->device.type};
    return 1;
}

static int fill_pointer(const kernel_object *kernel, uint32_t number, PyObject *value, call_values *values) {
    const reader *from = &values->origin.from;
    uint32_t place = kernel->quick[number].slot;
    dl_tensor tensor;
    if ((PyObject *)Py_TYPE(value) != from->type)
        from = known_reader(kernel->owner->state, value);
    if (!from || from->kind != READ_EXCHANGE)
        return 0;
    if (from->exchange->read(value, &tensor)) {
        PyErr_Clear(); /* the general way meets the same error */
        return 0;
    }
    if ((uintptr_t)tensor.data < UNLIKELY_ADDRESSES || from->may_lack_memory)
        return 0;
    values->slots[place] = precast_slot_pointer((char *)tensor.data + tensor.byte_offset);
    values->types[place] = type_of_dlpack(tensor.type);
    return values->types[place] && is_here(from, &tensor, kernel->arguments[number].name, &values->origin);
}

static int fill(const kernel_object *kernel, uint32_t number, PyObject *value, call_values *values) {
    quick_argument quick = kernel->quick[number];
    if (quick.kind == QUICK_NONE)
        return 0;
    if (quick.kind == QUICK_POINTER)
        return !kernel->wants_sizes && fill_pointer(kernel, number, value, values);
    values->types[quick.slot] = 0;
    return quick.kind <= QUICK_UNSIGNED ? fill_integer(quick, value, &values->slots[quick.slot])
                                        : fill_float(quick, value, &values->slots[quick.slot]);
}

/* Fills the arguments from `first` on; the number of the first that is not one of the common ones. */
uint32_t fill_quickly(const kernel_object *kernel, uint32_t first, PyObject *const *arguments, call_values *values) {
    while (first < kernel->argument_count && arguments[first] && fill(kernel, first, arguments[first], values))
        first++;
    return first;
}
