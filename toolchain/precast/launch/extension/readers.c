/* Tensors of any framework as address, element type and device, with nothing imported: by what their type offers. */
#include <string.h>

#include "extension.h"
#include "index.h"

static int is_host(int device_type) {
    return device_type == DL_CPU || device_type == DL_CUDA_HOST || device_type == DL_ROCM_HOST;
}

int backend_of(int device_type) {
    if (is_host(device_type))
        return PRECAST_HOST;
    return device_type == DL_CUDA || device_type == DL_CUDA_MANAGED ? PRECAST_CUDA
           : device_type == DL_ROCM                                  ? PRECAST_HIP
                                                                     : -1;
}

static int set_device(tensor_view *view, dl_device device) {
    view->backend = backend_of(device.type);
    view->device = device.id;
    view->dl_device_type = device.type;
    if (view->backend < 0) {
        PyErr_Format(PyExc_TypeError, "device type %d of DLPack is none that kernels run on", (int)device.type);
        return -1;
    }
    return 0;
}

static int from_dl_tensor(const dl_tensor *tensor, tensor_view *view) {
    uint64_t last = 0;
    view->address = (char *)tensor->data + tensor->byte_offset;
    view->type = type_of_dlpack(tensor->type);
    view->rank = tensor->rank > 8 ? -1 : tensor->rank;
    int64_t dense = 1;
    for (int i = tensor->rank - 1; i >= 0 && view->rank >= 0; i--) {
        view->shape[i] = tensor->shape[i];
        view->strides[i] = tensor->strides ? tensor->strides[i] : dense;
        dense *= tensor->shape[i];
        last += tensor->shape[i] > 0 ? (uint64_t)(tensor->shape[i] - 1) * (uint64_t)view->strides[i] : 0;
    }
    view->bytes = (last + 1) * ((uint64_t)tensor->type.bits * tensor->type.lanes + 7) / 8;
    return set_device(view, tensor->device);
}

static int read_exchange(const reader *from, PyObject *object, tensor_view *view) {
    dl_tensor tensor;
    return from->exchange->read(object, &tensor) ? -1 : from_dl_tensor(&tensor, view);
}

/* DLPack's two capsules; the versioned one has version, context, deleter and flags before the tensor. */
static int read_capsule(PyObject *capsule, tensor_view *view) {
    if (PyCapsule_IsValid(capsule, "dltensor"))
        return from_dl_tensor(PyCapsule_GetPointer(capsule, "dltensor"), view);
    if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        return from_dl_tensor((dl_tensor *)((char *)PyCapsule_GetPointer(capsule, "dltensor_versioned") + 32), view);
    PyErr_SetString(PyExc_TypeError, "__dlpack__ gave no DLPack capsule");
    return -1;
}

static int read_dlpack(module_state *state, PyObject *object, tensor_view *view) {
    PyObject *method = PyObject_GetAttr(object, state->names[NAME_DLPACK]);
    PyObject *capsule = method ? PyObject_CallNoArgs(method) : NULL;
    int failed = capsule ? read_capsule(capsule, view) : -1;
    Py_XDECREF(capsule);
    Py_XDECREF(method);
    return failed;
}

static int read_integer(PyObject *object, uint64_t *value) {
    *value = object ? PyLong_AsUnsignedLongLongMask(object) : 0;
    return object && !PyErr_Occurred() ? 0 : -1;
}

static int call_for_integer(PyObject *object, PyObject *name, int64_t *value) {
    PyObject *result = PyObject_CallMethodObjArgs(object, name, NULL);
    *value = result ? PyLong_AsLongLong(result) : -1;
    Py_XDECREF(result);
    return PyErr_Occurred() ? -1 : 0;
}

static int torch_is_hip(module_state *state) {
    if (state->torch_is_hip < 0) {
        PyObject *modules = PyImport_GetModuleDict();
        PyObject *torch = PyDict_GetItemString(modules, "torch");
        PyObject *version = torch ? PyObject_GetAttrString(torch, "version") : NULL;
        PyObject *hip = version ? PyObject_GetAttrString(version, "hip") : NULL;
        state->torch_is_hip = hip && hip != Py_None;
        Py_XDECREF(hip);
        Py_XDECREF(version);
        PyErr_Clear();
    }
    return state->torch_is_hip;
}

uint8_t known_dtype(module_state *state, PyObject *dtype) {
    for (int i = 0; i < state->dtype_count; i++)
        if (state->dtypes[i].dtype == dtype)
            return state->dtypes[i].type;
    uint8_t type = type_of_object(dtype);
    if (state->dtype_count < MOST_DTYPES) {
        Py_INCREF(dtype);
        state->dtypes[state->dtype_count].dtype = dtype;
        state->dtypes[state->dtype_count++].type = type;
    }
    return type;
}

