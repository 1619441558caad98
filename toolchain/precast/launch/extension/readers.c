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

/* What a tensor reaches, in bytes: from its lowest element to the end of its highest, whatever its strides. At most
 * UINT64_MAX; an empty one reaches one element. Strides are in elements; NULL is a dense tensor. */
static uint64_t find_extent(int rank, const int64_t *shape, const int64_t *strides, uint64_t element) {
    uint64_t last = 0, bytes;
    int64_t dense = 1;
    for (int i = rank - 1; i >= 0; i--) {
        int64_t stride = strides ? strides[i] : dense, reach;
        if (shape[i] < 1)
            return element;
        if (__builtin_mul_overflow(shape[i] - 1, stride, &reach) || reach == INT64_MIN ||
            __builtin_add_overflow(last, (uint64_t)(reach < 0 ? -reach : reach), &last) ||
            (!strides && __builtin_mul_overflow(dense, shape[i], &dense)))
            return UINT64_MAX;
    }
    return __builtin_add_overflow(last, UINT64_C(1), &last) || __builtin_mul_overflow(last, element, &bytes)
               ? UINT64_MAX : bytes;
}

static int is_empty(int rank, const int64_t *shape) {
    for (int i = 0; i < rank; i++)
        if (!shape[i])
            return 1;
    return 0;
}

static int lacks_memory(void) {
    PyErr_SetString(PyExc_ValueError, "it has elements and no memory");
    return -1;
}

/* What a tracer or a shape without memory gives for an address; an empty tensor may have none. */
static int check_memory(const tensor_view *view, int rank, const int64_t *shape) {
    return view->address || is_empty(rank, shape) ? 0 : lacks_memory();
}

