/* The module `_watch`: stands in for Triton's ways to launch. A launch that is like one before is counted, and runs as
 * ever; any other is handed to Python. It runs at every launch of a recorded program, so it asks for as little as can be:
 * the numbers among the arguments, and which compiled kernel came out. */
#include "seen.h"

#include <string.h>
#include <structmember.h>

enum { RUN_FUNCTION, RUN_TUNER, GET };
enum { OF_FUNCTION = 1, OF_TUNER, OF_PLAIN, OF_KERNEL };
enum { FIRST_SAMPLES = 64, MOST_TOLD_APART = 256 };

/* A tuner's call that runs in this thread. All that it launches is kept until it ends: the last is what it chose. */
typedef struct running {
    struct running *outer;
    PyObject *core, *function; /* borrowed */
    PyObject *kernel, *grid, *arguments, *keywords; /* of the first launch */
    PyObject *more; /* a list of the others, as tuples of these four; NULL while there is none */
    int launches, sampled;
} running;

static _Thread_local running *innermost;

typedef struct core_object {
    PyObject_HEAD
    PyObject *watch; /* what notes */
    PyObject *descriptor; /* the type of tensor descriptors, whose shapes tell launches apart; or NULL */
    seen_table seen;
    int active;
} core_object;

typedef struct standin_object {
    PyObject_HEAD
    core_object *core;
    PyObject *below;
    descrgetfunc bind;
    struct bound_object *spare; /* what the last one that was bound left, for the next */
    int kind;
} standin_object;

typedef struct bound_object {
    PyObject_HEAD
    standin_object *standin;
    PyObject *instance;
} bound_object;

typedef struct module_state {
    PyTypeObject *core_type, *standin_type, *bound_type;
} module_state;

static PyObject *word_grid, *word_warmup, *word_shape, *word_sample, *word_note, *word_choice, *word_meet, *word_own, *word_tell;

static PyObject *call_below(const standin_object *standin, PyObject *instance, PyObject *arguments, PyObject *keywords) {
    PyObject *bound = standin->bind(standin->below, instance, (PyObject *)Py_TYPE(instance));
    PyObject *result = bound ? PyObject_Call(bound, arguments, keywords) : NULL;
    Py_XDECREF(bound);
    return result;
}

static int is_true(PyObject *value) { return value && value != Py_False && value != Py_None; }

/* What of a value tells launches apart: a number, or what kind of thing it is. */
static uint64_t word_of(const core_object *core, PyObject *value, int depth) {
    PyTypeObject *type = Py_TYPE(value);
    uint64_t hash = (uint64_t)(uintptr_t)type;
    if (type == &PyLong_Type) {
        int overflow;
        return (uint64_t)PyLong_AsLongLongAndOverflow(value, &overflow) + (uint64_t)overflow;
    }
    if (type == &PyBool_Type)
        return (uint64_t)(uintptr_t)value;
    if (type == &PyUnicode_Type)
        return (uint64_t)PyObject_Hash(value);
    if (type == &PyTuple_Type && depth < 3) {
        Py_ssize_t size = PyTuple_Size(value);
        for (Py_ssize_t i = 0; i < size; i++)
            hash = seen_mix(hash, word_of(core, PyTuple_GetItem(value, i), depth + 1));
    } else if (type == &PyList_Type && depth < 3) {
        Py_ssize_t size = PyList_Size(value);
        for (Py_ssize_t i = 0; i < size; i++)
            hash = seen_mix(hash, word_of(core, PyList_GetItem(value, i), depth + 1));
    } else if ((PyObject *)type == core->descriptor) {
        PyObject *shape = PyObject_GetAttr(value, word_shape);
        hash = shape ? word_of(core, shape, depth + 1) : (PyErr_Clear(), hash);
        Py_XDECREF(shape);
    }
    return hash;
}

/* A launch as a number, and what of its keywords is Triton's own. */
typedef struct launch {
    uint64_t key;
    PyObject *grid, *warmup; /* borrowed */
} launch;

static launch read_launch(const core_object *core, PyObject *instance, PyObject *arguments, PyObject *keywords) {
    launch read = {seen_mix(0, (uint64_t)(uintptr_t)instance), NULL, NULL};
    Py_ssize_t size = PyTuple_Size(arguments), place = 0;
    PyObject *name, *value;
    for (Py_ssize_t i = 0; i < size; i++)
        read.key = seen_mix(read.key, word_of(core, PyTuple_GetItem(arguments, i), 0));
    while (keywords && PyDict_Next(keywords, &place, &name, &value)) {
        if (name == word_warmup) {
            read.warmup = value;
            continue;
        }
        if (name == word_grid)
            read.grid = value;
        read.key = seen_mix(seen_mix(read.key, (uint64_t)(uintptr_t)name), word_of(core, value, 0));
    }
    read.key |= 1;
    return read;
}

