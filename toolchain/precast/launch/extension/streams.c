/* The stream of a launch: the one that is given, or the current one of the framework that the tensors come from. */
#include "extension.h"
#include "index.h"

/* An address from an integer, or from an attribute that holds one. */
static int read_address(PyObject *object, precast_stream *stream) {
    unsigned long long value = object ? PyLong_AsUnsignedLongLong(object) : 0;
    *stream = (precast_stream)(uintptr_t)value;
    return !object || PyErr_Occurred() ? -1 : 0;
}

static int read_attribute(PyObject *given, PyObject *name, precast_stream *stream) {
    PyObject *value = PyObject_GetAttr(given, name);
    int failed = read_address(value, stream);
    Py_XDECREF(value);
    return failed;
}

/* __cuda_stream__ gives (version, address). */
static int read_protocol(PyObject *given, PyObject *name, precast_stream *stream) {
    PyObject *pair = PyObject_CallMethodObjArgs(given, name, NULL);
    PyObject *address = pair ? PySequence_GetItem(pair, 1) : NULL;
    int failed = read_address(address, stream);
    Py_XDECREF(address);
    Py_XDECREF(pair);
    return failed;
}

static int read_given(module_state *state, PyObject *given, precast_stream *stream) {
    if (PyLong_Check(given) && !read_address(given, stream))
        return 0;
    if (PyObject_HasAttr(given, state->names[NAME_CUDA_STREAM]))
        return read_attribute(given, state->names[NAME_CUDA_STREAM], stream);
    if (PyObject_HasAttr(given, state->names[NAME_STREAM_PROTOCOL]))
        return read_protocol(given, state->names[NAME_STREAM_PROTOCOL], stream);
    if (PyObject_HasAttr(given, state->names[NAME_PTR]))
        return read_attribute(given, state->names[NAME_PTR], stream);
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "stream is an address or a stream of torch or CuPy, not %R", given);
    return -1;
}

/* torch's, by the function that gives it as a number; found when it is first needed. */
static int read_torch(module_state *state, int device, precast_stream *stream) {
    if (!state->torch_stream) {
        PyObject *torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch._C");
        state->torch_stream = torch ? PyObject_GetAttrString(torch, "_cuda_getCurrentRawStream") : NULL;
        if (!state->torch_stream) {
            PyErr_Clear();
            *stream = NULL;
            return 0;
        }
    }
    PyObject *number = PyLong_FromLong(device);
    PyObject *value = number ? PyObject_CallFunctionObjArgs(state->torch_stream, number, NULL) : NULL;
    int failed = read_address(value, stream);
    Py_XDECREF(value);
    Py_XDECREF(number);
    return failed;
}

static int read_cupy(module_state *state, precast_stream *stream) {
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "cupy.cuda");
    PyObject *current = module ? PyObject_CallMethod(module, "get_current_stream", NULL) : NULL;
    int failed = current ? read_attribute(current, state->names[NAME_PTR], stream) : -1;
    Py_XDECREF(current);
    return failed;
}

int find_stream(module_state *state, PyObject *given, const tensor_origin *origin, precast_stream *stream) {
    const reader *from = &origin->from;
    *stream = NULL;
    if (given && given != Py_None && origin->backend == PRECAST_HOST) {
        PyErr_Format(PyExc_TypeError, "stream is a GPU's, and argument `%U` is in the host's memory", origin->name);
        return -1;
    }
    if (given && given != Py_None)
        return read_given(state, given, stream);
    if (from->kind == READ_UNKNOWN || origin->backend == PRECAST_HOST)
        return 0;
    if (from->kind == READ_EXCHANGE)
        return from->exchange->current_stream(origin->backend == PRECAST_CUDA ? DL_CUDA : DL_ROCM, origin->device,
                                              stream);
    if (from->kind == READ_TORCH)
        return read_torch(state, origin->device, stream);
    return from->is_cupy ? read_cupy(state, stream) : 0;
}
