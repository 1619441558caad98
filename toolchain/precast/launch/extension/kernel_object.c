/* Kernels and kernels with a grid, as Python objects. */
#include <stdlib.h>

#include "extension.h"
#include <structmember.h>
#include "index.h"

static int kernel_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)((kernel_object *)self)->owner);
    Py_VISIT(((kernel_object *)self)->attributes);
    return 0;
}

static int kernel_clear(PyObject *self) {
    Py_CLEAR(((kernel_object *)self)->attributes);
    return 0;
}

static void kernel_dealloc(PyObject *self) {
    kernel_object *kernel = (kernel_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    for (uint32_t i = 0; kernel->arguments && i < kernel->argument_count; i++) {
        Py_XDECREF(kernel->arguments[i].name);
        Py_XDECREF(kernel->arguments[i].standard);
    }
    for (uint32_t i = 0; kernel->axes && i < kernel->axis_count + kernel->constant_count; i++)
        Py_XDECREF(kernel->axes[i].name);
    PyMem_Free((void *)kernel->quick);
    PyMem_Free(kernel->arguments);
    PyMem_Free(kernel->axes);
    Py_XDECREF(kernel->name);
    Py_XDECREF(kernel->attributes);
    Py_XDECREF((PyObject *)kernel->owner);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static Py_ssize_t read_items(PyObject *positional, PyObject *items[PRECAST_MAXIMUM_SLOTS]) {
    Py_ssize_t count = PyTuple_Size(positional);
    if (count > PRECAST_MAXIMUM_SLOTS)
        count = PRECAST_MAXIMUM_SLOTS;
    for (Py_ssize_t i = 0; i < count; i++)
        items[i] = PyTuple_GetItem(positional, i);
    return count;
}

/* Both kinds of object are called fast; a call with a tuple and a dict comes this way. */
static PyObject *call_slowly(kernel_object *kernel, PyObject *grid, PyObject *positional, PyObject *keywords) {
    PyObject *items[PRECAST_MAXIMUM_SLOTS];
    Py_ssize_t count = read_items(positional, items);
    return call_kernel(kernel, grid, items, count, NULL, NULL, keywords);
}

static PyObject *kernel_call(PyObject *self, PyObject *positional, PyObject *keywords) {
    return call_slowly((kernel_object *)self, NULL, positional, keywords);
}

static PyObject *kernel_vectorcall(PyObject *self, PyObject *const *arguments, size_t count_and_flag, PyObject *names) {
    Py_ssize_t count = count_of(count_and_flag);
    return call_kernel((kernel_object *)self, NULL, arguments, count, names, arguments + count, NULL);
}

void start_kernel(kernel_object *kernel) {
    kernel->call = kernel_vectorcall;
}

static PyObject *bound_call(PyObject *self, PyObject *positional, PyObject *keywords) {
    bound_object *bound = (bound_object *)self;
    return call_slowly(bound->kernel, bound->grid, positional, keywords);
}

static PyObject *bound_vectorcall(PyObject *self, PyObject *const *arguments, size_t count_and_flag, PyObject *names) {
    bound_object *bound = (bound_object *)self;
    Py_ssize_t count = count_of(count_and_flag);
    return call_kernel(bound->kernel, bound->grid, arguments, count, names, arguments + count, NULL);
}

/* `kernel[grid]` */
static PyObject *kernel_subscript(PyObject *self, PyObject *grid) {
    kernel_object *kernel = (kernel_object *)self;
    bound_object *bound = PyObject_New(bound_object, kernel->owner->state->bound_type);
    if (!bound)
        return NULL;
    Py_INCREF(self);
    Py_INCREF(grid);
    bound->call = bound_vectorcall;
    bound->kernel = kernel;
    bound->grid = grid;
    return (PyObject *)bound;
}

static void bound_dealloc(PyObject *self) {
    bound_object *bound = (bound_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF((PyObject *)bound->kernel);
    Py_XDECREF(bound->grid);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *kernel_repr(PyObject *self) {
    return PyUnicode_FromFormat("<kernel %U of %s>", ((kernel_object *)self)->name,
                                precast_folder(((kernel_object *)self)->owner->release));
}

static PyObject *names_of(PyObject *self, void *what) {
    kernel_object *kernel = (kernel_object *)self;
    uint32_t count = what ? kernel->axis_count : kernel->argument_count;
    PyObject *names = PyTuple_New(count);
    for (uint32_t i = 0; names && i < count; i++) {
        PyObject *name = what ? kernel->axes[i].name : kernel->arguments[i].name;
        Py_INCREF(name);
        PyTuple_SetItem(names, i, name);
    }
    return names;
}

/* Of the arguments that conditions of the selection table are computed from, their names. */
static PyObject *compared_names(PyObject *self, void *unused) {
    kernel_object *kernel = (kernel_object *)self;
    const precast_index *index = precast_index_of(kernel->owner->release);
    const precast_kernel_record *record = &index->kernels[kernel->number];
    PyObject *names = PySet_New(NULL);
    (void)unused;
    for (uint32_t i = record->rules.first; names && i < record->rules.first + record->rules.count; i++) {
        precast_span conditions = index->rules[i].conditions;
        for (uint32_t j = conditions.first; names && j < conditions.first + conditions.count; j++) {
            precast_span steps = index->conditions[j].steps;
            for (uint32_t k = steps.first; names && k < steps.first + steps.count; k++) {
                if (index->steps[k].opcode != 1)
                    continue;
                const precast_slot_record *slot = &index->slots[record->slots.first + (uint32_t)index->steps[k].operand];
                if (PySet_Add(names, kernel->arguments[slot->argument].name))
                    Py_CLEAR(names);
            }
        }
    }
    return names;
}

static PyObject *kernel_name(PyObject *self, void *unused) {
    (void)unused;
    PyObject *name = ((kernel_object *)self)->name;
    Py_INCREF(name);
    return name;
}

/* A release and its kernels are found again by the names that they have in their package: what is open is no copy's. */
PyObject *name_in_package(PyObject *self, PyObject *attributes) {
    PyObject *name = attributes ? PyDict_GetItemString(attributes, "__qualname__") : NULL;
    if (!name)
        return PyErr_Format(PyExc_TypeError, "%R is of no package, by which another process could find it", self);
    Py_INCREF(name);
    return name;
}

PyObject *itself(PyObject *self, PyObject *unused) {
    (void)unused;
    Py_INCREF(self);
    return self;
}

static PyObject *kernel_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return name_in_package(self, ((kernel_object *)self)->attributes);
}

/* `kernel[grid]`, made anew. */
static PyObject *bound_reduce(PyObject *self, PyObject *unused) {
    bound_object *bound = (bound_object *)self;
    PyObject *operators = PyImport_ImportModule("operator"), *parts = NULL;
    PyObject *make = operators ? PyObject_GetAttrString(operators, "getitem") : NULL;
    (void)unused;
    if (make)
        parts = Py_BuildValue("(O(OO))", make, (PyObject *)bound->kernel, bound->grid);
    Py_XDECREF(make);
    Py_XDECREF(operators);
    return parts;
}

static PyObject *bound_repr(PyObject *self) {
    bound_object *bound = (bound_object *)self;
    return PyUnicode_FromFormat("<kernel %U[%R]>", bound->kernel->name, bound->grid);
}

enum { BY_PLACE_OR_NAME = 1, BY_NAME = 3 }; /* kinds of inspect.Parameter */

static int add_parameter(PyObject *list, PyObject *inspect, PyObject *name, int kind, PyObject *standard) {
    PyObject *class = PyObject_GetAttrString(inspect, "Parameter"), *parameter = NULL;
    PyObject *positional = Py_BuildValue("(Oi)", name, kind), *named = PyDict_New();
    if (class && positional && named && !(standard && PyDict_SetItemString(named, "default", standard)))
        parameter = PyObject_Call(class, positional, named);
    int failed = !parameter || PyList_Append(list, parameter);
    Py_XDECREF(parameter);
    Py_XDECREF(named);
    Py_XDECREF(positional);
    Py_XDECREF(class);
    return failed;
}

/* The default of an argument where all after it have one too: only so can a signature say it. */
static PyObject *standard_of(const kernel_object *kernel, uint32_t argument) {
    for (uint32_t i = argument; i < kernel->argument_count; i++)
        if (!kernel->arguments[i].standard)
            return NULL;
    return kernel->arguments[argument].standard;
}

static int add_constant(PyObject *list, PyObject *inspect, const kernel_object *kernel, uint32_t number) {
    PyObject *value = known_axis(kernel, number, NULL);
    int failed = !value || add_parameter(list, inspect, kernel->axes[number].name, BY_NAME, value);
    Py_XDECREF(value);
    return failed;
}

/* For inspect.signature() and help(): arguments, then axes, which may have to be given, constants and the stream. */
static PyObject *kernel_signature(PyObject *self, void *unused) {
    kernel_object *kernel = (kernel_object *)self;
    PyObject *inspect = PyImport_ImportModule("inspect"), *list = PyList_New(0), *signature = NULL;
    int failed = !inspect || !list;
    (void)unused;
    for (uint32_t i = 0; !failed && i < kernel->argument_count; i++)
        failed = add_parameter(list, inspect, kernel->arguments[i].name, BY_PLACE_OR_NAME,
                               standard_of(kernel, i));
    for (uint32_t i = 0; !failed && i < kernel->axis_count; i++)
        failed = add_parameter(list, inspect, kernel->axes[i].name, BY_NAME, Py_Ellipsis);
    for (uint32_t i = kernel->axis_count; !failed && i < kernel->axis_count + kernel->constant_count; i++)
        failed = add_constant(list, inspect, kernel, i);
    if (!failed && !add_parameter(list, inspect, kernel->owner->state->names[NAME_STREAM], BY_NAME, Py_None))
        signature = PyObject_CallMethod(inspect, "Signature", "(O)", list);
    Py_XDECREF(list);
    Py_XDECREF(inspect);
    return signature;
}

static PyObject *choose_unit(PyObject *self, PyObject *positional, PyObject *keywords) {
    PyObject *items[PRECAST_MAXIMUM_SLOTS];
    Py_ssize_t count = read_items(positional, items);
    return choose_for_call((kernel_object *)self, items, count, keywords);
}

static PyMethodDef kernel_methods[] = {
    {"choose", (PyCFunction)(void (*)(void))choose_unit, METH_VARARGS | METH_KEYWORDS,
     "What a call with these arguments would launch: the unit's name, its function's address, the stream, and the row of "
     "the selection table that names it, or None."},
    {"__reduce__", kernel_reduce, METH_NOARGS, "Its name in its package."},
    {"__copy__", itself, METH_NOARGS, "Itself."},
    {"__deepcopy__", itself, METH_O, "Itself."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef kernel_fields[] = {
    {"__name__", kernel_name, NULL, "The kernel's name in its spec.", NULL},
    {"arguments", names_of, NULL, "Names of the run-time arguments, in order.", NULL},
    {"axes", names_of, NULL, "Names of the axes.", (void *)1},
    {"compares", compared_names, NULL, "Names of the arguments that its selection table compares.", NULL},
    {"__signature__", kernel_signature, NULL, "What a call takes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef kernel_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(kernel_object, call), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(kernel_object, attributes), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot kernel_slots[] = {
    {Py_tp_dealloc, kernel_dealloc}, {Py_tp_traverse, kernel_traverse}, {Py_tp_clear, kernel_clear},
    {Py_tp_call, kernel_call}, {Py_mp_subscript, kernel_subscript}, {Py_tp_methods, kernel_methods},
    {Py_tp_repr, kernel_repr}, {Py_tp_getset, kernel_fields},
    {Py_tp_members, kernel_members},
    {Py_tp_doc, "A kernel: call it, or call `kernel[grid]`."}, {0, NULL},
};

PyType_Spec kernel_spec = {"_launch.Kernel", sizeof(kernel_object), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | HAVE_VECTORCALL, kernel_slots};

static PyMethodDef bound_methods[] = {
    {"__reduce__", bound_reduce, METH_NOARGS, "Its kernel and its grid."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef bound_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(bound_object, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot bound_slots[] = {
    {Py_tp_dealloc, bound_dealloc}, {Py_tp_call, bound_call}, {Py_tp_members, bound_members},
    {Py_tp_methods, bound_methods}, {Py_tp_repr, bound_repr},
    {Py_tp_doc, "A kernel with a grid: call it."}, {0, NULL},
};

PyType_Spec bound_spec = {"_launch.Bound", sizeof(bound_object), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | HAVE_VECTORCALL, bound_slots};
