/* An open release as a Python object. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "served.h"
#include <structmember.h>
#include "state.h"

static int release_traverse(PyObject *self, visitproc visit, void *arg) {
    release_object *owner = (release_object *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(owner->allocate);
    Py_VISIT(owner->blocks);
    Py_VISIT(owner->reader);
    Py_VISIT(owner->attributes);
    return 0;
}

/* A callback may well refer to the release that holds it. */
static int release_clear(PyObject *self) {
    release_object *owner = (release_object *)self;
    if (owner->release) {
        precast_set_allocator(owner->release, NULL);
        precast_set_buffer_reader(owner->release, NULL, NULL);
    }
    Py_CLEAR(owner->allocate);
    Py_CLEAR(owner->blocks);
    Py_CLEAR(owner->reader);
    Py_CLEAR(owner->attributes);
    return 0;
}

static void release_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    release_clear(self);
    precast_close(((release_object *)self)->release);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *finish(PyObject *self, precast_status status) {
    release_object *owner = (release_object *)self;
    if (status != PRECAST_OK)
        return raise_status(owner->state, status);
    Py_RETURN_NONE;
}

static PyObject *interned(const precast_index *index, uint32_t place) {
    return PyUnicode_InternFromString(precast_text(index, place));
}

static int promises_range32(const precast_index *index, uint32_t kernel) {
    precast_span units = index->kernels[kernel].units;
    for (uint32_t i = units.first; i < units.first + units.count; i++)
        for (uint32_t j = 0; j < index->units[i].promises.count; j++)
            if (index->hints[index->units[i].promises.first + j].kind == PRECAST_RANGE32)
                return 1;
    return 0;
}

static PyObject *default_of(const precast_argument_record *argument) {
    double real;
    memcpy(&real, &argument->default_bits, sizeof real);
    switch (argument->default_kind) {
    case PRECAST_DEFAULT_INT:
        return PyLong_FromLongLong(argument->default_bits);
    case PRECAST_DEFAULT_BOOL:
        return PyBool_FromLong(argument->default_bits != 0);
    case PRECAST_DEFAULT_FLOAT:
        return PyFloat_FromDouble(real);
    case PRECAST_DEFAULT_NONE:
        Py_INCREF(Py_None);
        return Py_None;
    default:
        return NULL;
    }
}

static int fill_kernel(kernel_object *kernel, const precast_index *index) {
    const precast_kernel_record *record = &index->kernels[kernel->number];
    kernel->arguments = PyMem_Calloc(record->arguments.count + 1, sizeof *kernel->arguments);
    kernel->axes = PyMem_Calloc(record->axes.count + record->constants.count + 1, sizeof *kernel->axes);
    quick_argument *quick = PyMem_Calloc(record->arguments.count + 1, sizeof *quick);
    kernel->quick = quick;
    if (!kernel->arguments || !kernel->axes || !quick)
        return PyErr_NoMemory(), -1;
    kernel->argument_count = record->arguments.count;
    kernel->axis_count = record->axes.count;
    kernel->constant_count = record->constants.count;
    kernel->slot_count = record->slots.count;
    kernel->wants_sizes = promises_range32(index, kernel->number);
    kernel->name = interned(index, record->name);
    for (uint32_t i = 0; i < record->arguments.count; i++) {
        const precast_argument_record *argument = &index->arguments[record->arguments.first + i];
        argument_info *info = &kernel->arguments[i];
        info->name = interned(index, argument->name);
        info->first = argument->first_slot - record->slots.first;
        info->slots = argument->slots;
        info->standard = default_of(argument);
        if (info->slots == 1)
            quick[i] = choose_quick(info->first, index->slots[argument->first_slot].type);
    }
    for (uint32_t i = 0; i < record->axes.count + record->constants.count; i++) {
        const precast_axis_record *axis = &index->axes[record->axes.first + i];
        kernel->axes[i] = (axis_info){interned(index, axis->name), axis->kind};
    }
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *make_kernel(release_object *owner, uint32_t number) {
    kernel_object *kernel = PyObject_GC_New(kernel_object, owner->state->kernel_type);
    if (!kernel)
        return NULL;
    memset((char *)kernel + sizeof(PyObject), 0, sizeof *kernel - sizeof(PyObject));
    Py_INCREF((PyObject *)owner);
    kernel->owner = owner;
    kernel->number = number;
    start_kernel(kernel);
    if (fill_kernel(kernel, precast_index_of(owner->release))) {
        Py_DECREF((PyObject *)kernel);
        return NULL;
    }
    PyObject_GC_Track((PyObject *)kernel);
    return (PyObject *)kernel;
}

static PyObject *find_kernel(PyObject *self, PyObject *name) {
    release_object *owner = (release_object *)self;
    const precast_index *index = precast_index_of(owner->release);
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    for (uint32_t i = 0; text && i < index->kernel_count; i++)
        if (!strcmp(text, precast_text(index, index->kernels[i].name)))
            return make_kernel(owner, i);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_KeyError, "the release has no kernel %R", name);
    return NULL;
}

