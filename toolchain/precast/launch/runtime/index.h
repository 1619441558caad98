/* index.bin as it lies in memory: `formats/records.py` writes it. Little-endian; read in place. */
#ifndef PRECAST_INDEX_H
#define PRECAST_INDEX_H

#include "file.h"
#include "precast.h"

#define PRECAST_MAGIC "PRECINDX"
#define PRECAST_MAXIMUM_AXES 16
#define PRECAST_MAXIMUM_SLOTS 512
#define PRECAST_MAXIMUM_DESCRIPTORS 16
#define PRECAST_POINTER 0x80    /* in a type: a pointer to the type in the low bits, 0 for any */
#define PRECAST_DESCRIPTOR 0x40 /* in a type: a tensor descriptor of the type in the low bits */
#define PRECAST_ELEMENT 0x3f    /* the low bits */
#define PRECAST_READ_ONLY 0x80  /* in a type that a call gives: the tensor must not be written to */
#define PRECAST_NOTHING 0x3f    /* in a type that a call gives: None, which an absent argument alone takes */
#define PRECAST_NO_AXIS 255

enum { PRECAST_CUDA = 1, PRECAST_HIP = 2, PRECAST_HOST = 3 }; /* backends */
enum { PRECAST_ARCH_FORWARD, PRECAST_ARCH_EXACT, PRECAST_ARCH_FAMILY };
enum { PRECAST_AXIS_INT, PRECAST_AXIS_BOOL, PRECAST_AXIS_FLOAT, PRECAST_AXIS_DTYPE, PRECAST_AXIS_WORD };
enum { PRECAST_COOPERATIVE = 1, PRECAST_PDL = 2 }; /* flags of a unit */
enum { PRECAST_DIVISIBLE, PRECAST_ONE, PRECAST_RANGE32, PRECAST_ABSENT, PRECAST_PRESENT, PRECAST_PINNED }; /* hints */
enum { PRECAST_OPTIONAL = 1, PRECAST_VARIED = 2 }; /* flags of a slot: absent in some unit; a number of several types */
enum { PRECAST_LESS, PRECAST_AT_MOST, PRECAST_EQUAL, PRECAST_UNEQUAL, PRECAST_AT_LEAST, PRECAST_MORE };
enum {
    PRECAST_PARAMETER_ARGUMENT, PRECAST_PARAMETER_DESCRIPTOR, PRECAST_PARAMETER_BUFFER,
    PRECAST_PARAMETER_GLOBAL_SCRATCH, PRECAST_PARAMETER_PROFILE_SCRATCH
};

typedef struct precast_span { uint32_t first, count; } precast_span;
typedef struct precast_section { uint32_t offset, count; } precast_section;

enum {
    PRECAST_STRINGS, PRECAST_KERNELS, PRECAST_ARGUMENTS, PRECAST_SLOTS, PRECAST_AXES, PRECAST_AXIS_VALUES,
    PRECAST_FILES, PRECAST_IMAGES, PRECAST_UNITS, PRECAST_SLOT_TYPES, PRECAST_PARAMETERS, PRECAST_HINTS,
    PRECAST_DESCRIPTORS, PRECAST_STEPS, PRECAST_BUFFERS, PRECAST_RULES, PRECAST_CONDITIONS, PRECAST_ASSIGNMENTS,
    PRECAST_REQUIREMENTS, PRECAST_SECTIONS
};

typedef struct precast_header {
    char magic[8];
    uint32_t schema, launch_abi;
    uint64_t size;
    unsigned char interface[32];
    unsigned char digest[32]; /* of the file with this field zero */
    uint32_t name, reserved;
    precast_section sections[20];
} precast_header;

typedef struct precast_kernel_record {
    uint32_t name, source;
    precast_span arguments, slots, axes, units, rules;
    precast_span constants; /* among the axes, right after the kernel's own: of one value each */
} precast_kernel_record;

enum { PRECAST_NO_DEFAULT, PRECAST_DEFAULT_INT, PRECAST_DEFAULT_BOOL, PRECAST_DEFAULT_FLOAT, PRECAST_DEFAULT_NONE };

/* What stands for an argument that a call of Python leaves out: a number, or the bits of a double. */
typedef struct precast_argument_record {
    uint32_t name, first_slot, slots, default_kind;
    int64_t default_bits;
} precast_argument_record;

typedef struct precast_slot_record {
    uint32_t name;
    uint8_t type, constant, rank, dtype_axis;
    uint32_t argument, flags;
} precast_slot_record;

