/* Python functions that the runtime calls during a launch: with the interpreter held, and their errors kept. */
#include "extension.h"

/* What a callback raised in this thread's launch, for when that returns. */
static _Thread_local PyObject *kept;

PyObject *exchange_failure(PyObject *failure) {
    PyObject *before = kept;
    kept = failure;
    return before;
}

/* The first error counts. */
static void keep_error(void) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace)
        PyException_SetTraceback(value, trace);
    if (kept)
        Py_XDECREF(value);
    else
        kept = value;
    Py_XDECREF(type);
    Py_XDECREF(trace);
}

/* A launch may have begun with a function that is set no longer. */
static PyObject *call_allocator(const release_object *owner, size_t bytes, size_t alignment, precast_stream stream,
                                int device) {
    PyObject *function = owner->allocate;
    if (!function) {
        PyErr_SetString(PyExc_RuntimeError, "the allocator was taken away while a launch needed it");
        return NULL;
    }
    Py_INCREF(function);
    PyObject *block = PyObject_CallFunction(function, "nnKi", (Py_ssize_t)bytes, (Py_ssize_t)alignment,
                                            (unsigned long long)(uintptr_t)stream, device);
    Py_DECREF(function);
    return block;
}

/* The allocator's function gives an address, or something that has one and is kept until it is released. */
static void *allocate(void *context, size_t bytes, size_t alignment, precast_stream stream, int device) {
    release_object *owner = context;
    PyGILState_STATE held = PyGILState_Ensure();
    tensor_view view = {.address = NULL};
    PyObject *block = call_allocator(owner, bytes, alignment, stream, device), *key = NULL;
    if (block && !read_tensor(owner->state, block, SHAPE_UNUSED, &view))
        key = PyLong_FromVoidPtr(view.address);
    if (!key || PyDict_SetItem(owner->blocks, key, block)) {
        view.address = NULL;
        keep_error();
    }
    Py_XDECREF(key);
    Py_XDECREF(block);
    PyGILState_Release(held);
    return view.address;
}

static void release_block(void *context, void *memory, precast_stream stream, int device) {
    release_object *owner = context;
    (void)stream, (void)device;
    PyGILState_STATE held = PyGILState_Ensure();
    PyObject *key = PyLong_FromVoidPtr(memory);
    if (!key || PyDict_DelItem(owner->blocks, key))
        PyErr_Clear();
    Py_XDECREF(key);
    PyGILState_Release(held);
}

PyObject *set_allocator(PyObject *self, PyObject *callable) {
    release_object *owner = (release_object *)self;
    precast_allocator mine = {allocate, release_block, owner};
    int none = callable == Py_None;
    if (!none && !PyCallable_Check(callable)) {
        PyErr_SetString(PyExc_TypeError, "an allocator is a function (bytes, alignment, stream, device), or None");
        return NULL;
    }
    PyObject *before = owner->allocate;
    Py_XINCREF(none ? NULL : callable);
    owner->allocate = none ? NULL : callable;
    precast_set_allocator(owner->release, none ? NULL : &mine);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static void read_buffer(void *context, const char *unit, const char *pass_name, const void *data,
                        size_t bytes_per_program, int64_t programs) {
    release_object *owner = context;
    PyGILState_STATE held = PyGILState_Ensure();
    PyObject *function = owner->reader;
    Py_XINCREF(function);
    PyObject *result = function ? PyObject_CallFunction(function, "ssy#nL", unit, pass_name, data,
                                                        (Py_ssize_t)(bytes_per_program * (size_t)programs),
                                                        (Py_ssize_t)bytes_per_program, (long long)programs) : NULL;
    if (function && !result)
        keep_error();
    Py_XDECREF(function);
    Py_XDECREF(result);
    PyGILState_Release(held);
}

PyObject *set_buffer_reader(PyObject *self, PyObject *callable) {
    release_object *owner = (release_object *)self;
    int none = callable == Py_None;
    if (!none && !PyCallable_Check(callable)) {
        PyErr_SetString(PyExc_TypeError,
                        "a buffer reader is a function (unit, pass, data, bytes per program, programs), or None");
        return NULL;
    }
    PyObject *before = owner->reader;
    Py_XINCREF(none ? NULL : callable);
    owner->reader = none ? NULL : callable;
    precast_set_buffer_reader(owner->release, none ? NULL : read_buffer, owner);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}
