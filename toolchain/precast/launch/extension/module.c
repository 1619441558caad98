/* The module `_launch`: opens releases. */
#include <stdio.h>
#include <string.h>

#include "served.h"

static const char *const name_texts[NAME_COUNT] = {
    [NAME_DATA_PTR] = "data_ptr", [NAME_DTYPE] = "dtype", [NAME_GET_DEVICE] = "get_device",
    [NAME_DLPACK] = "__dlpack__", [NAME_DLPACK_DEVICE] = "__dlpack_device__",
    [NAME_ARRAY_INTERFACE] = "__array_interface__", [NAME_CUDA_INTERFACE] = "__cuda_array_interface__",
    [NAME_EXCHANGE] = "__dlpack_c_exchange_api__", [NAME_SHAPE] = "shape", [NAME_STRIDE] = "stride",
    [NAME_BASE] = "base", [NAME_STRIDES] = "strides", [NAME_PADDING] = "padding", [NAME_STREAM] = "stream",
    [NAME_CUDA_STREAM] = "cuda_stream", [NAME_PTR] = "ptr", [NAME_STREAM_PROTOCOL] = "__cuda_stream__",
    [NAME_DATA] = "data", [NAME_TYPESTR] = "typestr", [NAME_NAME] = "name", [NAME_ROUND] = "round_f32_to_tf32",
    [NAME_INDEX] = "__index__", [NAME_SET_ITEM] = "__setitem__", [NAME_STORAGE] = "untyped_storage",
    [NAME_TORCH_DISPATCH] = "__torch_dispatch__", [NAME_ENTER_HOOK] = "launch_enter_hook",
    [NAME_EXIT_HOOK] = "launch_exit_hook", [NAME_CALLS] = "calls", [NAME_VALUE] = "value", [NAME_GRID] = "grid",
    [NAME_WARMUP] = "warmup", [NAME_RUN] = "run",
};

PyObject *raise_status(module_state *state, precast_status status) {
    PyObject *error = PyObject_CallFunction(state->error, "s", precast_error());
    PyObject *number = error ? PyLong_FromLong(status) : NULL, *nearness = PyLong_FromLong(precast_nearness());
    if (number && nearness && !PyObject_SetAttrString(error, "status", number) &&
        !PyObject_SetAttrString(error, "nearness", nearness))
        PyErr_SetObject(state->error, error);
    Py_XDECREF(nearness);
    Py_XDECREF(number);
    Py_XDECREF(error);
    return NULL;
}

static int parse_digest(const char *text, unsigned char digest[32]) {
    for (int i = 0; i < 64; i++) {
        char sign = text[i];
        int value = sign >= '0' && sign <= '9' ? sign - '0' : sign >= 'a' && sign <= 'f' ? sign - 'a' + 10 : -1;
        if (value < 0)
            return PyErr_Format(PyExc_ValueError, "an interface digest has 64 hexadecimal digits"), -1;
        digest[i / 2] = (unsigned char)(i % 2 ? digest[i / 2] | value : value << 4);
    }
    return 0;
}

static PyObject *open_release(PyObject *module, PyObject *positional, PyObject *keywords) {
    static char *names[] = {"folder", "interface", "public_key", NULL};
    module_state *state = PyModule_GetState(module);
    PyObject *folder = NULL;
    const char *interface = NULL, *key = NULL;
    Py_ssize_t key_size = 0;
    unsigned char digest[32];
    if (!PyArg_ParseTupleAndKeywords(positional, keywords, "O&|$zz#:open", names, PyUnicode_FSConverter, &folder,
                                     &interface, &key, &key_size))
        return NULL;
    release_object *owner = NULL;
    if (key && key_size != 32)
        PyErr_Format(PyExc_ValueError, "an ed25519 public key has 32 bytes, not %zd", key_size);
    else if (!interface || !parse_digest(interface, digest))
        owner = PyObject_GC_New(release_object, state->release_type);
    if (!owner) {
        Py_DECREF(folder);
        return NULL;
    }
    memset((char *)owner + sizeof(PyObject), 0, sizeof *owner - sizeof(PyObject));
    owner->state = state;
    owner->blocks = PyDict_New();
    precast_status status = precast_open(PyBytes_AsString(folder), NULL, interface ? digest : NULL,
                                         (const unsigned char *)key, &owner->release);
    Py_DECREF(folder);
    if (status != PRECAST_OK) {
        Py_DECREF((PyObject *)owner);
        return raise_status(state, status);
    }
    PyObject_GC_Track((PyObject *)owner);
    return (PyObject *)owner;
}

/* The error belongs to the package that has this module, by which another process finds it. */
static PyObject *make_error(PyObject *module) {
    char full[256];
    const char *name = PyModule_GetName(module);
    if (!name)
        return NULL;
    const char *own = strstr(name, "._launch");
    snprintf(full, sizeof full, "%.*s.LaunchError", own ? (int)(own - name) : 200, name);
    return PyErr_NewExceptionWithDoc(full, "A release or a launch was refused; `status` says which way.",
                                     PyExc_RuntimeError, NULL);
}

static PyTypeObject *make_type(PyObject *module, PyType_Spec *spec) {
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
}

static PyObject *find_method_type(void) {
    PyObject *types = PyImport_ImportModule("types");
    PyObject *type = types ? PyObject_GetAttrString(types, "MethodType") : NULL;
    Py_XDECREF(types);
    return type;
}

static int make_types(PyObject *module, module_state *state) {
    const struct { PyTypeObject **into; PyType_Spec *spec; } types[] = {
        {&state->release_type, &release_spec}, {&state->kernel_type, &kernel_spec}, {&state->bound_type, &bound_spec},
        {&state->dispatcher_type, &dispatcher_spec}, {&state->subscript_type, &subscript_spec},
        {&state->served_call_type, &served_call_spec}, {&state->served_function_type, &served_function_spec},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!(*types[i].into = make_type(module, types[i].spec)))
            return -1;
    return 0;
}

static int fill_state(PyObject *module, module_state *state) {
    state->torch_is_hip = -1;
    for (int i = 0; i < NAME_COUNT; i++)
        if (!(state->names[i] = PyUnicode_InternFromString(name_texts[i])))
            return -1;
    state->error = make_error(module);
    state->method_type = find_method_type();
    return state->error && state->method_type ? make_types(module, state) : -1;
}

static int execute(PyObject *module) {
    module_state *state = PyModule_GetState(module);
    memset(state, 0, sizeof *state);
    if (fill_state(module, state))
        return -1;
    Py_INCREF(state->error);
    if (PyModule_AddObject(module, "LaunchError", state->error)) {
        Py_DECREF(state->error);
        return -1;
    }
    return PyModule_AddIntConstant(module, "launch_abi", PRECAST_LAUNCH_ABI);
}

static PyMethodDef methods[] = {
    {"open", (PyCFunction)(void (*)(void))open_release, METH_VARARGS | METH_KEYWORDS,
     "Opens the release in a folder; `interface` is the digest that the caller was generated for."},
    {"run_programs", run_programs, METH_VARARGS,
     "(entry, values, x, y, z, scratch_bytes): runs a CPU unit's entry, an address, on a grid. Whether all asserts held."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_launch", "Launches the kernels of releases.", sizeof(module_state), methods, slots, NULL,
    NULL, NULL,
};

PyMODINIT_FUNC PyInit__launch(void) {
    return PyModuleDef_Init(&definition);
}