/* Shape or strides; what is not a short sequence of integers is an error. */
static int read_integers(PyObject *sequence, int64_t values[8]) {
    Py_ssize_t count = sequence ? PySequence_Size(sequence) : -1;
    if (count > 8)
        PyErr_SetString(PyExc_TypeError, "a tensor of more than 8 dimensions");
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        values[i] = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
    }
    return PyErr_Occurred() || count < 0 ? -1 : (int)count;
}

static int read_torch_shape(module_state *state, PyObject *object, tensor_view *view) {
    PyObject *shape = PyObject_GetAttr(object, state->names[NAME_SHAPE]);
    PyObject *strides = shape ? PyObject_CallMethodObjArgs(object, state->names[NAME_STRIDE], NULL) : NULL;
    view->rank = read_integers(shape, view->shape);
    int rank = view->rank < 0 ? -1 : read_integers(strides, view->strides);
    Py_XDECREF(strides);
    Py_XDECREF(shape);
    return rank == view->rank && rank >= 0 ? 0 : -1;
}

/* torch and whatever looks like it: data_ptr(), dtype, get_device(). */
static int read_torch(module_state *state, PyObject *object, int with_shape, int with_bytes, tensor_view *view) {
    int64_t address, device;
    if (call_for_integer(object, state->names[NAME_DATA_PTR], &address) ||
        call_for_integer(object, state->names[NAME_GET_DEVICE], &device))
        return -1;
    PyObject *dtype = PyObject_GetAttr(object, state->names[NAME_DTYPE]);
    if (!dtype)
        return -1;
    view->address = (void *)(intptr_t)address;
    view->type = known_dtype(state, dtype);
    view->backend = device < 0 ? PRECAST_HOST : torch_is_hip(state) ? PRECAST_HIP : PRECAST_CUDA;
    view->device = device < 0 ? 0 : (int)device;
    Py_DECREF(dtype);
    if (with_bytes) {
        PyObject *bytes = PyObject_GetAttr(object, state->names[NAME_NBYTES]);
        int failed = read_integer(bytes, &view->bytes);
        Py_XDECREF(bytes);
        if (failed)
            return -1;
    }
    return with_shape ? read_torch_shape(state, object, view) : 0;
}

static int read_interface_type(module_state *state, PyObject *interface, PyObject *object, tensor_view *view) {
    PyObject *typestr = PyObject_GetItem(interface, state->names[NAME_TYPESTR]);
    const char *text = typestr ? PyUnicode_AsUTF8AndSize(typestr, NULL) : NULL;
    view->type = text ? type_of_typestr(text) : 0;
    Py_XDECREF(typestr);
    if (text && !view->type) {
        /* An extension type, as ml_dtypes' bfloat16: its name says it. */
        PyObject *dtype = PyObject_GetAttr(object, state->names[NAME_DTYPE]);
        view->type = dtype ? type_of_object(dtype) : 0;
        Py_XDECREF(dtype);
        PyErr_Clear();
    }
    return text ? 0 : -1;
}

static int is_second_true(PyObject *pair) {
    PyObject *second = PySequence_GetItem(pair, 1);
    int truth = second && PyObject_IsTrue(second) > 0;
    Py_XDECREF(second);
    PyErr_Clear();
    return truth;
}

/* Both array interfaces: a dict with `data` (address, read-only), `typestr`, `shape`, `strides` in bytes or None. */
static int read_interface(module_state *state, PyObject *object, enum name which, tensor_view *view) {
    PyObject *interface = PyObject_GetAttr(object, state->names[which]);
    PyObject *data = interface ? PyObject_GetItem(interface, state->names[NAME_DATA]) : NULL;
    PyObject *address = data ? PySequence_GetItem(data, 0) : NULL;
    PyObject *shape = address ? PyObject_GetItem(interface, state->names[NAME_SHAPE]) : NULL;
    uint64_t place = 0;
    int failed = read_integer(address, &place) || read_interface_type(state, interface, object, view) ||
                 (view->rank = read_integers(shape, view->shape)) < 0;
    PyObject *strides = failed ? NULL : PyObject_GetItem(interface, state->names[NAME_STRIDES]);
    if (!strides && !failed)
        PyErr_Clear();
    static const uint8_t sizes[] = {1, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1, 1, 1, 1};
    int64_t size = sizes[view->type], dense = 1;
    uint64_t last = 0;
    if (!failed && strides && strides != Py_None)
        failed = read_integers(strides, view->strides) != view->rank;
    for (int i = view->rank - 1; !failed && i >= 0; i--) {
        view->strides[i] = strides && strides != Py_None ? view->strides[i] / size : dense;
        dense *= view->shape[i];
        last += view->shape[i] > 0 ? (uint64_t)((view->shape[i] - 1) * view->strides[i]) : 0;
    }
    view->address = (void *)(uintptr_t)place;
    view->bytes = (last + 1) * (uint64_t)size;
    view->backend = which == NAME_ARRAY_INTERFACE ? PRECAST_HOST : PRECAST_CUDA;
    view->device = -1; /* not said: the current one */
    view->read_only = !failed && is_second_true(data);
    Py_XDECREF(strides);
    Py_XDECREF(shape);
    Py_XDECREF(address);
    Py_XDECREF(data);
    Py_XDECREF(interface);
    return failed ? -1 : 0;
}