static PyObject *preload(PyObject *self, PyObject *positional, PyObject *keywords) {
    static char *names[] = {"kernel", "device", NULL};
    const char *kernel = NULL, *device = NULL;
    precast_status status;
    if (!PyArg_ParseTupleAndKeywords(positional, keywords, "|z$z:preload", names, &kernel, &device))
        return NULL;
    if (device && strcmp(device, "cpu"))
        return PyErr_Format(PyExc_ValueError, "device is \"cpu\" or None, the current device; not \"%s\"", device);
    Py_BEGIN_ALLOW_THREADS
    status = precast_preload(((release_object *)self)->release, device ? PRECAST_CPU : NULL, kernel);
    Py_END_ALLOW_THREADS
    return finish(self, status);
}

static PyObject *unload(PyObject *self, PyObject *unused) {
    precast_status status;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    status = precast_unload(((release_object *)self)->release);
    Py_END_ALLOW_THREADS
    return finish(self, status);
}

static PyObject *selfcheck(PyObject *self, PyObject *unused) {
    precast_status status;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    status = precast_selfcheck(((release_object *)self)->release);
    Py_END_ALLOW_THREADS
    return finish(self, status);
}

static PyObject *set_threads(PyObject *self, PyObject *count) {
    int overflow = 0;
    long wanted = PyLong_AsLongAndOverflow(count, &overflow);
    if (PyErr_Occurred())
        return NULL;
    if (overflow || wanted < INT_MIN || wanted > INT_MAX) /* refused all the same */
        wanted = overflow < 0 || wanted < 0 ? INT_MIN : INT_MAX;
    return finish(self, precast_set_threads(((release_object *)self)->release, (int)wanted));
}

static PyObject *check_signature(PyObject *self, PyObject *key) {
    release_object *owner = (release_object *)self;
    char *bytes = NULL;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(key, &bytes, &size))
        return NULL;
    if (size != 32)
        return PyErr_Format(PyExc_ValueError, "an ed25519 public key has 32 bytes, not %zd", size);
    const precast_policy policy = {.keys = (const unsigned char *)bytes, .key_count = 1};
    return finish(self, precast_demand(owner->release, &policy));
}

static PyObject *describe(const precast_unit *unit, const char *description) {
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:O,s:O,s:i,s:i,s:L,s:L,s:i,s:i,s:z}", "description", description, "unit", unit->unit, "kernel", unit->kernel,
                         "target", unit->target, "fits", unit->fits ? Py_True : Py_False, "loaded",
                         unit->loaded ? Py_True : Py_False, "warps", unit->warps, "ctas", unit->ctas, "image_bytes",
                         (long long)unit->image_bytes, "shared_bytes", (long long)unit->shared_bytes, "registers",
                         unit->registers, "spill_bytes", unit->spill_bytes, "row", unit->row);
}