/* Counts a launch; notes how often it was there at 1, 2, 4, …, so that a process that is killed has said that much. */
static int count_launch(core_object *core, seen_entry *entry) {
    if (entry->number < 0)
        return 0;
    uint64_t count = ++entry->count;
    if (count & (count - 1))
        return 0;
    PyObject *told = PyObject_CallMethod(core->watch, "tell", "lK", entry->number, (unsigned long long)count);
    Py_XDECREF(told);
    return told ? 0 : -1;
}

/* A launch of `owner`, a function or its tuner, that gave `kernel`: counted where it is like one before, else noted by
 * `name` with what `noted` holds, an argument of its own of each method's. */
static int count_or_note(core_object *core, seen_entry *owner, uint64_t key, PyObject *kernel, int sampled, PyObject *name,
                         PyObject *noted) {
    uint64_t whole = seen_mix(key, (uint64_t)(uintptr_t)kernel) | 1, number = owner->key;
    seen_entry *entry = seen_find(&core->seen, whole);
    if (entry && !sampled)
        return count_launch(core, entry);
    int is_new = !entry && owner->known < MOST_TOLD_APART;
    if (!is_new && !sampled && seen_find(&core->seen, seen_key(kernel, OF_KERNEL)))
        return 0;
    PyObject *given = noted ? PyObject_CallMethodObjArgs(core->watch, name, noted, is_new ? Py_True : Py_False, NULL) : NULL;
    long found = given ? PyLong_AsLong(given) : -1;
    Py_XDECREF(given);
    if (PyErr_Occurred() || !seen_add(&core->seen, seen_key(kernel, OF_KERNEL), kernel))
        return -1;
    if (is_new && (entry = seen_add(&core->seen, whole, kernel))) {
        entry->number = found;
        seen_entry *again = seen_find(&core->seen, number);
        again->known++;
    }
    entry = seen_find(&core->seen, whole);
    return PyErr_Occurred() ? -1 : entry ? count_launch(core, entry) : 0;
}

static running *find_running(const core_object *core, PyObject *function) {
    running *each = innermost;
    while (each && (each->function != function || each->core != (PyObject *)core))
        each = each->outer;
    return each;
}

/* Launches with a grid that is looked at: `(kernel, grid)`. */
static PyObject *sample(const standin_object *standin, PyObject *instance, PyObject *arguments, PyObject *keywords,
                        PyObject **grid) {
    PyObject *pair = PyObject_CallMethodObjArgs(standin->core->watch, word_sample, standin->below, instance, arguments,
                                                keywords ? keywords : Py_None, NULL);
    PyObject *kernel = pair ? PyTuple_GetItem(pair, 0) : NULL;
    if (kernel) {
        *grid = PyTuple_GetItem(pair, 1);
        Py_INCREF(kernel);
        Py_INCREF(*grid);
    }
    Py_XDECREF(pair);
    return kernel;
}

/* Whether a launch's grid is to be looked at. One that is no function tells launches apart already. */
static int is_due(seen_entry *entry, PyObject *grid) {
    uint64_t count = ++entry->count;
    if (!grid || PyTuple_CheckExact(grid) || PyList_CheckExact(grid))
        return 0;
    return count <= FIRST_SAMPLES || !(count & (count - 1));
}

static int keep(running *tuner, PyObject *kernel, PyObject *grid, PyObject *arguments, PyObject *keywords) {
    if (!tuner->launches++) {
        tuner->kernel = kernel, tuner->grid = grid, tuner->arguments = arguments, tuner->keywords = keywords;
        Py_INCREF(kernel);
        Py_INCREF(grid);
        Py_INCREF(arguments);
        Py_XINCREF(keywords);
        return 0;
    }
    PyObject *one = PyTuple_Pack(4, kernel, grid, arguments, keywords ? keywords : Py_None);
    if (!tuner->more)
        tuner->more = PyList_New(0);
    int failed = !one || !tuner->more || PyList_Append(tuner->more, one);
    Py_XDECREF(one);
    return failed ? -1 : 0;
}