typedef struct precast_axis_record { uint32_t name, kind; precast_span values; } precast_axis_record;
typedef struct precast_value_record { int64_t payload; uint32_t text, reserved; } precast_value_record;
typedef struct precast_file_record { uint32_t path, reserved; uint64_t size; unsigned char digest[32]; } precast_file_record;

typedef struct precast_image_record {
    uint32_t file, reserved;
    uint64_t offset, size;
    unsigned char digest[32];
} precast_image_record;

typedef struct precast_unit_record {
    uint32_t text, symbol, kernel, image;
    uint8_t backend, arch_kind;
    uint16_t flags;
    uint32_t arch; /* 90; a CPU level, 8 for aarch64; a string for HIP */
    uint8_t axes[PRECAST_MAXIMUM_AXES]; /* value numbers from 1; 0: this target has no such axis */
    uint32_t slot_types;
    precast_span parameters, hints, promises, buffers;
    uint32_t grid_first[3], grid_count[3];
    uint32_t warps, ctas, warp_size, shared_bytes, tensor_memory_bytes, thread_scratch_bytes;
    uint32_t global_scratch_bytes, global_scratch_align, profile_scratch_bytes, profile_scratch_align;
    int32_t registers, spill_bytes;
    uint32_t code_bytes, description; /* text for the Python package */
    uint32_t order; /* among its kernel's units, as the spec has them */
    precast_span requires;
} precast_unit_record;

/* `extra`: the number of a descriptor or of a pass's buffer; of an argument, whether the kernel surely writes there. */
typedef struct precast_parameter_record { uint8_t kind, type; uint16_t slot; uint32_t extra; } precast_parameter_record;
/* `divisor`: of what is PINNED the value, a signed number. */
typedef struct precast_hint_record { uint16_t slot, kind; uint32_t divisor; } precast_hint_record;

typedef struct precast_descriptor_record {
    uint8_t tma, rank, element_type, element_bytes, swizzle, fp4_padded, reserved[2];
    uint32_t block[5];
} precast_descriptor_record;

typedef struct precast_step_record { int64_t operand; uint32_t opcode, reserved; } precast_step_record;
typedef struct precast_buffer_record { uint32_t pass_name, bytes_per_program; } precast_buffer_record;
/* A row of the tuning table; `device` and `target` may be empty, for any. `row` is for people. */
typedef struct precast_rule_record {
    precast_span conditions, assignments;
    uint32_t device, target, row, reserved;
} precast_rule_record;

typedef struct precast_condition_record {
    precast_span steps;
    uint32_t relation, reserved;
    int64_t bound;
} precast_condition_record;

typedef struct precast_assignment_record { uint32_t axis, value; } precast_assignment_record;
typedef struct precast_requirement_record { precast_span steps; uint32_t text, reserved; } precast_requirement_record;

_Static_assert(sizeof(precast_header) == 256, "header");
_Static_assert(sizeof(precast_kernel_record) == 56, "kernel");
_Static_assert(sizeof(precast_slot_record) == 16, "slot");
_Static_assert(sizeof(precast_axis_record) == 16, "axis");
_Static_assert(sizeof(precast_file_record) == 48, "file");
_Static_assert(sizeof(precast_image_record) == 56, "image");
_Static_assert(sizeof(precast_unit_record) == 168, "unit");
_Static_assert(sizeof(precast_descriptor_record) == 28, "descriptor");
_Static_assert(sizeof(precast_rule_record) == 32, "rule");
_Static_assert(sizeof(precast_condition_record) == 24, "condition");

/* A checked index: every reference in it is inside it. */
typedef struct precast_index {
    precast_view view;
    const precast_header *header;
    const char *strings;
    const precast_kernel_record *kernels;
    const precast_argument_record *arguments;
    const precast_slot_record *slots;
    const precast_axis_record *axes;
    const precast_value_record *values;
    const precast_file_record *files;
    const precast_image_record *images;
    const precast_unit_record *units;
    const uint8_t *slot_types;
    const precast_parameter_record *parameters;
    const precast_hint_record *hints;
    const precast_descriptor_record *descriptors;
    const precast_step_record *steps;
    const precast_buffer_record *buffers;
    const precast_rule_record *rules;
    const precast_condition_record *conditions;
    const precast_assignment_record *assignments;
    const precast_requirement_record *requirements;
    uint32_t kernel_count, unit_count, image_count, file_count;
} precast_index;

/* Reads and checks `path`. `interface` is the digest that the caller was generated with, or NULL for any. */
precast_status precast_open_index(const char *path, const unsigned char *interface, precast_index *index);

static inline const char *precast_text(const precast_index *index, uint32_t place) {
    return index->strings + place;
}

#endif
