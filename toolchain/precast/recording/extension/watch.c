/* The module `_watch`: the objects that stand in for Triton's ways to launch, and for Python what they counted. */
#include "watch.h"

#include <string.h>
#include <structmember.h>

typedef struct module_state {
    PyTypeObject *core_type, *standin_type, *bound_type;
} module_state;
static PyObject *bound_call(PyObject *self, PyObject *arguments, PyObject *keywords) {
    bound_object *bound = (bound_object *)self;
    return launch_run(bound->standin, bound->instance, arguments, keywords);
}

static void bound_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    bound_object *bound = (bound_object *)self;
    standin_object *standin = bound->standin;
    Py_DECREF(bound->instance);
    if (standin->spare)
        PyObject_Free(bound);
    else
        standin->spare = bound;
    Py_DECREF(standin);
    Py_DECREF(type);
}

static PyObject *standin_call(PyObject *self, PyObject *arguments, PyObject *keywords) {
    if (PyTuple_Size(arguments) < 1)
        return PyErr_SetString(PyExc_TypeError, "it is called on an instance"), NULL;
    PyObject *rest = PyTuple_GetSlice(arguments, 1, PyTuple_Size(arguments));
    PyObject *result = rest ? launch_run((standin_object *)self, PyTuple_GetItem(arguments, 0), rest, keywords) : NULL;
    Py_XDECREF(rest);
    return result;
}

static PyObject *standin_bind(PyObject *self, PyObject *instance, PyObject *owner) {
    (void)owner;
    if (!instance || instance == Py_None)
        return Py_INCREF(self), self;
    module_state *state = PyType_GetModuleState(Py_TYPE(self));
    standin_object *standin = (standin_object *)self;
    bound_object *bound = standin->spare;
    standin->spare = NULL;
    bound = bound ? (bound_object *)PyObject_Init((PyObject *)bound, state->bound_type)
                  : PyObject_New(bound_object, state->bound_type);
    if (bound) {
        bound->standin = standin;
        bound->instance = instance;
        Py_INCREF(self);
        Py_INCREF(instance);
    }
    return (PyObject *)bound;
}

/* What is asked of the method that it stands in for: its name, its signature. */
static PyObject *standin_get(PyObject *self, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    PyErr_Clear();
    return PyObject_GetAttr(((standin_object *)self)->below, name);
}

static void standin_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (((standin_object *)self)->spare)
        PyObject_Free(((standin_object *)self)->spare);
    Py_DECREF(((standin_object *)self)->core);
    Py_DECREF(((standin_object *)self)->below);
    PyObject_Free(self);
    Py_DECREF(type);
}

static void core_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    core_object *core = (core_object *)self;
    seen_forget(&core->seen);
    Py_XDECREF(core->watch);
    Py_XDECREF(core->descriptor);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *make_standin(PyObject *self, PyObject *arguments) {
    module_state *state = PyType_GetModuleState(Py_TYPE(self));
    PyObject *below;
    const char *kind;
    if (!PyArg_ParseTuple(arguments, "sO", &kind, &below))
        return NULL;
    descrgetfunc bind = (descrgetfunc)PyType_GetSlot(Py_TYPE(below), Py_tp_descr_get);
    if (!bind)
        return PyErr_SetString(PyExc_TypeError, "what is stood in for must be a method"), NULL;
    standin_object *made = PyObject_New(standin_object, state->standin_type);
    if (made) {
        made->core = (core_object *)self;
        made->below = below;
        made->bind = bind;
        made->spare = NULL;
        made->kind = !strcmp(kind, "function") ? RUN_FUNCTION : !strcmp(kind, "tuner") ? RUN_TUNER : GET;
        Py_INCREF(self);
        Py_INCREF(below);
    }
    return (PyObject *)made;
}

static PyObject *set_active(PyObject *self, PyObject *active) {
    ((core_object *)self)->active = PyObject_IsTrue(active);
    Py_RETURN_NONE;
}

