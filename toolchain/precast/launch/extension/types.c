/* Element types by the names and numbers that frameworks give them. */
#include <string.h>

#include "extension.h"

static const struct { const char *name; uint8_t type; } names[] = {
    {"float16", PRECAST_FP16}, {"fp16", PRECAST_FP16}, {"half", PRECAST_FP16},
    {"bfloat16", PRECAST_BF16}, {"bf16", PRECAST_BF16},
    {"float32", PRECAST_FP32}, {"fp32", PRECAST_FP32}, {"float", PRECAST_FP32},
    {"float64", PRECAST_FP64}, {"fp64", PRECAST_FP64}, {"double", PRECAST_FP64},
    {"int8", PRECAST_I8}, {"i8", PRECAST_I8}, {"int16", PRECAST_I16}, {"i16", PRECAST_I16},
    {"int32", PRECAST_I32}, {"i32", PRECAST_I32}, {"int64", PRECAST_I64}, {"i64", PRECAST_I64},
    {"uint8", PRECAST_U8}, {"u8", PRECAST_U8}, {"uint16", PRECAST_U16}, {"u16", PRECAST_U16},
    {"uint32", PRECAST_U32}, {"u32", PRECAST_U32}, {"uint64", PRECAST_U64}, {"u64", PRECAST_U64},
    {"bool", PRECAST_I1}, {"i1", PRECAST_I1}, {"int1", PRECAST_I1}, {"u1", PRECAST_U1},
    {"float8_e4m3fn", PRECAST_FP8E4NV}, {"fp8e4nv", PRECAST_FP8E4NV}, {"float8e4nv", PRECAST_FP8E4NV},
    {"float8_e5m2", PRECAST_FP8E5}, {"fp8e5", PRECAST_FP8E5}, {"float8e5", PRECAST_FP8E5},
    {"float8_e4m3fnuz", PRECAST_FP8E4B8}, {"fp8e4b8", PRECAST_FP8E4B8}, {"float8e4b8", PRECAST_FP8E4B8},
    {"float8_e5m2fnuz", PRECAST_FP8E5B16}, {"fp8e5b16", PRECAST_FP8E5B16}, {"float8e5b16", PRECAST_FP8E5B16},
    {"float8_e4m3b11fnuz", 0}, {"fp8e4b15", PRECAST_FP8E4B15}, {"float8e4b15", PRECAST_FP8E4B15},
};

uint8_t type_of_name(const char *name) {
    const char *dot = strrchr(name, '.'); /* torch.float16 */
    if (dot)
        name = dot + 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].name, name))
            return names[i].type;
    return 0;
}

/* 1, 2, 4, 8 bytes as 0 to 3; -1 for anything else. */
static int power_of_bytes(int bytes) {
    return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : -1;
}

static uint8_t numeric_type(char kind, int bytes) {
    int power = power_of_bytes(bytes);
    if (kind == 'b')
        return bytes == 1 ? PRECAST_I1 : 0;
    if (power < 0 || (kind == 'f' && power == 0))
        return 0;
    if (kind == 'f')
        return (uint8_t)(power == 1 ? PRECAST_FP16 : power == 2 ? PRECAST_FP32 : PRECAST_FP64);
    return kind == 'i' ? (uint8_t)(PRECAST_I8 + power) : kind == 'u' ? (uint8_t)(PRECAST_U8 + power) : 0;
}

uint8_t type_of_typestr(const char *text) {
    if (strlen(text) < 3 || text[0] == '>')
        return 0;
    return numeric_type(text[1], atoi(text + 2));
}

uint8_t type_of_dlpack(dl_type type) {
    /* By DLPack's code, then for 8, 16, 32 and 64 bits. */
    static const uint8_t types[][4] = {
        [0] = {PRECAST_I8, PRECAST_I16, PRECAST_I32, PRECAST_I64}, [1] = {PRECAST_U8, PRECAST_U16, PRECAST_U32, PRECAST_U64},
        [2] = {0, PRECAST_FP16, PRECAST_FP32, PRECAST_FP64}, [4] = {0, PRECAST_BF16}, [6] = {PRECAST_I1},
        [10] = {PRECAST_FP8E4NV}, [11] = {PRECAST_FP8E4B8}, [12] = {PRECAST_FP8E5}, [13] = {PRECAST_FP8E5B16},
    };
    if (type.lanes != 1 || type.code >= sizeof types / sizeof *types || type.bits < 8 || type.bits & (type.bits - 1))
        return 0;
    int size = power_of_bytes(type.bits / 8);
    return size < 0 ? 0 : types[type.code][size];
}

uint8_t type_of_object(PyObject *dtype) {
    PyObject *text = PyType_Check(dtype) ? PyObject_GetAttrString(dtype, "__name__") : PyObject_Str(dtype);
    const char *name = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    uint8_t type = name ? type_of_name(name) : 0;
    Py_XDECREF(text);
    PyErr_Clear();
    return type;
}