/* A launch within a call of the function's tuner, which decides at its end what is to be noted. */
static PyObject *run_in_tuner(const standin_object *standin, running *tuner, PyObject *function, PyObject *arguments,
                              PyObject *keywords) {
    PyObject *grid = NULL;
    PyObject *kernel = tuner->sampled ? sample(standin, function, arguments, keywords, &grid)
                                      : call_below(standin, function, arguments, keywords);
    if (kernel && keep(tuner, kernel, grid ? grid : Py_None, arguments, keywords))
        Py_CLEAR(kernel);
    Py_XDECREF(grid);
    return kernel;
}

static PyObject *run_warm_up(const standin_object *standin, PyObject *function, PyObject *arguments, PyObject *keywords) {
    PyObject *kernel = call_below(standin, function, arguments, keywords);
    PyObject *noted = kernel ? PyObject_CallMethod(standin->core->watch, "warm_up", "OOO", kernel, function, keywords) : NULL;
    if (!noted)
        Py_CLEAR(kernel);
    Py_XDECREF(noted);
    return kernel;
}

/* What is noted of a launch that is like none before, or whose grid was looked at. */
static int note_launch(core_object *core, PyObject *function, uint64_t key, PyObject *kernel, PyObject *grid,
                       PyObject *arguments, PyObject *keywords) {
    seen_entry *owner = seen_find(&core->seen, seen_key(function, OF_FUNCTION));
    if (!grid && owner->known >= MOST_TOLD_APART && seen_find(&core->seen, seen_key(kernel, OF_KERNEL)))
        return 0;
    PyObject *noted = PyTuple_Pack(5, function, kernel, grid ? grid : Py_None, arguments, keywords ? keywords : Py_None);
    int failed = !noted || (owner->known < MOST_TOLD_APART && !seen_add(&core->seen, key, NULL));
    owner = seen_find(&core->seen, seen_key(function, OF_FUNCTION)); /* the table may have moved */
    failed = failed || count_or_note(core, owner, key, kernel, grid != NULL, word_note, noted);
    Py_XDECREF(noted);
    return failed ? -1 : 0;
}

static PyObject *run_function(const standin_object *standin, PyObject *function, PyObject *arguments, PyObject *keywords) {
    core_object *core = standin->core;
    running *tuner = find_running(core, function);
    if (tuner && !tuner->sampled)
        return run_in_tuner(standin, tuner, function, arguments, keywords);
    launch read = read_launch(core, function, arguments, keywords);
    if (is_true(read.warmup))
        return run_warm_up(standin, function, arguments, keywords);
    if (tuner)
        return run_in_tuner(standin, tuner, function, arguments, keywords);
    uint64_t key = read.key;
    seen_entry *owner = seen_add(&core->seen, seen_key(function, OF_FUNCTION), function);
    if (!owner)
        return NULL;
    int is_new = owner->known < MOST_TOLD_APART && !seen_find(&core->seen, key);
    PyObject *grid = NULL;
    PyObject *kernel = is_due(owner, read.grid) || is_new ? sample(standin, function, arguments, keywords, &grid)
                                                         : call_below(standin, function, arguments, keywords);
    if (!kernel || kernel == Py_None)
        return Py_XDECREF(grid), kernel;
    seen_entry *entry = grid ? NULL : seen_find(&core->seen, seen_mix(key, (uint64_t)(uintptr_t)kernel) | 1);
    if (entry ? count_launch(core, entry) : note_launch(core, function, key, kernel, grid, arguments, keywords))
        Py_CLEAR(kernel);
    Py_XDECREF(grid);
    return kernel;
}

static PyObject *list_launches(const running *tuner) {
    PyObject *list = PyList_New(0), *first = NULL;
    if (list && tuner->launches)
        first = PyTuple_Pack(4, tuner->kernel, tuner->grid, tuner->arguments, tuner->keywords ? tuner->keywords : Py_None);
    if (!list || (tuner->launches && (!first || PyList_Append(list, first))))
        Py_CLEAR(list);
    Py_XDECREF(first);
    if (list && tuner->more && PyList_SetSlice(list, 1, 1, tuner->more))
        Py_CLEAR(list);
    return list;
}

