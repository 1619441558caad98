/* What stands in for Triton's way to launch: a call of a known function goes to its kernel, any other to Python. */
#include <string.h>

#include "served.h"
#include <structmember.h>

/* Whether one of Triton's chains of launch hooks has any: then they run in Python. */
static int has_hooks(const dispatcher_object *dispatcher, enum name which) {
    PyObject *hook = PyObject_GetAttr(dispatcher->settings, dispatcher->state->names[which]);
    if (!hook || hook == Py_None) {
        PyErr_Clear();
        Py_XDECREF(hook);
        return 0;
    }
    PyObject *calls = PyObject_GetAttr(hook, dispatcher->state->names[NAME_CALLS]);
    int has = !calls || !PyList_Check(calls) || PyList_Size(calls);
    PyErr_Clear();
    Py_XDECREF(calls);
    Py_DECREF(hook);
    return has;
}

static served_function *find_function(dispatcher_object *dispatcher, PyObject *function) {
    size_t place = ((uintptr_t)function >> 4) % RECENT_FUNCTIONS;
    if (dispatcher->recent[place].function == function)
        return dispatcher->recent[place].served;
    PyObject *id = PyLong_FromVoidPtr(function);
    PyObject *served = id && dispatcher->functions ? PyDict_GetItemWithError(dispatcher->functions, id) : NULL;
    Py_XDECREF(id);
    PyErr_Clear();
    if (served) {
        dispatcher->recent[place].function = function;
        dispatcher->recent[place].served = (served_function *)served;
    }
    return (served_function *)served;
}

/* What the call returns; NULL without an error where Python has to look at it. */
PyObject *call_known(dispatcher_object *dispatcher, const triton_call *call) {
    served_function *served = dispatcher->active ? find_function(dispatcher, call->function) : NULL;
    if (!served || (call->grid && served->has_own_run) || has_hooks(dispatcher, NAME_ENTER_HOOK) || has_hooks(dispatcher, NAME_EXIT_HOOK))
        return NULL;
    Py_INCREF((PyObject *)served); /* what runs meanwhile may well forget it */
    PyObject *result = call_served(served, call);
    Py_DECREF((PyObject *)served);
    return result;
}

/* `run(function, …, grid=grid, warmup=warmup)` */
static PyObject *dispatcher_vectorcall(PyObject *self, PyObject *const *arguments, size_t count_and_flag,
                                       PyObject *names) {
    dispatcher_object *dispatcher = (dispatcher_object *)self;
    Py_ssize_t count = count_of(count_and_flag);
    if (!count)
        return PyErr_Format(PyExc_TypeError, "run() needs a jit function");
    const triton_call call = {arguments[0], NULL, arguments + 1, count - 1, names};
    PyObject *result = call_known(dispatcher, &call);
    if (result || PyErr_Occurred())
        return result;
    if (!dispatcher->slow)
        return PyErr_Format(PyExc_RuntimeError, "the server is gone");
    PyObject *positional = positional_of(&call), *keywords = positional ? keywords_of(&call) : NULL;
    if (keywords)
        result = PyObject_CallFunctionObjArgs(dispatcher->slow, self, call.function, positional, keywords, NULL);
    Py_XDECREF(keywords);
    Py_XDECREF(positional);
    return result;
}

static PyObject *dispatcher_call(PyObject *self, PyObject *positional, PyObject *keywords) {
    return call_flat(self, dispatcher_vectorcall, positional, keywords);
}

static PyObject *dispatcher_bind(PyObject *self, PyObject *object, PyObject *type) {
    (void)type;
    return bind_to(((dispatcher_object *)self)->state, self, object);
}

