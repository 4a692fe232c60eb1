/* Reads tensors through torch's C shims, found by name at run time, and at offsets learned from sample tensors. What
 * is missing or fails its self-test turns the whole reader to plain attributes, asked of a Python function that was
 * handed in. Knows nothing of guards. */

#include "tensor_reader.h"

#include "graphlift.h"

#include <dlfcn.h>
#include <string.h>

int gl_tensor_fallback = 1; /* until the samples were read */
GlTensorApi gl_tensor_api;

static PyObject *tensor_type;  /* torch's tensor class in C */
static PyObject *reader;       /* reader(tensor) -> what read_metadata gives */
static PyObject *place_reader; /* place_reader(tensor) -> (storage, data, bytes, offset) */
static PyObject *plain_types;  /* classes whose attributes run no Python code */

enum {
    LEARNED_BYTES = 192, /* how far into a TensorImpl its key set is looked for; other fields lie before it */
    STORAGE_WORDS = 7,   /* how far into a StorageImpl its data pointer is looked for */
};

/* Where things stand in the tuple that read_metadata and the reader give. */
enum { DTYPE, DEVICE, LAYOUT, KEYS, REQUIRES_GRAD, IS_LEAF, SIZES, STRIDES, OFFSET, FIELDS };

void *gl_torch_symbol(const char *name)
{
#ifdef __APPLE__
    static const char *const libraries[] = {"libtorch_cpu.dylib", "libc10.dylib", "libtorch_python.dylib"};
#else
    static const char *const libraries[] = {"libtorch_cpu.so", "libc10.so", "libtorch_python.so"};
#endif
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        void *address = library ? dlsym(library, name) : NULL;
        if (library != NULL) {
            dlclose(library);
        }
        if (address != NULL) {
            return address;
        }
    }
    return NULL;
}

int gl_is_tensor(PyObject *object)
{
    return tensor_type != NULL && PyObject_TypeCheck(object, (PyTypeObject *)tensor_type);
}

int gl_is_tensor_type(PyObject *type)
{
    return tensor_type != NULL && PyType_Check(type) &&
           PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)tensor_type);
}

int gl_is_plain_tensor_type(PyObject *type)
{
    for (Py_ssize_t i = 0; plain_types != NULL && i < PyTuple_GET_SIZE(plain_types); i++) {
        if (PyTuple_GET_ITEM(plain_types, i) == type) {
            return 1;
        }
    }
    return 0;
}

/* --- codes: small numbers for dtypes, device types and layouts, and the objects they stand for --- */

typedef struct {
    PyObject *objects[128];
} Codes;

static Codes dtypes, layouts, device_types; /* the last: names */

static int32_t find_code(Codes *codes, PyObject *object)
{
    for (int32_t i = 0; i < 128; i++) {
        if (codes->objects[i] == object) {
            return i;
        }
    }
    return -1;
}

/* The code of an object; a new one, from the end, for one that was not seen yet. */
static int32_t code_of(Codes *codes, PyObject *object)
{
    int32_t code = find_code(codes, object);
    for (int32_t i = 127; code < 0 && i >= 0; i--) {
        if (codes->objects[i] == NULL) {
            codes->objects[i] = Py_NewRef(object);
            return i;
        }
    }
    return code;
}

static int32_t device_type_code(PyObject *device)
{
    PyObject *name = PyObject_GetAttrString(device, "type");
    if (name == NULL || !PyUnicode_CheckExact(name)) {
        Py_XDECREF(name);
        return -1;
    }
    PyUnicode_InternInPlace(&name);
    int32_t code = code_of(&device_types, name);
    Py_DECREF(name);
    return code;
}

static int device_index(PyObject *device, int32_t *out)
{
    PyObject *index = PyObject_GetAttrString(device, "index");
    if (index == NULL) {
        return -1;
    }
    *out = index == Py_None ? -1 : (int32_t)PyLong_AsLong(index);
    Py_DECREF(index);
    return PyErr_Occurred() ? -1 : 0;
}

int gl_tensor_codes(PyObject *dtype, PyObject *device, int32_t *dtype_code, int32_t *type, int32_t *index)
{
    *dtype_code = code_of(&dtypes, dtype);
    *type = device_type_code(device);
    if (PyErr_Occurred() || device_index(device, index) < 0) {
        return -1;
    }
    if (*dtype_code < 0 || *type < 0) {
        PyErr_SetString(PyExc_ValueError, "too many dtypes or kinds of devices");
        return -1;
    }
    return 0;
}

