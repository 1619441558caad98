/* A grid of a CPU entry that lies in memory already, of no release: on threads as a release has them. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "extension.h"
#include "pool.h"
#include "state.h"

static int read_size(PyObject *number, int32_t *size) {
    long long value = PyLong_AsLongLong(number);
    if (PyErr_Occurred())
        return -1;
    if (value < 0 || value > INT32_MAX)
        return PyErr_Format(PyExc_ValueError, "a grid has 0 to %d programs along each axis, not %lld", INT32_MAX, value), -1;
    *size = (int32_t)value;
    return 0;
}

static int start_threads(module_state *state) {
    if (!state->threads)
        state->threads = precast_open_threads();
    return state->threads ? 0 : (PyErr_NoMemory(), -1);
}

/* None where all went well, else the words of the assertion that did not hold, or None, and the program's number. */
static PyObject *tell(int failed, const precast_complaint *said) {
    if (failed < 0)
        return PyErr_NoMemory();
    if (!failed)
        Py_RETURN_NONE;
    return Py_BuildValue("(z(III))", said->words, said->program[0], said->program[1], said->program[2]);
}

/* What the programs print is written by C, so it is let go at once: Python's own output follows it. */
PyObject *run_programs(PyObject *module, PyObject *positional) {
    module_state *state = PyModule_GetState(module);
    unsigned long long address;
    const char *bytes;
    Py_ssize_t length;
    PyObject *numbers[3];
    int32_t grid[3];
    unsigned long long scratch;
    if (!PyArg_ParseTuple(positional, "Ky#OOOK:run_programs", &address, &bytes, &length, &numbers[0], &numbers[1],
                          &numbers[2], &scratch))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (read_size(numbers[i], &grid[i]))
            return NULL;
    if (!address || length % 8)
        return PyErr_Format(PyExc_ValueError, "an entry has an address, and each of its values 8 bytes"), NULL;
    if (start_threads(state))
        return NULL;
    uint64_t *values = PyMem_Malloc((size_t)length + 8);
    if (!values)
        return PyErr_NoMemory();
    memcpy(values, bytes, (size_t)length);
    void *place = (void *)(uintptr_t)address;
    precast_entry entry;
    memcpy(&entry, &place, sizeof entry);
    precast_complaint said = {0};
    int failed;
    Py_BEGIN_ALLOW_THREADS
    failed = precast_run_programs(state->threads->pool, entry, values, grid, (size_t)scratch, &said);
    fflush(stdout);
    Py_END_ALLOW_THREADS
    PyMem_Free(values);
    return tell(failed, &said);
}
