/* Finds torch's C shims by name, and learns from sample tensors where the fields of a tensor lie. What the Python reader
 * says is the yardstick; what cannot be told for certain is not used. */

#include "tensor_parts.h"

#include <string.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

enum {
    LEARNED_BYTES = 192, /* how far into a TensorImpl its key set is looked for; other fields lie before it */
    STORAGE_WORDS = 7,   /* how far into a StorageImpl its data pointer is looked for */
};

static int find_symbols(GlTensorApi *api)
{
    const struct {
        void **address;
        const char *name;
    } wanted[] = {
        {(void **)&api->dtype, "aoti_torch_get_dtype"},
        {(void **)&api->device_type, "aoti_torch_get_device_type"},
        {(void **)&api->device_index, "aoti_torch_get_device_index"},
        {(void **)&api->layout, "aoti_torch_get_layout"},
        {(void **)&api->dim, "aoti_torch_get_dim"},
        {(void **)&api->sizes, "aoti_torch_get_sizes"},
        {(void **)&api->strides, "aoti_torch_get_strides"},
        {(void **)&api->offset, "aoti_torch_get_storage_offset"},
        {(void **)&api->storage_bytes, "aoti_torch_get_storage_size"},
        {(void **)&api->requires_grad, "_ZNK3c1010TensorImpl13requires_gradEv"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        *wanted[i].address = gl_torch_symbol(wanted[i].name);
        if (*wanted[i].address == NULL) {
            return 0;
        }
    }
    return 1;
}

/* Which of the first words of `memory` equal `wanted`, as a bit set. */
static uint32_t words_equal(const void *memory, size_t words, uint64_t wanted)
{
    const uint64_t *word = memory;
    uint32_t found = 0;
    for (size_t i = 0; i < words; i++) {
        found |= (uint32_t)(word[i] == wanted) << i;
    }
    return found;
}

/* The place in the Python object where at::Tensor lies: the word equal to `_cdata`. */
static Py_ssize_t learn_slot(PyObject *tensor)
{
    PyObject *address = PyObject_GetAttrString(tensor, "_cdata");
    uint64_t wanted = address ? PyLong_AsUnsignedLongLong(address) : 0;
    Py_XDECREF(address);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return -1;
    }
    size_t words = (size_t)((PyTypeObject *)gl_tensor_type)->tp_basicsize / sizeof(uint64_t);
    uint32_t found = words_equal(tensor, words < 32 ? words : 32, wanted);
    return found && !(found & (found - 1)) ? (Py_ssize_t)__builtin_ctz(found) * 8 : -1;
}

/* The dispatch key set of a sample as Python shows it; 0 where it cannot be had. */
static uint64_t keys_of(PyObject *tensor)
{
    PyObject *fields = gl_tensor_ask(tensor);
    uint64_t keys = fields ? PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(fields, KEYS)) : 0;
    Py_XDECREF(fields);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return keys;
}

/* The first place in TensorImpl that holds the key set of every sample; -1: there is none. Nothing behind it is read,
 * for the object may end there. */
static Py_ssize_t learn_keys(PyObject *samples)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(samples), place = -1;
    uint64_t *keys = PyMem_New(uint64_t, count);
    for (Py_ssize_t i = 0; keys != NULL && i < count; i++) {
        keys[i] = keys_of(PySequence_Fast_GET_ITEM(samples, i));
    }
    for (Py_ssize_t at = 0; keys != NULL && place < 0 && at < LEARNED_BYTES; at += 8) {
        Py_ssize_t i = 0;
        while (i < count && keys[i] != 0 &&
               *(const uint64_t *)(gl_tensor_impl(PySequence_Fast_GET_ITEM(samples, i)) + at) == keys[i]) {
            i++;
        }
        place = i == count ? at : -1;
    }
    PyMem_Free(keys);
    return place;
}

/* Where the storage pointer lies in TensorImpl (before the key set) and the data pointer in StorageImpl. */
static void learn_places(PyObject *samples, GlTensorApi *api)
{
    uint32_t storage = UINT32_MAX, data = UINT32_MAX;
    GlPlace place;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(samples); i++) {
        PyObject *tensor = PySequence_Fast_GET_ITEM(samples, i);
        if (gl_tensor_place_through_python(tensor, &place) && place.storage != 0 && place.data != 0) {
            storage &= words_equal(gl_tensor_impl(tensor), (size_t)api->keys / 8, place.storage);
            data &= words_equal((const void *)place.storage, STORAGE_WORDS, place.data);
        }
    }
    int known = storage && !(storage & (storage - 1)) && data && data != UINT32_MAX;
    api->storage = known ? (Py_ssize_t)__builtin_ctz(storage) * 8 : -1;
    api->data = known ? (Py_ssize_t)__builtin_ctz(data) * 8 : -1;
}