/* Binds a code that torch gave to the object it means; 0 when it already means another. */
static int bind_code(Codes *codes, int32_t code, PyObject *object)
{
    if (code < 0 || code >= 128) {
        return 0;
    }
    if (codes->objects[code] == NULL && find_code(codes, object) < 0) {
        codes->objects[code] = Py_NewRef(object);
    }
    return codes->objects[code] == object;
}

/* --- device objects, one for each (type, index) --- */

enum { DEVICES = 64 };
static struct {
    int32_t type, index;
    PyObject *object;
} devices[DEVICES];
static int ndevices;

static PyObject *known_device(int32_t type, int32_t index)
{
    for (int i = 0; i < ndevices; i++) {
        if (devices[i].type == type && devices[i].index == index) {
            return devices[i].object;
        }
    }
    return NULL;
}

static void remember_device(int32_t type, int32_t index, PyObject *object)
{
    if (ndevices < DEVICES && known_device(type, index) == NULL) {
        devices[ndevices].type = type;
        devices[ndevices].index = index;
        devices[ndevices++].object = Py_NewRef(object);
    }
}

/* --- through Python --- */

/* What the Python reader says of a tensor, checked for its form; NULL with an error set. */
static PyObject *ask(PyObject *tensor)
{
    PyObject *fields = reader ? PyObject_CallOneArg(reader, tensor) : NULL;
    if (fields == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_RuntimeError, "init_tensor_reader() was not called");
        }
        return NULL;
    }
    if (!PyTuple_CheckExact(fields) || PyTuple_GET_SIZE(fields) != FIELDS ||
        !PyTuple_Check(PyTuple_GET_ITEM(fields, SIZES)) || !PyTuple_Check(PyTuple_GET_ITEM(fields, STRIDES))) {
        Py_DECREF(fields);
        PyErr_SetString(PyExc_TypeError, "the tensor reader gave something unknown");
        return NULL;
    }
    return fields;
}

static Py_ssize_t copy_numbers(PyObject *numbers, int64_t *out)
{
    Py_ssize_t count = PyTuple_GET_SIZE(numbers);
    for (Py_ssize_t i = 0; i < count && i < GL_MAX_DIMS; i++) {
        PyObject *number = PyTuple_GET_ITEM(numbers, i);
        out[i] = PyLong_Check(number) ? PyLong_AsLongLong(number) : -1;
        if (out[i] == -1) {
            return -1;
        }
    }
    return count <= GL_MAX_DIMS ? count : -1;
}

static int take_fields(PyObject *fields, GlTensor *out, GlTensorCopies *copies)
{
    PyObject *device = PyTuple_GET_ITEM(fields, DEVICE);
    out->dtype = code_of(&dtypes, PyTuple_GET_ITEM(fields, DTYPE));
    out->device_type = device_type_code(device);
    out->keys = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(fields, KEYS));
    out->requires_grad = PyTuple_GET_ITEM(fields, REQUIRES_GRAD) == Py_True;
    out->offset = PyLong_AsLongLong(PyTuple_GET_ITEM(fields, OFFSET));
    out->ndim = copy_numbers(PyTuple_GET_ITEM(fields, SIZES), copies->sizes);
    Py_ssize_t strides = copy_numbers(PyTuple_GET_ITEM(fields, STRIDES), copies->strides);
    out->sizes = copies->sizes;
    out->strides = strides == out->ndim ? copies->strides : NULL;
    return device_index(device, &out->device_index) == 0 && !PyErr_Occurred() && out->ndim >= 0 && strides >= 0;
}

static int read_through_python(PyObject *tensor, GlTensor *out, GlTensorCopies *copies)
{
    PyObject *fields = ask(tensor);
    int good = fields != NULL && take_fields(fields, out, copies);
    Py_XDECREF(fields);
    PyErr_Clear();
    return good;
}

/* --- through the shims --- */

