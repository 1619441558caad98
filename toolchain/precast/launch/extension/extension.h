/* The Python extension's own types. It opens releases with the runtime that it contains. */
#ifndef PRECAST_EXTENSION_H
#define PRECAST_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>

#include "release.h"

/* DLPack's structures, as far as they are read here. */
typedef struct dl_device { int32_t type, id; } dl_device;
typedef struct dl_type { uint8_t code, bits; uint16_t lanes; } dl_type;

typedef struct dl_tensor {
    void *data;
    dl_device device;
    int32_t rank;
    dl_type type;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_ROCM = 10, DL_ROCM_HOST = 11, DL_CUDA_MANAGED = 13 };

/* DLPack's table of C functions that newer frameworks give with their tensor type. */
typedef struct dl_exchange {
    uint32_t major, minor;
    void *older;
    void *allocate, *export_managed, *import_managed;
    int (*read)(void *object, dl_tensor *tensor);
    int (*current_stream)(int device_type, int32_t device, void **stream);
} dl_exchange;

/* How objects of one Python type are read. */
typedef enum reader_kind {
    READ_UNKNOWN, READ_EXCHANGE, READ_TORCH, READ_ARRAY_INTERFACE, READ_DLPACK, READ_CUDA_INTERFACE, READ_POINTER,
    READ_INDEX
} reader_kind;

typedef struct reader {
    PyObject *type;
    reader_kind kind;
    const dl_exchange *exchange;
    int is_cupy;
    int reads_inner; /* torch's, by what lies in it: torch.c */
    int may_lack_memory; /* torch's, with Python's code in place of what it does */
} reader;

/* Elements and a device by torch's own numbers, and what they are. */
typedef struct torch_kind {
    int32_t elements, device_type, number;
    uint8_t type;
    dl_device device;
} torch_kind;

enum { MOST_TORCH_KINDS = 64 };

/* Torch's C interface, each function with the place of a C++ tensor: 0, or what it failed with. */
typedef struct torch_functions {
    const dl_exchange *exchange; /* NULL: not found */
    int (*address)(void *tensor, void **address);
    int (*elements)(void *tensor, int32_t *elements);
    int (*device_type)(void *tensor, int32_t *type);
    int (*device)(void *tensor, int32_t *number);
    uint32_t kind_count;
    torch_kind kinds[MOST_TORCH_KINDS];
} torch_functions;

/* A part of a tensor without memory has its offset for an address: where memory hardly ever lies, it is made sure of. */
#define UNLIKELY_ADDRESSES (UINT64_C(1) << 32)

enum { MOST_READERS = 32, MOST_DTYPES = 48, NAMES = 24 };

/* Attribute names, made once. */
enum name {
    NAME_DATA_PTR, NAME_DTYPE, NAME_GET_DEVICE, NAME_DLPACK, NAME_DLPACK_DEVICE, NAME_ARRAY_INTERFACE,
    NAME_CUDA_INTERFACE, NAME_EXCHANGE, NAME_SHAPE, NAME_STRIDE, NAME_BASE, NAME_STRIDES, NAME_PADDING, NAME_STREAM,
    NAME_CUDA_STREAM, NAME_PTR, NAME_STREAM_PROTOCOL, NAME_DATA, NAME_TYPESTR, NAME_NAME, NAME_ROUND,
    NAME_INDEX, NAME_SET_ITEM, NAME_STORAGE, NAME_TORCH_DISPATCH, NAME_ENTER_HOOK, NAME_EXIT_HOOK, NAME_CALLS,
    NAME_VALUE, NAME_GRID, NAME_WARMUP, NAME_RUN, NAME_COUNT
};

typedef struct module_state {
    PyTypeObject *release_type, *kernel_type, *bound_type, *dispatcher_type, *subscript_type, *served_call_type,
        *served_function_type;
    PyObject *error;
    PyObject *method_type; /* Python's bound method */
    PyObject *names[NAME_COUNT];
    reader readers[MOST_READERS];
    int reader_count;
    struct { PyObject *dtype; uint8_t type; } dtypes[MOST_DTYPES];
    int dtype_count;
    torch_functions torch;
    int torch_is_hip;         /* -1: not known yet */
    PyObject *torch_stream;   /* torch._C._cuda_getCurrentRawStream, once it was needed */
    precast_release *threads; /* what runs programs of no release, once it was needed */
} module_state;