/* Notes what a tuner's call that has ended chose, unless it was the same before. */
static int end_tuner(core_object *core, PyObject *tuner, const running *ran, uint64_t key, PyObject *arguments,
                     PyObject *keywords) {
    seen_entry *owner = seen_find(&core->seen, seen_key(tuner, OF_TUNER));
    PyObject *choices = PyTuple_GetItem(owner->about, 1);
    Py_ssize_t known = PyObject_Size(choices);
    PyErr_Clear();
    PyObject *last = ran->more ? PyTuple_GetItem(PyList_GetItem(ran->more, PyList_Size(ran->more) - 1), 0) : ran->kernel;
    if (!ran->launches || last == Py_None)
        return 0;
    int moved = ran->launches != 1 || ran->sampled || known != (Py_ssize_t)owner->number;
    if (!moved) {
        seen_entry *entry = seen_find(&core->seen, seen_mix(key, (uint64_t)(uintptr_t)last) | 1);
        if (entry)
            return count_launch(core, entry);
    }
    owner->number = (long)known;
    PyObject *launches = list_launches(ran);
    PyObject *noted = launches ? PyTuple_Pack(5, tuner, ran->function, launches, arguments, keywords ? keywords : Py_None) : NULL;
    int failed = !noted || count_or_note(core, owner, key, last, moved, word_choice, noted);
    Py_XDECREF(noted);
    Py_XDECREF(launches);
    return failed ? -1 : 0;
}

static PyObject *run_tuner(const standin_object *standin, PyObject *tuner, PyObject *arguments, PyObject *keywords) {
    core_object *core = standin->core;
    seen_entry *owner = seen_add(&core->seen, seen_key(tuner, OF_TUNER), tuner);
    if (owner && !owner->about) {
        PyObject *about = PyObject_CallMethodObjArgs(core->watch, word_meet, tuner, NULL);
        owner = about ? seen_find(&core->seen, seen_key(tuner, OF_TUNER)) : NULL;
        if (owner)
            owner->about = about;
    }
    if (!owner)
        return NULL;
    PyObject *function = PyTuple_GetItem(owner->about, 0);
    launch read = read_launch(core, tuner, arguments, keywords);
    if (is_true(read.warmup) || find_running(core, function))
        return call_below(standin, tuner, arguments, keywords);
    running ran = {.outer = innermost, .core = (PyObject *)core, .function = function, .sampled = is_due(owner, read.grid)};
    uint64_t key = read.key;
    if (!seen_find(&core->seen, key) && owner->known < MOST_TOLD_APART) {
        ran.sampled = 1;
        if (!seen_add(&core->seen, key, NULL))
            return NULL;
    }
    innermost = &ran;
    PyObject *result = call_below(standin, tuner, arguments, keywords);
    innermost = ran.outer;
    if (result && end_tuner(core, tuner, &ran, key, arguments, keywords))
        Py_CLEAR(result);
    Py_XDECREF(ran.kernel);
    Py_XDECREF(ran.launches ? ran.grid : NULL);
    Py_XDECREF(ran.arguments);
    Py_XDECREF(ran.keywords);
    Py_XDECREF(ran.more);
    return result;
}

/* `interface[grid]`: of one that has a tuner of a library's own, the call is a tuner's. */
static PyObject *get(const standin_object *standin, PyObject *interface, PyObject *arguments, PyObject *keywords) {
    core_object *core = standin->core;
    PyObject *launch = call_below(standin, interface, arguments, keywords);
    if (!launch || seen_find(&core->seen, seen_key(interface, OF_PLAIN)))
        return launch;
    PyObject *watched = PyObject_CallMethodObjArgs(core->watch, word_own, interface, launch, NULL);
    if (watched == launch && !seen_add(&core->seen, seen_key(interface, OF_PLAIN), interface))
        Py_CLEAR(watched);
    Py_DECREF(launch);
    return watched;
}

static PyObject *run(const standin_object *standin, PyObject *instance, PyObject *arguments, PyObject *keywords) {
    if (!standin->core->active)
        return call_below(standin, instance, arguments, keywords);
    return standin->kind == RUN_FUNCTION ? run_function(standin, instance, arguments, keywords)
           : standin->kind == RUN_TUNER  ? run_tuner(standin, instance, arguments, keywords)
                                         : get(standin, instance, arguments, keywords);
}

static PyObject *bound_call(PyObject *self, PyObject *arguments, PyObject *keywords) {
    bound_object *bound = (bound_object *)self;
    return run(bound->standin, bound->instance, arguments, keywords);
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
    PyObject *result = rest ? run((standin_object *)self, PyTuple_GetItem(arguments, 0), rest, keywords) : NULL;
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
    struct { PyObject **word; const char *text; } words[] = {
        {&word_grid, "grid"}, {&word_warmup, "warmup"}, {&word_shape, "shape"}, {&word_sample, "sample"},
        {&word_note, "note"}, {&word_choice, "note_choice"}, {&word_meet, "meet_tuner"}, {&word_own, "watch_own"},
        {&word_tell, "tell"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!*words[i].word && !(*words[i].word = PyUnicode_InternFromString(words[i].text)))
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