static int from_dl_tensor(const dl_tensor *tensor, tensor_view *view) {
    view->address = tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
    view->type = type_of_dlpack(tensor->type);
    view->rank = tensor->rank > 8 ? -1 : tensor->rank;
    int64_t dense = 1;
    for (int i = tensor->rank - 1; i >= 0 && view->rank >= 0; i--) {
        view->shape[i] = tensor->shape[i];
        view->strides[i] = tensor->strides ? tensor->strides[i] : dense;
        dense *= tensor->shape[i];
    }
    uint64_t element = ((uint64_t)tensor->type.bits * tensor->type.lanes + 7) / 8;
    view->bytes = find_extent(tensor->rank, tensor->shape, tensor->strides, element);
    return set_device(view, tensor->device) || check_memory(view, tensor->rank, tensor->shape);
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

/* Bytes of each element type. */
static uint64_t size_of(uint8_t type) {
    static const uint8_t sizes[] = {1, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1, 1, 1, 1};
    return sizes[type];
}

static int call_for_integer(PyObject *object, PyObject *name, int64_t *value) {
    PyObject *result = PyObject_CallMethodObjArgs(object, name, NULL);
    *value = result ? PyLong_AsLongLong(result) : -1;
    Py_XDECREF(result);
    return PyErr_Occurred() ? -1 : 0;
}

/* Whether torch's tensor has memory: its storage says so, and some have none that could be asked. */
static int has_storage(module_state *state, PyObject *object) {
    int64_t address = 0;
    PyObject *storage = PyObject_CallMethodObjArgs(object, state->names[NAME_STORAGE], NULL);
    int is_anothers = !storage && PyErr_ExceptionMatches(PyExc_AttributeError);
    if (storage && call_for_integer(storage, state->names[NAME_DATA_PTR], &address))
        address = 0;
    Py_XDECREF(storage);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear();
    return is_anothers || address;
}

static int check_storage(module_state *state, PyObject *object, const tensor_view *view) {
    if (!view->address || (!view->from.may_lack_memory && (uintptr_t)view->address >= UNLIKELY_ADDRESSES))
        return 0;
    int has = has_storage(state, object);
    return has > 0 ? 0 : has ? -1 : lacks_memory();
}

static int read_exchange(module_state *state, const reader *from, PyObject *object, tensor_view *view) {
    dl_tensor tensor;
    if (from->exchange->read(object, &tensor) || from_dl_tensor(&tensor, view))
        return -1;
    return is_empty(tensor.rank, tensor.shape) ? 0 : check_storage(state, object, view);
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

/* torch and whatever looks like it: data_ptr(), dtype, get_device(); its shape only where that is of use. */
static int read_torch(module_state *state, PyObject *object, shape_use use, tensor_view *view) {
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
    if (use == SHAPE_UNUSED && address)
        return check_storage(state, object, view);
    if (read_torch_shape(state, object, view)) {
        if (use == SHAPE_NEEDED || !PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear(); /* one that does not say its shape */
        return 0;
    }
    view->bytes = find_extent(view->rank, view->shape, view->strides, size_of(view->type));
    if (is_empty(view->rank, view->shape))
        return 0;
    return check_memory(view, view->rank, view->shape) || check_storage(state, object, view) ? -1 : 0;
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
    int64_t size = (int64_t)size_of(view->type), dense = 1;
    if (!failed && strides && strides != Py_None)
        failed = read_integers(strides, view->strides) != view->rank;
    for (int i = view->rank - 1; !failed && i >= 0; i--) {
        view->strides[i] = strides && strides != Py_None ? view->strides[i] / size : dense;
        dense *= view->shape[i];
    }
    view->address = (void *)(uintptr_t)place;
    view->bytes = failed ? 0 : find_extent(view->rank, view->shape, view->strides, (uint64_t)size);
    failed = failed || check_memory(view, view->rank, view->shape);
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

/* Of a type whose operations are torch's own this is a C function. */
static int has_torch_dispatch(const module_state *state, PyObject *type) {
    PyObject *dispatch = PyObject_GetAttr(type, state->names[NAME_TORCH_DISPATCH]);
    int has_own = dispatch && !PyObject_TypeCheck(dispatch, &PyCFunction_Type);
    Py_XDECREF(dispatch);
    PyErr_Clear();
    return has_own;
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
    reader found = {type, choose_kind(state, type, exchange), exchange, comes_from(type, "cupy"), 0,
                    has_torch_dispatch(state, type)};
    found.reads_inner = exchange && !found.may_lack_memory && reads_inner(state, exchange, object);
    if (found.kind != READ_UNKNOWN && state->reader_count < MOST_READERS) {
        Py_INCREF(type);
        state->readers[state->reader_count++] = found;
    }
    return found;
}

/* Where a tensor under another type lies: where the one does that it is `base` of. */
static void find_framework(module_state *state, PyObject *object, tensor_view *view) {
    PyObject *base = PyObject_GetAttr(object, state->names[NAME_BASE]);
    tensor_view under = {.address = NULL};
    if (base && base != object) {
        under.from = find_reader(state, base);
        int known = under.from.kind == READ_EXCHANGE ? !read_exchange(state, &under.from, base, &under)
                    : under.from.kind == READ_TORCH  ? !read_torch(state, base, SHAPE_UNUSED, &under)
                                                     : 0;
        if (known) {
            view->backend = under.backend;
            view->device = under.device;
            view->dl_device_type = under.dl_device_type;
            view->framework = under.from;
        }
    }
    PyErr_Clear();
    Py_XDECREF(base);
}

static int read_pointer(module_state *state, PyObject *object, tensor_view *view) {
    int64_t address;
    if (call_for_integer(object, state->names[NAME_DATA_PTR], &address))
        return -1;
    view->address = (void *)(intptr_t)address;
    find_framework(state, object, view);
    PyObject *dtype = PyObject_GetAttr(object, state->names[NAME_DTYPE]);
    view->type = dtype ? known_dtype(state, dtype) : 0;
    Py_XDECREF(dtype);
    PyErr_Clear();
    if ((uint64_t)address >= UNLIKELY_ADDRESSES)
        return 0;
    PyObject *shape = PyObject_GetAttr(object, state->names[NAME_SHAPE]);
    int rank = shape ? read_integers(shape, view->shape) : -1;
    Py_XDECREF(shape);
    PyErr_Clear();
    PyObject *base = PyObject_GetAttr(object, state->names[NAME_BASE]); /* of torch's tensors under another type */
    PyErr_Clear();
    int failed = rank >= 0 && !is_empty(rank, view->shape) &&
                 (check_memory(view, rank, view->shape) || check_storage(state, base ? base : object, view));
    Py_XDECREF(base);
    return failed ? -1 : 0;
}

/* None, an integer, or what stands for one. */
static int read_address(PyObject *object, tensor_view *view) {
    PyObject *number = object == Py_None ? NULL : PyNumber_Index(object);
    if (number)
        view->address = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(number);
    Py_XDECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

int read_tensor(module_state *state, PyObject *object, shape_use use, tensor_view *view) {
    memset(view, 0, offsetof(tensor_view, shape));
    view->from = (reader){0};
    view->rank = -1;
    if (object == Py_None || PyLong_Check(object))
        return read_address(object, view);
    view->framework = view->from = find_reader(state, object);
    switch (view->from.kind) {
    case READ_EXCHANGE:
        return read_exchange(state, &view->from, object, view);
    case READ_TORCH:
        return read_torch(state, object, use, view);
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
