/* `function[grid]` of a served function, and its call. */
#include "served.h"
#include <structmember.h>

PyObject *positional_of(const triton_call *call) {
    PyObject *tuple = PyTuple_New(call->count);
    for (Py_ssize_t i = 0; tuple && i < call->count; i++) {
        Py_INCREF(call->values[i]);
        PyTuple_SetItem(tuple, i, call->values[i]);
    }
    return tuple;
}

PyObject *keywords_of(const triton_call *call) {
    PyObject *keywords = PyDict_New();
    for (Py_ssize_t i = 0, count = call->names ? PyTuple_Size(call->names) : 0; keywords && i < count; i++)
        if (PyDict_SetItem(keywords, PyTuple_GetItem(call->names, i), call->values[call->count + i]))
            Py_CLEAR(keywords);
    return keywords;
}

/* A call with a tuple and a dict comes this way. */
PyObject *call_flat(PyObject *self, vectorcall call, PyObject *positional, PyObject *keywords) {
    Py_ssize_t count = PyTuple_Size(positional), named = keywords ? PyDict_Size(keywords) : 0, place = 0;
    PyObject **items = PyMem_Malloc((size_t)(count + named + 1) * sizeof *items), *names = NULL, *name, *value;
    PyObject *result = NULL;
    if (!items)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++)
        items[i] = PyTuple_GetItem(positional, i);
    if (!named || (names = PyTuple_New(named))) {
        for (Py_ssize_t i = 0; i < named && PyDict_Next(keywords, &place, &name, &value); i++) {
            Py_INCREF(name);
            PyTuple_SetItem(names, i, name);
            items[count + i] = value;
        }
        result = call(self, items, (size_t)count, names);
    }
    Py_XDECREF(names);
    PyMem_Free(items);
    return result;
}

/* As a method has it: the first argument is the object. */
PyObject *bind_to(module_state *state, PyObject *self, PyObject *object) {
    if (object && object != Py_None)
        return PyObject_CallFunctionObjArgs(state->method_type, self, object, NULL);
    Py_INCREF(self);
    return self;
}

static PyObject *raise_twice(PyObject *name) {
    return PyErr_Format(PyExc_TypeError, "kernel[grid](...) got multiple values for keyword argument '%U'", name);
}

/* `function.run`, whatever that is, with what `function[grid](…)` says. */
static PyObject *call_run(const dispatcher_object *dispatcher, const triton_call *call) {
    PyObject *const *names = dispatcher->state->names;
    PyObject *positional = positional_of(call), *keywords = positional ? keywords_of(call) : NULL, *result = NULL;
    for (int i = 0; i < 2 && keywords; i++)
        if (PyDict_Contains(keywords, names[i ? NAME_WARMUP : NAME_GRID])) {
            raise_twice(names[i ? NAME_WARMUP : NAME_GRID]);
            Py_CLEAR(keywords);
        }
    PyObject *run = keywords ? PyObject_GetAttr(call->function, names[NAME_RUN]) : NULL;
    if (run && !PyDict_SetItem(keywords, names[NAME_GRID], call->grid) &&
        !PyDict_SetItem(keywords, names[NAME_WARMUP], Py_False))
        result = PyObject_Call(run, positional, keywords);
    Py_XDECREF(run);
    Py_XDECREF(keywords);
    Py_XDECREF(positional);
    return result;
}

static PyObject *served_call_vectorcall(PyObject *self, PyObject *const *arguments, size_t count_and_flag,
                                        PyObject *names) {
    served_call *bound = (served_call *)self;
    const triton_call call = {bound->function, bound->grid, arguments, count_of(count_and_flag), names};
    PyObject *result = call_known(bound->dispatcher, &call);
    return result || PyErr_Occurred() ? result : call_run(bound->dispatcher, &call);
}

static PyObject *served_call_call(PyObject *self, PyObject *positional, PyObject *keywords) {
    return call_flat(self, served_call_vectorcall, positional, keywords);
}