static const char *learn_offsets(PyObject *samples, GlTensorApi *api)
{
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(samples); i++) {
        if (api->slot < 0 || learn_slot(PySequence_Fast_GET_ITEM(samples, i)) != api->slot) {
            return "the tensor's place in its Python object is unknown";
        }
    }
    gl_tensor_api.slot = api->slot; /* which the next steps read through */
    api->keys = learn_keys(samples);
    if (api->keys < 0) {
        return "the place of the dispatch key set is unknown";
    }
    learn_places(samples, api);
    return NULL;
}

int gl_tensor_learn_codes(PyObject *tensor, PyObject *fields)
{
    void *handle = gl_tensor_handle(tensor);
    const GlTensorApi *api = &gl_tensor_api;
    int32_t dtype, layout, type, index;
    if (api->dtype(handle, &dtype) || api->layout(handle, &layout) || api->device_type(handle, &type) ||
        api->device_index(handle, &index)) {
        return 0;
    }
    return gl_bind_codes(fields, dtype, layout, type, index);
}

static int same_numbers(const int64_t *a, const int64_t *b, int64_t count)
{
    return a == NULL || b == NULL ? a == b || count == 0 : memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

/* Whether both readers say the same of a sample. */
static int readers_agree(PyObject *tensor)
{
    PyObject *fields = gl_tensor_ask(tensor);
    GlTensorCopies copies;
    GlTensor plain, direct;
    int good = fields != NULL && gl_tensor_learn_codes(tensor, fields) && gl_tensor_take_fields(fields, &plain, &copies) &&
               gl_tensor_read_directly(tensor, &direct) && plain.dtype == direct.dtype &&
               plain.device_type == direct.device_type && plain.device_index == direct.device_index &&
               plain.keys == direct.keys && plain.requires_grad == direct.requires_grad &&
               plain.ndim == direct.ndim && plain.offset == direct.offset &&
               same_numbers(plain.sizes, direct.sizes, plain.ndim) &&
               same_numbers(plain.strides, direct.strides, plain.ndim);
    Py_XDECREF(fields);
    PyErr_Clear();
    return good;
}

/* --- learning the fields behind the shims --- */

enum { UNKNOWN = -1 };

typedef struct {
    uint8_t dtype[LEARNED_BYTES], device[LEARNED_BYTES], geometry[LEARNED_BYTES], autograd[LEARNED_BYTES];
    uint8_t null[LEARNED_BYTES]; /* in how many samples there was no pointer */
} Candidates;

static int geometry_fits(const char *at, const GlTensor *read)
{
    const int64_t *sizes, *strides;
    /* The number comes first: what lies behind is looked at only where it is right. */
    return *(const int64_t *)at == read->ndim && gl_raw_geometry(at, &sizes, &strides) == read->ndim &&
           (read->ndim <= 5 || (((uintptr_t)sizes & 7) == 0 && sizes != NULL)) &&
           memcmp(sizes, read->sizes, (size_t)read->ndim * sizeof *sizes) == 0 &&
           memcmp(strides, read->strides, (size_t)read->ndim * sizeof *strides) == 0;
}

/* Strikes out the places that do not hold what the shims say of a sample. The fields lie before the key set; what is
 * behind it may belong to somebody else already. */
static void narrow(Candidates *left, const char *impl, const GlTensor *read)
{
    for (int at = 0; at < gl_tensor_api.keys; at++) {
        left->dtype[at] &= at % 2 == 0 && *(const uint16_t *)(impl + at) == (uint16_t)read->dtype;
        left->device[at] &= ((const int8_t *)impl)[at] == read->device_type &&
                            ((const int8_t *)impl)[at + 1] == read->device_index;
        if (at % 8 == 0) {
            left->geometry[at] = left->geometry[at] && geometry_fits(impl + at, read);
            int null = *(void *const *)(impl + at) == NULL;
            left->autograd[at] &= !(null && read->requires_grad);
            left->null[at] += null;
        }
    }
}

/* The one place that is left, if it is one and a multiple of `step`. */
static Py_ssize_t only(const uint8_t *left, int step)
{
    Py_ssize_t found = UNKNOWN;
    for (int at = 0; at < gl_tensor_api.keys; at += step) {
        if (left[at]) {
            if (found != UNKNOWN) {
                return UNKNOWN;
            }
            found = at;
        }
    }
    return found;
}

/* How many bytes of the autograd metadata may be read; 0: nobody knows. */
static size_t readable_bytes(const void *memory)
{
#ifdef __GLIBC__
    return memory == NULL ? 0 : malloc_usable_size((void *)(uintptr_t)memory);
#else
    (void)memory;
    return 0;
#endif
}

/* Sets requires_grad of a tensor again and again, and finds the one byte that goes with it. */
static Py_ssize_t learn_flag(PyObject *tensor)
{
    enum { BYTES = 512 };
    static const char pattern[] = {1, 0, 1, 1, 0, 0, 1, 0};
    uint8_t left[BYTES];
    Py_ssize_t found = UNKNOWN;
    memset(left, 1, sizeof left);
    size_t bytes = BYTES;
    for (size_t i = 0; i < sizeof pattern; i++) {
        if (PyObject_SetAttrString(tensor, "requires_grad", pattern[i] ? Py_True : Py_False) < 0) {
            PyErr_Clear();
            return UNKNOWN;
        }
        const uint8_t *autograd = *(const uint8_t *const *)(gl_tensor_impl(tensor) + gl_tensor_api.autograd_at);
        size_t readable = readable_bytes(autograd);
        bytes = readable < bytes ? readable : bytes;
        for (size_t at = 0; at < bytes; at++) {
            left[at] &= autograd[at] == pattern[i];
        }
    }
    for (size_t at = 0; at < bytes; at++) {
        if (left[at]) {
            if (found != UNKNOWN) {
                return UNKNOWN;
            }
            found = (Py_ssize_t)at;
        }
    }
    return found;
}

/* A new tensor like a sample, to be changed. */
static PyObject *copy_of(PyObject *sample)
{
    PyObject *detached = PyObject_CallMethod(sample, "detach", NULL);
    PyObject *copy = detached == NULL ? NULL : PyObject_CallMethod(detached, "clone", NULL);
    Py_XDECREF(detached);
    PyErr_Clear();
    return copy;
}

static void learn_fields(PyObject *samples)
{
    Candidates left;
    memset(&left, 1, sizeof left);
    memset(left.null, 0, sizeof left.null);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(samples); i++) {
        PyObject *tensor = PySequence_Fast_GET_ITEM(samples, i);
        GlTensor read;
        if (gl_tensor_read_directly(tensor, &read) && read.strides != NULL) {
            narrow(&left, gl_tensor_impl(tensor), &read);
        }
    }
    for (int at = 0; at < LEARNED_BYTES; at++) {
        left.autograd[at] &= left.null[at] >= 4; /* most samples have no autograd metadata */
    }
    GlTensorApi *api = &gl_tensor_api;
    api->dtype_at = only(left.dtype, 2);
    api->device_at = only(left.device, 1);
    api->geometry_at = only(left.geometry, 8);
    api->autograd_at = only(left.autograd, 8);
    api->flag_at = UNKNOWN;
    api->raw = api->dtype_at >= 0 && api->device_at >= 0 && api->geometry_at >= 0 && api->autograd_at >= 0;
    PyObject *copy = api->raw ? copy_of(PySequence_Fast_GET_ITEM(samples, 0)) : NULL;
    if (copy != NULL) {
        api->flag_at = learn_flag(copy);
        Py_DECREF(copy);
    }
}

const char *gl_tensor_learn(PyObject *samples)
{
    GlTensorApi api = {.slot = -1};
    if (!find_symbols(&api)) {
        return "this torch lacks a symbol";
    }
    api.slot = learn_slot(PySequence_Fast_GET_ITEM(samples, 0));
    const char *problem = learn_offsets(samples, &api);
    if (problem != NULL) {
        return problem;
    }
    gl_tensor_api = api;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(samples); i++) {
        if (!readers_agree(PySequence_Fast_GET_ITEM(samples, i))) {
            return "the two readers disagree on a sample";
        }
    }
    learn_fields(samples);
    return NULL;
}
