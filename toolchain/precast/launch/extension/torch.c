/* Torch's tensors by torch's own C interface: where a tensor's memory is, what its elements are, on which device, each
 * by a call that owns nothing. DLPack's table gives the same and holds the tensor meanwhile, which costs many times as
 * much. It takes a C++ tensor, which Python's holds behind its head: that it does is made sure of by one of each type. */
#include <dlfcn.h>

#include "extension.h"

static void *inner_of(PyObject *object) {
    return (char *)object + sizeof(PyObject);
}

/* From the library that the table's functions are in, or one that it needs. */
static int find_functions(torch_functions *found, const dl_exchange *exchange) {
    const struct { const char *name; void *place; } symbols[] = {
        {"aoti_torch_get_data_ptr", &found->address}, {"aoti_torch_get_dtype", &found->elements},
        {"aoti_torch_get_device_type", &found->device_type}, {"aoti_torch_get_device_index", &found->device},
    };
    union { int (*function)(void *, dl_tensor *); void *address; } read = {exchange->read};
    Dl_info info;
    void *library = dladdr(read.address, &info) && info.dli_fname ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (!library || !(*(void **)symbols[i].place = dlsym(library, symbols[i].name)))
            return 0;
    return 1;
}

/* Whether what lies behind the object's head is what it says of its C++ part. */
static int has_inner(PyObject *object) {
    PyObject *number = PyObject_GetAttrString(object, "_cdata");
    void *part = number ? PyLong_AsVoidPtr(number) : NULL;
    Py_XDECREF(number);
    PyErr_Clear();
    return part && *(void **)inner_of(object) == part;
}

int reads_inner(module_state *state, const dl_exchange *exchange, PyObject *object) {
    void *address = NULL;
    dl_tensor tensor;
    if (!state->torch.exchange && find_functions(&state->torch, exchange))
        state->torch.exchange = exchange;
    if (state->torch.exchange != exchange || !has_inner(object))
        return 0;
    int same = !exchange->read(object, &tensor) && !state->torch.address(inner_of(object), &address) &&
               address == tensor.data && !tensor.byte_offset;
    PyErr_Clear();
    return same;
}

/* What DLPack says of elements and a device is the same for all tensors that have them, so it is asked once. */
static const torch_kind *find_kind(torch_functions *torch, const torch_kind *wanted, PyObject *object) {
    for (uint32_t i = 0; i < torch->kind_count; i++)
        if (torch->kinds[i].elements == wanted->elements && torch->kinds[i].number == wanted->number &&
            torch->kinds[i].device_type == wanted->device_type)
            return &torch->kinds[i];
    dl_tensor tensor;
    if (torch->kind_count == MOST_TORCH_KINDS || torch->exchange->read(object, &tensor)) {
        PyErr_Clear();
        return NULL;
    }
    torch_kind *kind = &torch->kinds[torch->kind_count++];
    *kind = *wanted;
    kind->type = type_of_dlpack(tensor.type);
    kind->device = tensor.device;
    return kind;
}

const torch_kind *read_inner(module_state *state, PyObject *object, void **address) {
    torch_functions *torch = &state->torch;
    void *inner = inner_of(object);
    torch_kind wanted = {0};
    if (torch->address(inner, address) || torch->elements(inner, &wanted.elements) ||
        torch->device_type(inner, &wanted.device_type) || torch->device(inner, &wanted.number))
        return NULL;
    return find_kind(torch, &wanted, object);
}