typedef struct release_object {
    PyObject_HEAD
    precast_release *release;
    module_state *state;
    PyObject *allocate, *blocks; /* the caller's allocator, and what it gave by address */
    PyObject *reader;
    PyObject *attributes; /* a dict: the package's words on it, and `_kernels` by their names there */
} release_object;

/* How the commonest values of an argument of one slot are read at once; anything else goes the general way. */
enum { QUICK_NONE, QUICK_SIGNED, QUICK_UNSIGNED, QUICK_FP32, QUICK_FP64, QUICK_POINTER };

typedef struct quick_argument {
    uint16_t slot;
    uint8_t kind;
    uint8_t unused_bits; /* of an integer in its slot */
} quick_argument;

typedef struct argument_info {
    PyObject *name;
    uint32_t first, slots;
    PyObject *standard; /* what stands for it where a call leaves it out; NULL: nothing */
} argument_info;

typedef struct axis_info {
    PyObject *name;
    uint32_t kind; /* PRECAST_AXIS_INT and the others */
} axis_info;

/* Part of the interpreter's stable interface since 3.12 by name, and in its heap types since 3.9. */
#define HAVE_VECTORCALL (1UL << 11)
typedef PyObject *(*vectorcall)(PyObject *, PyObject *const *, size_t, PyObject *);

/* The top bit of a fast call's count is the caller's own. */
static inline Py_ssize_t count_of(size_t count_and_flag) {
    return (Py_ssize_t)(count_and_flag << 1 >> 1);
}

typedef struct kernel_object {
    PyObject_HEAD
    vectorcall call;
    release_object *owner;
    uint32_t number;
    uint32_t argument_count, slot_count, axis_count, constant_count;
    const quick_argument *quick; /* by argument, as `arguments` */
    argument_info *arguments;
    axis_info *axes; /* and constants, which are like axes of one value */
    int wants_sizes; /* some unit promises range32 */
    PyObject *name;
    PyObject *attributes; /* a dict: the package's words on the kernel */
} kernel_object;

/* A kernel with a grid: what `kernel[grid]` gives. */
typedef struct bound_object {
    PyObject_HEAD
    vectorcall call;
    kernel_object *kernel;
    PyObject *grid;
} bound_object;

/* What is read from one tensor. */
typedef struct tensor_view {
    void *address;
    uint8_t type;   /* 0: unknown */
    int backend;    /* 0: unknown */
    int device;
    int dl_device_type; /* DLPack's number for the device, where it was read that way */
    int read_only;  /* as far as is said */
    uint64_t bytes; /* that it reaches; 0: unknown */
    int rank;       /* -1: unknown */
    int64_t shape[8], strides[8];
    reader from;      /* of kind READ_UNKNOWN: an address, or nothing that can be read */
    reader framework; /* that says the stream: of a tensor under another type it is that tensor's */
} tensor_view;

/* Where the first tensor of a call with a device is, and what it came from. */
typedef struct tensor_origin {
    reader from;
    PyObject *name;   /* the argument's */
    int backend;      /* 0: no tensor yet */
    int device;       /* -1: not said */
    int dl_device_type;
} tensor_origin;

/* readers.c */
/* Of a tensor whose framework is asked for its shape apart; what is of use and not said is left unknown. */
typedef enum shape_use { SHAPE_UNUSED, SHAPE_OF_USE, SHAPE_NEEDED } shape_use;
const reader *known_reader(const module_state *state, PyObject *object);
int backend_of(int dl_device_type); /* -1: none that kernels run on */
int read_tensor(module_state *state, PyObject *object, shape_use use, tensor_view *view);
uint8_t known_dtype(module_state *state, PyObject *dtype);
int comes_from(PyObject *type, const char *package);

/* torch.c */
/* Whether the objects of this one's type can be read by what lies in them. */
int reads_inner(module_state *state, const dl_exchange *exchange, PyObject *object);
/* The address of such an object's memory, and what it is else; NULL where it has to be read another way. */
const torch_kind *read_inner(module_state *state, PyObject *object, void **address);

/* types.c: element types by their names in NumPy, torch, JAX and Triton. 0: none of ours. */
uint8_t type_of_name(const char *name);
uint8_t type_of_typestr(const char *text);
uint8_t type_of_dlpack(dl_type type);
uint8_t type_of_object(PyObject *dtype);