static int served_call_traverse(PyObject *self, visitproc visit, void *arg) {
    served_call *bound = (served_call *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)bound->dispatcher);
    Py_VISIT(bound->function);
    Py_VISIT(bound->grid);
    return 0;
}

static int served_call_clear(PyObject *self) {
    Py_CLEAR(((served_call *)self)->grid);
    return 0;
}

static void served_call_dealloc(PyObject *self) {
    served_call *bound = (served_call *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF((PyObject *)bound->dispatcher);
    Py_XDECREF(bound->function);
    Py_XDECREF(bound->grid);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

/* `__getitem__(function, grid)` */
static PyObject *subscript_vectorcall(PyObject *self, PyObject *const *arguments, size_t count_and_flag,
                                      PyObject *names) {
    dispatcher_object *dispatcher = ((subscript_object *)self)->dispatcher;
    if (count_of(count_and_flag) != 2 || names)
        return PyErr_Format(PyExc_TypeError, "__getitem__() takes a jit function and a grid");
    served_call *bound = PyObject_GC_New(served_call, dispatcher->state->served_call_type);
    if (!bound)
        return NULL;
    bound->call = served_call_vectorcall;
    bound->dispatcher = dispatcher;
    bound->function = arguments[0];
    bound->grid = arguments[1];
    Py_INCREF((PyObject *)dispatcher);
    Py_INCREF(bound->function);
    Py_INCREF(bound->grid);
    PyObject_GC_Track((PyObject *)bound);
    return (PyObject *)bound;
}

static PyObject *subscript_call(PyObject *self, PyObject *positional, PyObject *keywords) {
    return call_flat(self, subscript_vectorcall, positional, keywords);
}

static PyObject *subscript_bind(PyObject *self, PyObject *object, PyObject *type) {
    (void)type;
    return bind_to(((subscript_object *)self)->dispatcher->state, self, object);
}

static int subscript_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)((subscript_object *)self)->dispatcher);
    Py_VISIT(((subscript_object *)self)->layer);
    return 0;
}

static int subscript_clear(PyObject *self) {
    Py_CLEAR(((subscript_object *)self)->layer);
    return 0;
}

static void subscript_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    subscript_clear(self);
    Py_XDECREF((PyObject *)((subscript_object *)self)->dispatcher);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

PyObject *make_subscript(PyObject *self, PyObject *unused) {
    (void)unused;
    subscript_object *subscript = PyObject_GC_New(subscript_object, ((dispatcher_object *)self)->state->subscript_type);
    if (!subscript)
        return NULL;
    Py_INCREF(self);
    subscript->call = subscript_vectorcall;
    subscript->dispatcher = (dispatcher_object *)self;
    subscript->layer = NULL;
    PyObject_GC_Track((PyObject *)subscript);
    return (PyObject *)subscript;
}

static PyMemberDef subscript_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(subscript_object, call), READONLY, NULL},
    {"precast_layer", T_OBJECT_EX, offsetof(subscript_object, layer), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot subscript_slots[] = {
    {Py_tp_dealloc, subscript_dealloc}, {Py_tp_traverse, subscript_traverse}, {Py_tp_clear, subscript_clear},
    {Py_tp_call, subscript_call}, {Py_tp_descr_get, subscript_bind}, {Py_tp_members, subscript_members},
    {Py_tp_doc, "Gives a jit function a grid."}, {0, NULL},
};

PyType_Spec subscript_spec = {"_launch.Subscript", sizeof(subscript_object), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                  Py_TPFLAGS_METHOD_DESCRIPTOR | HAVE_VECTORCALL, subscript_slots};

static PyMemberDef served_call_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(served_call, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot served_call_slots[] = {
    {Py_tp_dealloc, served_call_dealloc}, {Py_tp_traverse, served_call_traverse}, {Py_tp_clear, served_call_clear},
    {Py_tp_call, served_call_call}, {Py_tp_members, served_call_members},
    {Py_tp_doc, "A jit function with a grid: call it."}, {0, NULL},
};

PyType_Spec served_call_spec = {"_launch.ServedCall", sizeof(served_call), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                    HAVE_VECTORCALL, served_call_slots};