static int read_directly(PyObject *tensor, GlTensor *out)
{
    void *handle = gl_tensor_handle(tensor);
    const char *impl = gl_tensor_impl(tensor);
    const GlTensorApi *api = &gl_tensor_api;
    int32_t layout;
    int64_t *sizes, *strides = NULL;
    out->keys = *(const uint64_t *)(impl + api->keys);
    out->requires_grad = api->requires_grad(impl);
    if (api->dtype(handle, &out->dtype) || api->device_type(handle, &out->device_type) ||
        api->device_index(handle, &out->device_index) || api->layout(handle, &layout) ||
        api->dim(handle, &out->ndim) || api->sizes(handle, &sizes)) {
        return 0;
    }
    out->offset = -1;
    if (layout >= 0 && layout < 128 && layouts.objects[layout] == layouts.objects[0]) {
        if (api->strides(handle, &strides) || api->offset(handle, &out->offset)) {
            return 0;
        }
    }
    out->sizes = sizes;
    out->strides = strides;
    return 1;
}

int gl_tensor_read(PyObject *tensor, GlTensor *out, GlTensorCopies *copies)
{
    return gl_tensor_fallback ? read_through_python(tensor, out, copies) : read_directly(tensor, out);
}

/* --- where the data lies --- */

static int place_through_python(PyObject *tensor, GlPlace *out)
{
    PyObject *place = place_reader ? PyObject_CallOneArg(place_reader, tensor) : NULL;
    unsigned long long storage, data;
    long long bytes, offset;
    int good = place != NULL && PyTuple_Check(place) &&
               PyArg_ParseTuple(place, "KKLL", &storage, &data, &bytes, &offset);
    Py_XDECREF(place);
    PyErr_Clear();
    if (good) {
        *out = (GlPlace){(uintptr_t)storage, (uintptr_t)data, bytes, offset};
    }
    return good;
}

int gl_tensor_place(PyObject *tensor, GlPlace *out)
{
    const GlTensorApi *api = &gl_tensor_api;
    if (gl_tensor_fallback || api->storage < 0 || api->data < 0) {
        return place_through_python(tensor, out);
    }
    void *handle = gl_tensor_handle(tensor);
    const char *storage = *(const char **)(gl_tensor_impl(tensor) + api->storage);
    if (storage == NULL) {
        return 0;
    }
    out->storage = (uintptr_t)storage;
    out->data = *(const uintptr_t *)(storage + api->data);
    return !api->storage_bytes(handle, &out->bytes) && !api->offset(handle, &out->offset);
}

/* --- learning the layout --- */

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
    size_t words = (size_t)((PyTypeObject *)tensor_type)->tp_basicsize / sizeof(uint64_t);
    uint32_t found = words_equal(tensor, words < 32 ? words : 32, wanted);
    return found && !(found & (found - 1)) ? (Py_ssize_t)__builtin_ctz(found) * 8 : -1;
}