static int dispatcher_traverse(PyObject *self, visitproc visit, void *arg) {
    dispatcher_object *dispatcher = (dispatcher_object *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(dispatcher->slow);
    Py_VISIT(dispatcher->settings);
    Py_VISIT(dispatcher->constexpr_type);
    Py_VISIT(dispatcher->layer);
    Py_VISIT(dispatcher->functions);
    return 0;
}

static int dispatcher_clear(PyObject *self) {
    dispatcher_object *dispatcher = (dispatcher_object *)self;
    memset(dispatcher->recent, 0, sizeof dispatcher->recent);
    Py_CLEAR(dispatcher->slow);
    Py_CLEAR(dispatcher->layer);
    Py_CLEAR(dispatcher->functions);
    return 0;
}

static void dispatcher_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    dispatcher_clear(self);
    Py_XDECREF(((dispatcher_object *)self)->settings);
    Py_XDECREF(((dispatcher_object *)self)->constexpr_type);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

PyObject *make_dispatcher(PyObject *release, PyObject *positional) {
    PyObject *slow, *settings, *constexpr_type;
    if (!PyArg_ParseTuple(positional, "OOO:dispatcher", &slow, &settings, &constexpr_type))
        return NULL;
    module_state *state = ((release_object *)release)->state;
    dispatcher_object *dispatcher = PyObject_GC_New(dispatcher_object, state->dispatcher_type);
    if (!dispatcher)
        return NULL;
    memset((char *)dispatcher + sizeof(PyObject), 0, sizeof *dispatcher - sizeof(PyObject));
    dispatcher->call = dispatcher_vectorcall;
    dispatcher->state = state;
    dispatcher->active = 1;
    Py_INCREF(slow), dispatcher->slow = slow;
    Py_INCREF(settings), dispatcher->settings = settings;
    Py_INCREF(constexpr_type), dispatcher->constexpr_type = constexpr_type;
    dispatcher->functions = PyDict_New();
    PyObject_GC_Track((PyObject *)dispatcher);
    return (PyObject *)dispatcher;
}

static PyObject *learn(PyObject *self, PyObject *positional) {
    dispatcher_object *dispatcher = (dispatcher_object *)self;
    PyObject *function = PyTuple_Size(positional) ? PyTuple_GetItem(positional, 0) : NULL;
    PyObject *served = (PyObject *)make_served_function(dispatcher, positional);
    PyObject *id = served ? PyLong_FromVoidPtr(function) : NULL;
    memset(dispatcher->recent, 0, sizeof dispatcher->recent);
    if (id && dispatcher->functions && !PyDict_SetItem(dispatcher->functions, id, served)) {
        Py_DECREF(id);
        return served;
    }
    Py_XDECREF(id);
    Py_XDECREF(served);
    return NULL;
}

static PyObject *forget(PyObject *self, PyObject *id) {
    dispatcher_object *dispatcher = (dispatcher_object *)self;
    memset(dispatcher->recent, 0, sizeof dispatcher->recent);
    if (dispatcher->functions && PyDict_Contains(dispatcher->functions, id) > 0)
        PyDict_DelItem(dispatcher->functions, id);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *stop(PyObject *self, PyObject *unused) {
    dispatcher_object *dispatcher = (dispatcher_object *)self;
    (void)unused;
    dispatcher->active = 0;
    memset(dispatcher->recent, 0, sizeof dispatcher->recent);
    if (dispatcher->functions)
        PyDict_Clear(dispatcher->functions);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"learn", learn, METH_VARARGS,
     "(function, name, parameters, hooks, options among them, has it a `run` of its own, watches): a known function."},
    {"forget", forget, METH_O, "The function of this id is known no longer."},
    {"stop", stop, METH_NOARGS, "Nothing is known any longer, and everything goes the slow way."},
    {"subscript", make_subscript, METH_NOARGS, "What stands in for `__getitem__`."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(dispatcher_object, call), READONLY, NULL},
    {"precast_layer", T_OBJECT_EX, offsetof(dispatcher_object, layer), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, dispatcher_dealloc}, {Py_tp_traverse, dispatcher_traverse}, {Py_tp_clear, dispatcher_clear},
    {Py_tp_call, dispatcher_call}, {Py_tp_descr_get, dispatcher_bind}, {Py_tp_methods, methods},
    {Py_tp_members, members}, {Py_tp_doc, "Runs Triton's calls from a release."}, {0, NULL},
};

PyType_Spec dispatcher_spec = {"_launch.Dispatcher", sizeof(dispatcher_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                   Py_TPFLAGS_METHOD_DESCRIPTOR | HAVE_VECTORCALL, slots};