static int has(PyObject *type, PyObject *name) {
    return PyObject_HasAttr(type, name);
}

static const dl_exchange *find_exchange(module_state *state, PyObject *type) {
    PyObject *capsule = PyObject_GetAttr(type, state->names[NAME_EXCHANGE]);
    const dl_exchange *exchange = NULL;
    if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        exchange = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_XDECREF(capsule);
    PyErr_Clear();
    return exchange && exchange->major == 1 && exchange->read && exchange->current_stream ? exchange : NULL;
}

int comes_from(PyObject *type, const char *package) {
    PyObject *module = PyObject_GetAttrString(type, "__module__");
    const char *text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, NULL) : NULL;
    int does = text && !strncmp(text, package, strlen(package));
    Py_XDECREF(module);
    PyErr_Clear();
    return does;
}

/* NumPy's numbers have an array interface, to memory of their own that nobody means to pass. */
static int is_number_of_numpy(const module_state *state, PyObject *type) {
    return comes_from(type, "numpy") && !has(type, state->names[NAME_SET_ITEM]);
}

static reader_kind choose_kind(module_state *state, PyObject *type, const dl_exchange *exchange) {
    if (exchange)
        return READ_EXCHANGE;
    if (has(type, state->names[NAME_DATA_PTR]))
        return has(type, state->names[NAME_GET_DEVICE]) && has(type, state->names[NAME_DTYPE]) ? READ_TORCH : READ_POINTER;
    if (has(type, state->names[NAME_ARRAY_INTERFACE]) && !is_number_of_numpy(state, type))
        return READ_ARRAY_INTERFACE;
    if (has(type, state->names[NAME_DLPACK]))
        return READ_DLPACK;
    if (has(type, state->names[NAME_CUDA_INTERFACE]))
        return READ_CUDA_INTERFACE;
    return has(type, state->names[NAME_INDEX]) ? READ_INDEX : READ_UNKNOWN;
}

/* The reader of the object's type, where that was met before. */
const reader *known_reader(const module_state *state, PyObject *object) {
    PyObject *type = (PyObject *)Py_TYPE(object);
    for (int i = 0; i < state->reader_count; i++)
        if (state->readers[i].type == type)
            return &state->readers[i];
    return NULL;
}

/* Kept for as many types as there is room for. */
static reader find_reader(module_state *state, PyObject *object) {
    PyObject *type = (PyObject *)Py_TYPE(object);
    const reader *known = known_reader(state, object);
    if (known)
        return *known;
    const dl_exchange *exchange = find_exchange(state, type);
    reader found = {type, choose_kind(state, type, exchange), exchange, comes_from(type, "cupy")};
    if (found.kind != READ_UNKNOWN && state->reader_count < MOST_READERS) {
        Py_INCREF(type);
        state->readers[state->reader_count++] = found;
    }
    return found;
}

static int read_pointer(module_state *state, PyObject *object, tensor_view *view) {
    int64_t address;
    if (call_for_integer(object, state->names[NAME_DATA_PTR], &address))
        return -1;
    view->address = (void *)(intptr_t)address;
    return 0;
}

/* None, an integer, or what stands for one. */
static int read_address(PyObject *object, tensor_view *view) {
    PyObject *number = object == Py_None ? NULL : PyNumber_Index(object);
    if (number)
        view->address = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(number);
    Py_XDECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

int read_tensor(module_state *state, PyObject *object, int with_shape, int with_bytes, tensor_view *view) {
    memset(view, 0, offsetof(tensor_view, shape));
    view->from = (reader){0};
    view->rank = -1;
    if (object == Py_None || PyLong_Check(object))
        return read_address(object, view);
    view->from = find_reader(state, object);
    switch (view->from.kind) {
    case READ_EXCHANGE:
        return read_exchange(&view->from, object, view);
    case READ_TORCH:
        return read_torch(state, object, with_shape, with_bytes, view);
    case READ_ARRAY_INTERFACE:
        return read_interface(state, object, NAME_ARRAY_INTERFACE, view);
    case READ_CUDA_INTERFACE:
        return read_interface(state, object, NAME_CUDA_INTERFACE, view);
    case READ_POINTER:
        return read_pointer(state, object, view);
    case READ_DLPACK:
        return read_dlpack(state, object, view);
    case READ_INDEX:
        view->from.kind = READ_UNKNOWN;
        return read_address(object, view);
    default:
        PyErr_SetNone(PyExc_TypeError);
        return -1;
    }
}
