/* What is known of a jit function: its parameters, what its digest depends on, its specializations. */
#include <string.h>

#include "served.h"

static int is_same_float(PyObject *known, PyObject *value) {
    double left = PyFloat_AsDouble(known), right = PyFloat_AsDouble(value);
    return !memcmp(&left, &right, sizeof left);
}

static int are_same_items(PyObject *known, PyObject *value) {
    Py_ssize_t count = PyTuple_Size(known);
    if (count != PyTuple_Size(value))
        return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!is_same_value(PyTuple_GetItem(known, i), PyTuple_GetItem(value, i)))
            return 0;
    return 1;
}

int is_same_value(PyObject *known, PyObject *value) {
    PyTypeObject *type = Py_TYPE(known);
    if (known == value || type != Py_TYPE(value))
        return known == value;
    if (type == &PyUnicode_Type)
        return !PyUnicode_Compare(known, value);
    if (type == &PyFloat_Type)
        return is_same_float(known, value);
    if (type == &PyTuple_Type)
        return are_same_items(known, value);
    if (!PyIndex_Check(known))
        return 0;
    int same = PyObject_RichCompareBool(known, value, Py_EQ);
    if (same < 0)
        PyErr_Clear();
    return same > 0;
}

static int is_as_watched(const served_function *served, const watch *each) {
    PyObject *found, *owner = each->owner ? each->owner : served->function;
    if (!each->is_attribute && PyDict_CheckExact(owner)) {
        found = PyDict_GetItemWithError(owner, each->name);
        return found == each->value || (found && each->value && is_same_value(each->value, found));
    }
    found = each->is_attribute ? PyObject_GetAttr(owner, each->name) : PyObject_GetItem(owner, each->name);
    if (!found)
        PyErr_Clear();
    int same = found == each->value || (found && each->value && is_same_value(each->value, found));
    Py_XDECREF(found);
    return same;
}

int is_as_digested(const served_function *served) {
    for (const watch *each = served->watches, *end = each + served->watch_count; each < end; each++)
        if (!is_as_watched(served, each))
            return 0;
    return 1;
}

static PyObject *owned_item(PyObject *tuple, Py_ssize_t place) {
    PyObject *item = PyTuple_GetItem(tuple, place);
    Py_XINCREF(item);
    return item;
}

/* (name, is it a constexpr) or with the default. */
static int read_parameters(served_function *served, PyObject *parameters) {
    Py_ssize_t count = PyTuple_Size(parameters);
    if (count < 0 || count > MOST_PARAMETERS || !(served->parameters = PyMem_Calloc((size_t)count + 1, sizeof(parameter))))
        return PyErr_Occurred() ? -1 : (PyErr_SetString(PyExc_ValueError, "too many parameters"), -1);
    for (; served->parameter_count < count; served->parameter_count++) {
        PyObject *each = PyTuple_GetItem(parameters, served->parameter_count);
        parameter *into = &served->parameters[served->parameter_count];
        if (PyTuple_Size(each) < 2)
            return PyErr_Occurred() ? -1 : (PyErr_SetString(PyExc_ValueError, "a parameter has two or three parts"), -1);
        into->name = owned_item(each, 0);
        into->is_constexpr = PyObject_IsTrue(PyTuple_GetItem(each, 1));
        into->standard = PyTuple_Size(each) > 2 ? owned_item(each, 2) : NULL;
        PyUnicode_InternInPlace(&into->name);
        served->constant_count += (uint32_t)into->is_constexpr;
    }
    return 0;
}

