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
static int is_here(const kernel_object *kernel, uint32_t number, const reader *from, dl_device device,
                   tensor_origin *origin) {
    if (origin->backend)
        return device.id == origin->device && device.type == origin->dl_device_type;
    int backend = backend_of(device.type);
    if (backend < 0)
        return 0;
    *origin = (tensor_origin){*from, kernel->arguments[number].name, backend, device.id, device.type};
    return 1;
}

/* By DLPack's table; what fails here meets the same error the general way. */
static int read_exchange(const reader *from, PyObject *value, char **address, uint8_t *type, dl_device *device) {
    dl_tensor tensor;
    if (from->exchange->read(value, &tensor)) {
        PyErr_Clear();
        return 0;
    }
    *address = (uintptr_t)tensor.data < UNLIKELY_ADDRESSES ? NULL : (char *)tensor.data + tensor.byte_offset;
    *type = type_of_dlpack(tensor.type);
    *device = tensor.device;
    return 1;
}

static int read_place(module_state *state, const reader *from, PyObject *value, char **address, uint8_t *type,
                      dl_device *device) {
    void *place;
    if (!from->reads_inner)
        return read_exchange(from, value, address, type, device);
    const torch_kind *kind = read_inner(state, value, &place);
    if (!kind)
        return 0;
    *address = (uintptr_t)place < UNLIKELY_ADDRESSES ? NULL : place;
    *type = kind->type;
    *device = kind->device;
    return 1;
}

static int fill_pointer(const kernel_object *kernel, uint32_t number, PyObject *value, call_values *values) {
    module_state *state = kernel->owner->state;
    const reader *from = &values->origin.from;
    uint32_t place = kernel->quick[number].slot;
    char *address;
    dl_device device;
    if ((PyObject *)Py_TYPE(value) != from->type)
        from = known_reader(state, value);
    if (!from || from->kind != READ_EXCHANGE || from->may_lack_memory ||
        !read_place(state, from, value, &address, &values->types[place], &device) || !address)
        return 0;
    values->slots[place] = precast_slot_pointer(address);
    return values->types[place] && is_here(kernel, number, from, device, &values->origin);
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