static PyObject *list_counts(PyObject *self, PyObject *none) {
    const seen_table *seen = &((core_object *)self)->seen;
    PyObject *list = PyList_New(0);
    (void)none;
    for (size_t i = 0; list && i < seen->room; i++) {
        const seen_entry *entry = &seen->entries[i];
        if (!entry->key || !entry->count || entry->number < 0 || entry->about)
            continue;
        PyObject *pair = Py_BuildValue("(lK)", entry->number, (unsigned long long)entry->count);
        if (!pair || PyList_Append(list, pair))
            Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}

/* For a forked child: what its parent launched is none of its own. */
static PyObject *forget_counts(PyObject *self, PyObject *none) {
    const seen_table *seen = &((core_object *)self)->seen;
    (void)none;
    for (size_t i = 0; i < seen->room; i++)
        if (seen->entries[i].number >= 0 && !seen->entries[i].about)
            seen->entries[i].count = 0;
    Py_RETURN_NONE;
}

static PyObject *make_core(PyObject *module, PyObject *arguments) {
    module_state *state = PyModule_GetState(module);
    PyObject *watch, *descriptor;
    if (!PyArg_ParseTuple(arguments, "OO", &watch, &descriptor))
        return NULL;
    core_object *core = PyObject_New(core_object, state->core_type);
    if (core) {
        core->watch = watch;
        core->descriptor = descriptor;
        core->seen = (seen_table){NULL, 0, 0};
        core->active = 0;
        Py_INCREF(watch);
        Py_INCREF(descriptor);
    }
    return (PyObject *)core;
}

static PyMethodDef core_methods[] = {
    {"stand_in", make_standin, METH_VARARGS, "what takes the place of a method: of a `function`, a `tuner`, or `get`"},
    {"set_active", set_active, METH_O, NULL},
    {"counts", list_counts, METH_NOARGS, "pairs of a launch's number and how often it was there"},
    {"forget_counts", forget_counts, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef standin_members[] = {
    {"__wrapped__", T_OBJECT_EX, offsetof(standin_object, below), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot core_slots[] = {{Py_tp_dealloc, core_free}, {Py_tp_methods, core_methods}, {0, NULL}};
static PyType_Slot standin_slots[] = {
    {Py_tp_dealloc, standin_free}, {Py_tp_call, standin_call}, {Py_tp_descr_get, standin_bind},
    {Py_tp_getattro, standin_get}, {Py_tp_members, standin_members}, {0, NULL},
};
static PyType_Slot bound_slots[] = {{Py_tp_dealloc, bound_free}, {Py_tp_call, bound_call}, {0, NULL}};
static PyType_Spec core_spec = {"precast.recording._watch.Core", sizeof(core_object), 0, Py_TPFLAGS_DEFAULT, core_slots};
static PyType_Spec standin_spec = {"precast.recording._watch.StandIn", sizeof(standin_object), 0, Py_TPFLAGS_DEFAULT, standin_slots};
static PyType_Spec bound_spec = {"precast.recording._watch.Bound", sizeof(bound_object), 0, Py_TPFLAGS_DEFAULT, bound_slots};

static int start(PyObject *module) {
    module_state *state = PyModule_GetState(module);
    if (launch_start())
        return -1;
    struct { PyTypeObject **type; PyType_Spec *spec; } types[] = {
        {&state->core_type, &core_spec}, {&state->standin_type, &standin_spec}, {&state->bound_type, &bound_spec},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!(*types[i].type = (PyTypeObject *)PyType_FromModuleAndSpec(module, types[i].spec, NULL)))
            return -1;
    return 0;
}

static PyMethodDef functions[] = {
    {"watch", make_core, METH_VARARGS, "what notes with the methods of a `Watch`; the type of descriptors"},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, start}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_watch", .m_size = sizeof(module_state), .m_methods = functions, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__watch(void) { return PyModuleDef_Init(&definition); }
