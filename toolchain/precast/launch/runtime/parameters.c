/* A unit's parameters from a call's slots: absent arguments dropped, numbers narrowed, descriptors made or expanded. */
#include <string.h>

#include "number.h"
#include "slots.h"
#include "state.h"

static uint32_t add(precast_parameters *parameters, uint64_t value) {
    uint32_t place = parameters->count++;
    parameters->values[place] = value;
    parameters->places[place] = &parameters->values[place];
    return place + 1;
}

/* A slot wider than the unit's parameter: variants differ in this argument's type, and this one holds the value. */
static void narrow(unsigned type, uint64_t value, precast_parameters *parameters) {
    if (precast_is_float(type)) {
        double real;
        memcpy(&real, &value, sizeof real);
        value = precast_float_bits(real, type);
    }
    add(parameters, value);
}

static precast_status check_tensor(const precast_tensor *tensor, int rank, const char *name) {
    if (!tensor)
        return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` needs a tensor, and it is NULL", name);
    if (tensor->rank != rank)
        return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` needs a tensor of rank %d, and its rank is %d", name,
                            rank, (int)tensor->rank);
    for (int i = 0; i < rank; i++)
        if (tensor->shape[i] < 0 || tensor->shape[i] > INT32_MAX)
            return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` has %lld elements along dimension %d", name,
                                (long long)tensor->shape[i], i);
    if (rank && tensor->strides[rank - 1] != 1)
        return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` has stride %lld along its last dimension, not 1", name,
                            (long long)tensor->strides[rank - 1]);
    return PRECAST_OK;
}

/* With TMA: the map. Without: base, shape, strides, padding and rounding. Then, for both, shape and strides again. */
static precast_status add_descriptor(const precast_index *index, const precast_device *device,
                                     const precast_descriptor_record *descriptor, const precast_slot_record *slot,
                                     uint64_t value, uint32_t *maps, precast_parameters *parameters) {
    const precast_tensor *tensor = (const precast_tensor *)(uintptr_t)value;
    const char *name = precast_text(index, slot->name);
    precast_status status = check_tensor(tensor, descriptor->rank, name);
    if (status != PRECAST_OK)
        return status;
    if (descriptor->tma) {
        precast_tensor_map *map = &parameters->maps[(*maps)++];
        memset(map, 0, sizeof *map);
        if (!device->driver)
            return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` needs a tensor map, and a CPU has none", name);
        int code = device->driver->encode(map, descriptor, tensor);
        if (code)
            return precast_driver_failed(device->driver, code, "making the tensor map of argument", name);
        parameters->places[parameters->count++] = map;
    } else {
        add(parameters, precast_slot_pointer(tensor->base));
        for (int i = 0; i < descriptor->rank; i++)
            add(parameters, (uint64_t)tensor->shape[i]);
        for (int i = 0; i < descriptor->rank; i++)
            add(parameters, (uint64_t)tensor->strides[i]);
        add(parameters, tensor->pad_with_nan);
        add(parameters, tensor->round_to_tf32);
    }
    for (int i = 0; i < descriptor->rank; i++)
        add(parameters, (uint64_t)tensor->shape[i]);
    for (int i = 0; i < descriptor->rank; i++)
        add(parameters, (uint64_t)tensor->strides[i]);
    return PRECAST_OK;
}

precast_status precast_pack(const precast_release *release, const precast_device *device, uint32_t unit,
                            const precast_call *call, precast_parameters *parameters) {
    const precast_index *index = &release->index;
    const precast_unit_record *record = &index->units[unit];
    const precast_slot_record *slots = &index->slots[index->kernels[call->kernel].slots.first];
    const precast_parameter_record *parameter = &index->parameters[record->parameters.first];
    const precast_parameter_record *end = parameter + record->parameters.count;
    uint32_t maps = 0;
    parameters->count = parameters->global_scratch = parameters->profile_scratch = 0;
    for (; parameter < end; parameter++) {
        precast_status status = PRECAST_OK;
        uint64_t value = parameter->kind <= PRECAST_PARAMETER_DESCRIPTOR ? call->slots[parameter->slot] : 0;
        switch (parameter->kind) {
        case PRECAST_PARAMETER_ARGUMENT:
            if (parameter->type & PRECAST_POINTER || parameter->type == slots[parameter->slot].type)
                add(parameters, value);
            else
                narrow(parameter->type, value, parameters);
            break;
        case PRECAST_PARAMETER_DESCRIPTOR:
            status = add_descriptor(index, device, &index->descriptors[parameter->extra], &slots[parameter->slot],
                                    value, &maps, parameters);
            break;
        case PRECAST_PARAMETER_BUFFER:
            parameters->buffers[parameter->extra] = add(parameters, 0);
            break;
        case PRECAST_PARAMETER_GLOBAL_SCRATCH:
            parameters->global_scratch = add(parameters, 0);
            break;
        default:
            parameters->profile_scratch = add(parameters, 0);
        }
        if (status != PRECAST_OK)
            return status;
    }
    return PRECAST_OK;
}