static PyObject *query(PyObject *self, PyObject *unused) {
    precast_release *release = ((release_object *)self)->release;
    (void)unused;
    const precast_index *index = precast_index_of(release);
    size_t count = index->unit_count;
    precast_unit *units = PyMem_Calloc(count + 1, sizeof *units);
    PyObject *list = units ? PyList_New(0) : PyErr_NoMemory();
    if (units)
        precast_query(release, units, count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *entry = describe(&units[i], precast_text(index, index->units[i].description));
        if (!entry || PyList_Append(list, entry))
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    PyMem_Free(units);
    return list;
}

static PyObject *get_folder(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_DecodeFSDefault(precast_folder(((release_object *)self)->release));
}

static PyObject *get_kernels(PyObject *self, void *unused) {
    const precast_index *index = precast_index_of(((release_object *)self)->release);
    PyObject *names = PyTuple_New(index->kernel_count);
    (void)unused;
    for (uint32_t i = 0; names && i < index->kernel_count; i++)
        PyTuple_SetItem(names, i, interned(index, index->kernels[i].name));
    return names;
}

static PyObject *get_name(PyObject *self, void *unused) {
    const precast_index *index = precast_index_of(((release_object *)self)->release);
    (void)unused;
    return interned(index, index->header->name);
}

/* Of each target that units were built for, its name, once. */
static PyObject *get_targets(PyObject *self, void *unused) {
    const precast_index *index = precast_index_of(((release_object *)self)->release);
    PyObject *found = PyList_New(0), *targets = NULL;
    int failed = !found;
    (void)unused;
    for (uint32_t i = 0; !failed && i < index->unit_count; i++) {
        const char *at = strrchr(precast_text(index, index->units[i].text), '@');
        PyObject *target = PyUnicode_FromString(at ? at + 1 : "");
        int known = target ? PySequence_Contains(found, target) : -1;
        failed = known < 0 || (!known && PyList_Append(found, target));
        Py_XDECREF(target);
    }
    if (!failed)
        targets = PyList_AsTuple(found);
    Py_XDECREF(found);
    return targets;
}

static PyObject *release_repr(PyObject *self) {
    PyObject *attributes = ((release_object *)self)->attributes;
    PyObject *version = attributes ? PyDict_GetItemString(attributes, "version") : NULL;
    PyObject *name = get_name(self, NULL), *targets = get_targets(self, NULL), *comma = PyUnicode_FromString(", ");
    PyObject *listed = targets && comma ? PyUnicode_Join(comma, targets) : NULL, *text = NULL;
    const char *folder = precast_folder(((release_object *)self)->release);
    if (name && listed)
        text = version ? PyUnicode_FromFormat("<release %U %S for %U in %s>", name, version, listed, folder)
                       : PyUnicode_FromFormat("<release %U for %U in %s>", name, listed, folder);
    Py_XDECREF(listed);
    Py_XDECREF(comma);
    Py_XDECREF(targets);
    Py_XDECREF(name);
    return text;
}

/* Kernels are attributes too, unless something else has their name. */
static PyObject *release_getattr(PyObject *self, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr(self, name), *attributes = ((release_object *)self)->attributes;
    if (found || !attributes || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    PyObject *kernels = PyDict_GetItemString(attributes, "_kernels");
    PyObject *kernel = kernels && PyDict_Check(kernels) ? PyDict_GetItem(kernels, name) : NULL;
    if (kernel) {
        PyErr_Clear();
        Py_INCREF(kernel);
    }
    return kernel;
}

static PyObject *release_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return name_in_package(self, ((release_object *)self)->attributes);
}

static PyMethodDef methods[] = {
    {"kernel", find_kernel, METH_O, "The kernel of this name."},
    {"preload", (PyCFunction)(void (*)(void))preload, METH_VARARGS | METH_KEYWORDS,
     "Loads the images of a kernel, or of all, for the current device or the CPU."},
    {"unload", unload, METH_NOARGS, "Unloads every image; no launch may be running."},
    {"query", query, METH_NOARGS, "All units as dicts."},
    {"selfcheck", selfcheck, METH_NOARGS, "Compares index, packs and images with the digests that manifest and index give."},
    {"set_threads", set_threads, METH_O, "Threads that CPU launches use, 1 to 1024; 0: as many as the process may run on now."},
    {"set_allocator", set_allocator, METH_O, "A function (bytes, alignment, stream, device) for scratch, or None."},
    {"set_buffer_reader", set_buffer_reader, METH_O, "Who gets the device buffers of passes after a launch, or None."},
    {"dispatcher", make_dispatcher, METH_VARARGS,
     "(slow, settings, constexpr): what serves Triton's calls; `slow` is asked for those that are not known."},
    {"check_signature", check_signature, METH_O, "Raises unless the manifest is signed by this ed25519 public key."},
    {"__reduce__", release_reduce, METH_NOARGS, "Its name in its package."},
    {"__copy__", itself, METH_NOARGS, "Itself."},
    {"__deepcopy__", itself, METH_O, "Itself."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef fields[] = {
    {"name", get_name, NULL, "The project's name.", NULL},
    {"targets", get_targets, NULL, "The targets that units were built for.", NULL},
    {"folder", get_folder, NULL, "Where the release lies.", NULL},
    {"kernels", get_kernels, NULL, "Names of the kernels.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(release_object, attributes), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, release_dealloc}, {Py_tp_traverse, release_traverse}, {Py_tp_clear, release_clear},
    {Py_tp_methods, methods}, {Py_tp_getset, fields}, {Py_tp_members, members},
    {Py_tp_repr, release_repr}, {Py_tp_getattro, release_getattr},
    {Py_tp_doc, "An open release."}, {0, NULL},
};

PyType_Spec release_spec = {"_launch.Release", sizeof(release_object), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
