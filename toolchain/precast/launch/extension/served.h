/* Triton's own calls, served: what stands in for its way to launch, and what is known of its functions. */
#ifndef PRECAST_SERVED_H
#define PRECAST_SERVED_H

#include "extension.h"
#include "index.h"

#ifndef Py_TPFLAGS_METHOD_DESCRIPTOR
#define Py_TPFLAGS_METHOD_DESCRIPTOR (1UL << 17)
#endif

enum { MOST_PARAMETERS = PRECAST_MAXIMUM_SLOTS, MOST_KEYWORDS = 64, RECENT_FUNCTIONS = 256 };

/* One call of a jit function. All borrowed; named values follow the positional ones. */
typedef struct triton_call {
    PyObject *function;
    PyObject *grid; /* of `function[grid]`; NULL: a call of `run`, which names it */
    PyObject *const *values;
    Py_ssize_t count;
    PyObject *names; /* NULL: none */
} triton_call;

/* Stands in for `JITFunction.run`, for one server. */
typedef struct dispatcher_object {
    PyObject_HEAD
    vectorcall call;
    module_state *state;
    int active;
    PyObject *slow;           /* (dispatcher, function, arguments, keywords): runs what is not known here */
    PyObject *settings;       /* Triton's, which have its launch hooks */
    PyObject *constexpr_type; /* Triton's wrapper of a value */
    PyObject *layer;          /* the server, and what stood here before it */
    PyObject *functions;      /* by id */
    struct { PyObject *function; struct served_function *served; } recent[RECENT_FUNCTIONS]; /* borrowed */
} dispatcher_object;

/* Stands in for `JITFunction.__getitem__`. */
typedef struct subscript_object {
    PyObject_HEAD
    vectorcall call;
    dispatcher_object *dispatcher;
    PyObject *layer;
} subscript_object;

/* What `function[grid]` gives. */
typedef struct served_call {
    PyObject_HEAD
    vectorcall call;
    dispatcher_object *dispatcher;
    PyObject *function, *grid;
} served_call;

typedef struct parameter {
    PyObject *name, *standard; /* NULL: must be given */
    int is_constexpr;
} parameter;

/* A name that the function's digest depends on, and what it stood for: in a mapping, or an attribute. */
typedef struct watch {
    PyObject *owner;        /* NULL: the function */
    PyObject *name, *value; /* NULL: there was nothing */
    int is_attribute;
} watch;

/* A kernel of the release for one specialization, with the axes that it is called with. */
typedef struct served_kernel {
    kernel_object *kernel;
    PyObject *result; /* of the call */
    uint32_t axes_given;
    int64_t axes[PRECAST_MAXIMUM_AXES];
} served_kernel;

enum { ANYWHERE, ON_CPU, ON_GPU, WITHOUT_TENSORS };

/* The constexprs and options of a call, and the kernels that have units for them, in the order in which they are tried. */
typedef struct specialization {
    PyObject **constants;             /* of the constexprs in order */
    PyObject **options;               /* each name with its value after it */
    uint32_t constant_count, option_count, kernel_count;
    uint64_t by_name;                 /* of the parameters that are options too: which ones the call names */
    int place;                        /* what the call's tensors are to be on */
    served_kernel *kernels;
} specialization;

/* A jit function whose source the release has. */
typedef struct served_function {
    PyObject_HEAD
    dispatcher_object *dispatcher;
    PyObject *function; /* borrowed: this is let go with it */
    PyObject *title;
    PyObject *hooks; /* Triton's, to run before a launch: with any, calls go the slow way */
    uint32_t parameter_count, constant_count, watch_count, specialization_count;
    uint64_t double_meaning; /* parameters that are options too */
    int has_own_run;         /* `function[grid]` goes there first */
    parameter *parameters;
    watch *watches;
    specialization **specializations; /* the last used first */
    PyObject *names; /* the keywords of the last call, and what they are */
    int16_t places[MOST_KEYWORDS];
} served_function;

/* A call's values by parameter. All borrowed. */
typedef struct bound_call {
    PyObject *grid;
    uint64_t by_name; /* of the parameters that are options too */
    uint32_t option_count;
    PyObject *option_names[MOST_KEYWORDS], *options[MOST_KEYWORDS];
    PyObject *all[MOST_PARAMETERS];
    PyObject *constants[MOST_PARAMETERS]; /* of the constexprs in order */
    PyObject *arguments[MOST_PARAMETERS]; /* of the others */
} bound_call;

/* dispatcher.c */
PyObject *make_dispatcher(PyObject *release, PyObject *positional);
/* What the call returns; NULL without an error where Python has to look at it. */
PyObject *call_known(dispatcher_object *dispatcher, const triton_call *call);
extern PyType_Spec dispatcher_spec;

/* served_call.c */
PyObject *make_subscript(PyObject *dispatcher, PyObject *unused);
PyObject *positional_of(const triton_call *call);
PyObject *keywords_of(const triton_call *call);
/* A fast call, given as a tuple and a dict. */
PyObject *call_flat(PyObject *self, vectorcall call, PyObject *positional, PyObject *keywords);
/* As a method has it: the first argument is the object; without one the thing itself. */
PyObject *bind_to(module_state *state, PyObject *self, PyObject *object);
extern PyType_Spec subscript_spec, served_call_spec;

/* served_function.c */
served_function *make_served_function(dispatcher_object *dispatcher, PyObject *positional);
/* Whether everything that the function's digest depends on is as it was. */
int is_as_digested(const served_function *served);
/* Whether two values are one for a specialization: equal and of one type. */
int is_same_value(PyObject *known, PyObject *value);
extern PyType_Spec served_function_spec;

/* specialization.c */
PyObject *add_specialization(PyObject *self, PyObject *positional);
void free_specialization(specialization *each);
int visit_specialization(const specialization *each, visitproc visit, void *arg);
int is_meant(const dispatcher_object *dispatcher, const specialization *each, const bound_call *bound);

/* served_launch.c */
/* What the call returns; NULL without an error where it is to go the slow way. */
PyObject *call_served(served_function *served, const triton_call *call);

#endif
