/* What runs at every launch of a recorded program. A launch that is like one before is counted, and runs as ever; any
 * other is handed to Python. So it asks for as little as can be: the numbers among the arguments, and which compiled kernel
 * came out. */
#include "watch.h"

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
static PyObject *word_grid, *word_warmup, *word_shape, *word_sample, *word_note, *word_choice, *word_meet, *word_own;

int launch_start(void) {
    struct { PyObject **word; const char *text; } words[] = {
        {&word_grid, "grid"}, {&word_warmup, "warmup"}, {&word_shape, "shape"}, {&word_sample, "sample"},
        {&word_note, "note"}, {&word_choice, "note_choice"}, {&word_meet, "meet_tuner"}, {&word_own, "watch_own"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!*words[i].word && !(*words[i].word = PyUnicode_InternFromString(words[i].text)))
            return -1;
    return 0;
}

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

PyObject *launch_run(const standin_object *standin, PyObject *instance, PyObject *arguments, PyObject *keywords) {
    if (!standin->core->active)
        return call_below(standin, instance, arguments, keywords);
    return standin->kind == RUN_FUNCTION ? run_function(standin, instance, arguments, keywords)
           : standin->kind == RUN_TUNER  ? run_tuner(standin, instance, arguments, keywords)
                                         : get(standin, instance, arguments, keywords);
}