/* (owner or None for the function, name, is it an attribute) or with the value. */
static int read_watches(served_function *served, PyObject *watches) {
    Py_ssize_t count = PyTuple_Size(watches);
    if (count < 0 || !(served->watches = PyMem_Calloc((size_t)count + 1, sizeof(watch))))
        return -1;
    for (; served->watch_count < count; served->watch_count++) {
        PyObject *each = PyTuple_GetItem(watches, served->watch_count);
        watch *into = &served->watches[served->watch_count];
        if (PyTuple_Size(each) < 3)
            return PyErr_Occurred() ? -1 : (PyErr_SetString(PyExc_ValueError, "a watch has three or four parts"), -1);
        into->owner = PyTuple_GetItem(each, 0) == Py_None ? NULL : owned_item(each, 0);
        into->name = owned_item(each, 1);
        into->is_attribute = PyObject_IsTrue(PyTuple_GetItem(each, 2));
        into->value = PyTuple_Size(each) > 3 ? owned_item(each, 3) : NULL;
    }
    return 0;
}

served_function *make_served_function(dispatcher_object *dispatcher, PyObject *positional) {
    PyObject *function, *title, *parameters, *hooks, *watches;
    unsigned long long double_meaning;
    int has_own_run;
    if (!PyArg_ParseTuple(positional, "OUO!O!KpO!:learn", &function, &title, &PyTuple_Type, &parameters, &PyList_Type,
                          &hooks, &double_meaning, &has_own_run, &PyTuple_Type, &watches))
        return NULL;
    served_function *served = PyObject_GC_New(served_function, dispatcher->state->served_function_type);
    if (!served)
        return NULL;
    memset((char *)served + sizeof(PyObject), 0, sizeof *served - sizeof(PyObject));
    Py_INCREF((PyObject *)dispatcher), served->dispatcher = dispatcher;
    served->function = function;
    Py_INCREF(title), served->title = title;
    Py_INCREF(hooks), served->hooks = hooks;
    served->double_meaning = double_meaning;
    served->has_own_run = has_own_run;
    int failed = read_parameters(served, parameters) || read_watches(served, watches);
    PyObject_GC_Track((PyObject *)served);
    if (failed)
        Py_CLEAR(served);
    return served;
}

static int served_traverse(PyObject *self, visitproc visit, void *arg) {
    served_function *served = (served_function *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)served->dispatcher);
    Py_VISIT(served->hooks);
    for (uint32_t i = 0; i < served->parameter_count; i++)
        Py_VISIT(served->parameters[i].standard);
    for (uint32_t i = 0; i < served->watch_count; i++) {
        Py_VISIT(served->watches[i].owner);
        Py_VISIT(served->watches[i].value);
    }
    for (uint32_t i = 0; i < served->specialization_count; i++) {
        int stopped = visit_specialization(served->specializations[i], visit, arg);
        if (stopped)
            return stopped;
    }
    return 0;
}

static int served_clear(PyObject *self) {
    served_function *served = (served_function *)self;
    while (served->watch_count) {
        watch *each = &served->watches[--served->watch_count];
        Py_CLEAR(each->owner);
        Py_CLEAR(each->name);
        Py_CLEAR(each->value);
    }
    while (served->specialization_count)
        free_specialization(served->specializations[--served->specialization_count]);
    return 0;
}

static void served_dealloc(PyObject *self) {
    served_function *served = (served_function *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    served_clear(self);
    for (uint32_t i = 0; i < served->parameter_count; i++) {
        Py_XDECREF(served->parameters[i].name);
        Py_XDECREF(served->parameters[i].standard);
    }
    PyMem_Free(served->parameters);
    PyMem_Free(served->watches);
    PyMem_Free(served->specializations);
    Py_XDECREF(served->names);
    Py_XDECREF(served->hooks);
    Py_XDECREF(served->title);
    Py_XDECREF((PyObject *)served->dispatcher);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *is_current(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(is_as_digested((served_function *)self));
}

static PyMethodDef methods[] = {
    {"is_current", is_current, METH_NOARGS, "Whether everything that is watched is as it was."},
    {"add", add_specialization, METH_VARARGS,
     "(constexprs, options, which are named, place, kernels): another specialization."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, served_dealloc}, {Py_tp_traverse, served_traverse}, {Py_tp_clear, served_clear},
    {Py_tp_methods, methods}, {Py_tp_doc, "What is known of a jit function."}, {0, NULL},
};

PyType_Spec served_function_spec = {"_launch.ServedFunction", sizeof(served_function), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
