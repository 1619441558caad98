/* What stands in for Triton's ways to launch: the objects of the module `_watch`, and what runs at a launch. */
#ifndef PRECAST_RECORDING_WATCH_H
#define PRECAST_RECORDING_WATCH_H

#include "seen.h"

enum { RUN_FUNCTION, RUN_TUNER, GET };

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

/* Once, when the module starts: the names that launches ask for. -1 with an exception set. */
int launch_start(void);

/* A call of what `standin` stands in for, on `instance`: done as ever, and counted or noted while recording is on. */
PyObject *launch_run(const standin_object *standin, PyObject *instance, PyObject *arguments, PyObject *keywords);

#endif