/* The dispatch key set of a sample as Python shows it; 0 where it cannot be had. */
static uint64_t keys_of(PyObject *tensor)
{
    PyObject *fields = ask(tensor);
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
        if (place_through_python(tensor, &place) && place.storage != 0 && place.data != 0) {
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

/* Binds the codes that the shims give for a sample to the objects that Python shows. */
static int learn_codes(PyObject *tensor, PyObject *fields)
{
    void *handle = gl_tensor_handle(tensor);
    const GlTensorApi *api = &gl_tensor_api;
    PyObject *device = PyTuple_GET_ITEM(fields, DEVICE);
    int32_t dtype, layout, type, index;
    if (api->dtype(handle, &dtype) || api->layout(handle, &layout) || api->device_type(handle, &type) ||
        api->device_index(handle, &index)) {
        return 0;
    }
    PyObject *name = PyObject_GetAttrString(device, "type");
    int good = name != NULL;
    if (good) {
        PyUnicode_InternInPlace(&name);
        good = bind_code(&dtypes, dtype, PyTuple_GET_ITEM(fields, DTYPE)) &&
               bind_code(&layouts, layout, PyTuple_GET_ITEM(fields, LAYOUT)) &&
               bind_code(&device_types, type, name);
        remember_device(type, index, device);
        Py_DECREF(name);
    }
    return good;
}

static int same_numbers(const int64_t *a, const int64_t *b, int64_t count)
{
    return a == NULL || b == NULL ? a == b || count == 0 : memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

/* Whether both readers say the same of a sample. */
static int readers_agree(PyObject *tensor)
{
    PyObject *fields = ask(tensor);
    GlTensorCopies copies;
    GlTensor plain, direct;
    int good = fields != NULL && learn_codes(tensor, fields) && take_fields(fields, &plain, &copies) &&
               read_directly(tensor, &direct) && plain.dtype == direct.dtype &&
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

static void learn_fields(PyObject *samples)
{
    Candidates left;
    memset(&left, 1, sizeof left);
    memset(left.null, 0, sizeof left.null);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(samples); i++) {
        PyObject *tensor = PySequence_Fast_GET_ITEM(samples, i);
        GlTensor read;
        if (read_directly(tensor, &read) && read.strides != NULL) {
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
    api->raw = api->dtype_at >= 0 && api->device_at >= 0 && api->geometry_at >= 0 && api->autograd_at >= 0;
}

/* Why the shims cannot be used, or NULL. */
static const char *learn(PyObject *samples)
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

static PyObject *types_of(PyObject *samples)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(samples);
    PyObject *types = PySet_New(NULL), *tuple = NULL;
    int failed = types == NULL;
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        failed = PySet_Add(types, (PyObject *)Py_TYPE(PySequence_Fast_GET_ITEM(samples, i))) < 0;
    }
    if (!failed) {
        tuple = PySequence_Tuple(types);
    }
    Py_XDECREF(types);
    return tuple;
}

static PyObject *init_tensor_reader(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tensor_type", "samples", "reader", "place_reader", "force_fallback", NULL};
    PyObject *type, *sequence, *read, *place;
    int forced = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OOO|p:init_tensor_reader", names, &PyType_Type, &type,
                                     &sequence, &read, &place, &forced)) {
        return NULL;
    }
    PyObject *samples = PySequence_Fast(sequence, "samples must be a sequence");
    PyObject *types = samples ? types_of(samples) : NULL;
    if (types == NULL || PySequence_Fast_GET_SIZE(samples) == 0) {
        Py_XDECREF(types);
        Py_XDECREF(samples);
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no sample tensors");
    }
    Py_XSETREF(tensor_type, Py_NewRef(type));
    Py_XSETREF(reader, Py_NewRef(read));
    Py_XSETREF(place_reader, Py_NewRef(place));
    Py_XSETREF(plain_types, types);
    gl_tensor_fallback = 1;
    const char *problem = forced ? "forced" : learn(samples);
    Py_DECREF(samples);
    gl_tensor_fallback = problem != NULL;
    if (problem == NULL && !gl_tensor_api.raw) {
        problem = "fields unknown"; /* the shims are used for everything */
    }
    return PyUnicode_FromString(problem ? problem : "fast");
}

/* --- Python's face --- */

static PyObject *numbers(const int64_t *items, int64_t count)
{
    PyObject *tuple = PyTuple_New(items ? count : 0);
    for (int64_t i = 0; tuple != NULL && items != NULL && i < count; i++) {
        PyObject *item = PyLong_FromLongLong(items[i]);
        if (item == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

static int need_tensor(PyObject *object)
{
    if (gl_is_tensor(object)) {
        return 1;
    }
    PyErr_Format(PyExc_TypeError, "no tensor: %.100s", Py_TYPE(object)->tp_name);
    return 0;
}

static PyObject *read_tensor(PyObject *Py_UNUSED(module), PyObject *tensor)
{
    GlTensor read;
    GlTensorCopies copies;
    if (!need_tensor(tensor)) {
        return NULL;
    }
    if (!gl_tensor_read(tensor, &read, &copies)) {
        return PyErr_Format(PyExc_ValueError, "torch has no plain answer for this tensor");
    }
    return Py_BuildValue("iiiKNNNL", read.dtype, read.device_type, read.device_index, (unsigned long long)read.keys,
                         PyBool_FromLong(read.requires_grad), numbers(read.sizes, read.ndim),
                         numbers(read.strides, read.ndim), (long long)read.offset);
}

/* True, False, or NULL with no error set: ask Python. Only for a class whose attributes run no Python code. */
static PyObject *read_is_leaf(PyObject *tensor, int requires_grad)
{
    static getter get;
    static void *closure;
    static size_t (*modes)(void);
    if (!requires_grad) {
        return Py_NewRef(Py_True);
    }
    if (get == NULL) {
        PyObject *descriptor = PyObject_GetAttrString(tensor_type, "is_leaf");
        modes = (size_t(*)(void))gl_torch_symbol("_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv");
        if (descriptor != NULL && Py_IS_TYPE(descriptor, &PyGetSetDescr_Type) && modes != NULL) {
            get = ((PyGetSetDescrObject *)descriptor)->d_getset->get;
            closure = ((PyGetSetDescrObject *)descriptor)->d_getset->closure;
        }
        Py_XDECREF(descriptor); /* the class keeps it */
        PyErr_Clear();
    }
    if (get == NULL || modes() != 0) {
        return NULL;
    }
    PyObject *leaf = gl_is_plain_tensor_type((PyObject *)Py_TYPE(tensor)) ? get(tensor, closure) : NULL;
    PyErr_Clear();
    return leaf;
}

/* The whole tuple from the shims; NULL without an error: ask Python. */
static PyObject *metadata_directly(PyObject *tensor)
{
    GlTensor read;
    int32_t layout;
    if (!read_directly(tensor, &read) || gl_tensor_api.layout(gl_tensor_handle(tensor), &layout)) {
        return NULL;
    }
    PyObject *device = known_device(read.device_type, read.device_index);
    PyObject *dtype = read.dtype >= 0 && read.dtype < 128 ? dtypes.objects[read.dtype] : NULL;
    PyObject *form = layout >= 0 && layout < 128 ? layouts.objects[layout] : NULL;
    if (device == NULL || dtype == NULL || form == NULL) {
        return NULL;
    }
    PyObject *leaf = read_is_leaf(tensor, read.requires_grad);
    if (leaf == NULL) {
        return NULL;
    }
    return Py_BuildValue("OOOKONNNL", dtype, device, form, (unsigned long long)read.keys,
                         read.requires_grad ? Py_True : Py_False, leaf, numbers(read.sizes, read.ndim),
                         numbers(read.strides, read.ndim), (long long)read.offset);
}

static PyObject *read_metadata(PyObject *Py_UNUSED(module), PyObject *tensor)
{
    if (!need_tensor(tensor)) {
        return NULL;
    }
    PyObject *fields = gl_tensor_fallback ? NULL : metadata_directly(tensor);
    if (fields != NULL || PyErr_Occurred()) {
        return fields;
    }
    fields = ask(tensor);
    if (fields != NULL && !gl_tensor_fallback && !learn_codes(tensor, fields)) {
        PyErr_Clear(); /* a code that means two things: such tensors are asked for in Python each time */
    }
    return fields;
}

static PyObject *tensor_place(PyObject *Py_UNUSED(module), PyObject *tensor)
{
    GlPlace place;
    if (!need_tensor(tensor)) {
        return NULL;
    }
    if (!gl_tensor_place(tensor, &place)) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("KKLL", (unsigned long long)place.storage, (unsigned long long)place.data,
                         (long long)place.bytes, (long long)place.offset);
}

static PyObject *dtype_code(PyObject *Py_UNUSED(module), PyObject *dtype)
{
    return PyLong_FromLong(code_of(&dtypes, dtype));
}

static PyMethodDef functions[] = {
    {"dtype_code", dtype_code, METH_O, "dtype_code(dtype) -> int\n\nThe number by which guards know a dtype."},
    {"init_tensor_reader", (PyCFunction)(void (*)(void))init_tensor_reader, METH_VARARGS | METH_KEYWORDS,
     "init_tensor_reader(tensor_type, samples, reader, place_reader, force_fallback=False) -> str\n\n"
     "Learn the tensor layout from sample tensors; \"fast\", or why tensors are read through `reader`."},
    {"read_tensor", read_tensor, METH_O,
     "read_tensor(tensor) -> tuple\n\n"
     "(dtype code, device type, device index, key set, requires_grad, sizes, strides, offset)."},
    {"read_metadata", read_metadata, METH_O,
     "read_metadata(tensor) -> tuple\n\n"
     "(dtype, device, layout, key set, requires_grad, is_leaf, sizes, strides, offset)."},
    {"tensor_place", tensor_place, METH_O,
     "tensor_place(tensor) -> tuple | None\n\n(storage identity, data pointer, bytes, offset in elements)."},
    {NULL, NULL, 0, NULL},
};

int gl_tensor_reader_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