/* streams.c */
int find_stream(module_state *state, PyObject *given, const tensor_origin *origin, precast_stream *stream);

/* call.c */
PyObject *call_kernel(kernel_object *kernel, PyObject *grid, PyObject *const *positional, Py_ssize_t count,
                      PyObject *names, PyObject *const *named, PyObject *keywords);
PyObject *choose_for_call(kernel_object *kernel, PyObject *const *positional, Py_ssize_t count, PyObject *keywords);

/* kernel_object.c */
void start_kernel(kernel_object *kernel);
PyObject *name_in_package(PyObject *self, PyObject *attributes);
PyObject *itself(PyObject *self, PyObject *unused);

#define MOST_TENSORS PRECAST_MAXIMUM_DESCRIPTORS

typedef struct call_values {
    tensor_origin origin;
    uint32_t axes_given; /* bits */
    int tensor_count;
    int64_t axes[PRECAST_MAXIMUM_AXES];
    uint64_t slots[PRECAST_MAXIMUM_SLOTS + 1];
    uint8_t types[PRECAST_MAXIMUM_SLOTS + 1];
    uint64_t sizes[PRECAST_MAXIMUM_SLOTS + 1];
    precast_tensor tensors[MOST_TENSORS];
} call_values;

/* call.c, the steps of a call: -1 with the error set, else 0; of the launch its status. `arguments` has one for each of
 * the kernel's, NULL where it is not given; `stream` is NULL or None for the tensors' own. */
void start_values(const kernel_object *kernel, call_values *values);
int fill_all(kernel_object *kernel, PyObject *const *arguments, call_values *values);
int read_grid(PyObject *given, precast_grid *grid);
int launch_values(kernel_object *kernel, PyObject *stream, const precast_grid *grid, call_values *values);

/* arguments.c */
PyObject *number_of_truth(PyObject *value); /* NULL, without an error: none of NumPy's truth values */
int fill_argument(kernel_object *kernel, uint32_t number, PyObject *value, call_values *values);
int note_device(kernel_object *kernel, const tensor_view *view, PyObject *name, call_values *values);

/* descriptors.c */
int fill_descriptor(kernel_object *kernel, const precast_slot_record *slot, uint32_t place, PyObject *value,
                    PyObject *name, call_values *values);

/* refusals.c: each gives -1 with the error set, in place of one that may be set. */
int wrong_type(const kernel_object *kernel, const precast_slot_record *slot, PyObject *value);
int wrong_elements(const kernel_object *kernel, const precast_slot_record *slot, PyObject *value);
int cannot_be_read(const kernel_object *kernel, const precast_slot_record *slot, PyObject *value);
int does_not_fit(const kernel_object *kernel, const precast_slot_record *slot, PyObject *value);
int wrong_count(const kernel_object *kernel, Py_ssize_t count);
int lacks_arguments(const kernel_object *kernel, PyObject *const *arguments);
int unknown_name(const kernel_object *kernel, PyObject *name);
int wrong_grid(const kernel_object *kernel, PyObject *grid);
int no_such_value(const kernel_object *kernel, const precast_axis_record *axis, PyObject *value);

/* axes.c: numbers beyond the kernel's axes are those of its constants. */
int fill_axis(kernel_object *kernel, uint32_t number, PyObject *value, call_values *values);
/* The value of an axis that the call leaves out, where it is known all the same: new, or NULL without an error. */
PyObject *known_axis(const kernel_object *kernel, uint32_t number, const call_values *values);

/* quick.c */
quick_argument choose_quick(uint32_t slot, unsigned type);
uint32_t fill_quickly(const kernel_object *kernel, uint32_t first, PyObject *const *arguments, call_values *values);

/* callbacks.c */
/* Puts the calling thread's kept error, which is owned or NULL, in place of the one before, and gives that. */
PyObject *exchange_failure(PyObject *failure);
PyObject *set_allocator(PyObject *self, PyObject *callable);
PyObject *set_buffer_reader(PyObject *self, PyObject *callable);

/* programs.c */
PyObject *run_programs(PyObject *module, PyObject *positional);

/* module.c */
PyObject *raise_status(module_state *state, precast_status status);

extern PyType_Spec release_spec, kernel_spec, bound_spec;

#endif
