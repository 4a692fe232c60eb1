/* Reads tensors through torch's C shims, found by name at run time, and at offsets learned from sample tensors. What
 * is missing or fails its self-test turns the whole reader to plain attributes, asked of a Python function that was
 * handed in. Knows nothing of guards. */

#include "tensor_parts.h"

#include "graphlift.h"

#include <dlfcn.h>
#include <string.h>

int gl_tensor_fallback = 1; /* until the samples were read */
GlTensorApi gl_tensor_api;

PyObject *gl_tensor_type;

static PyObject *reader;       /* reader(tensor) -> what read_metadata gives */
static PyObject *place_reader; /* place_reader(tensor) -> (storage, data, bytes, offset) */
static PyObject *plain_types;  /* classes whose attributes run no Python code */

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
    return gl_tensor_type != NULL && PyObject_TypeCheck(object, (PyTypeObject *)gl_tensor_type);
}

int gl_is_tensor_type(PyObject *type)
{
    return gl_tensor_type != NULL && PyType_Check(type) &&
           PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)gl_tensor_type);
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

/* --- through Python --- */

PyObject *gl_tensor_ask(PyObject *tensor)
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

int gl_tensor_take_fields(PyObject *fields, GlTensor *out, GlTensorCopies *copies)
{
    PyObject *dtype = PyTuple_GET_ITEM(fields, DTYPE), *device = PyTuple_GET_ITEM(fields, DEVICE);
    int known = gl_tensor_codes(dtype, device, &out->dtype, &out->device_type, &out->device_index) == 0;
    out->keys = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(fields, KEYS));
    out->requires_grad = PyTuple_GET_ITEM(fields, REQUIRES_GRAD) == Py_True;
    out->offset = PyLong_AsLongLong(PyTuple_GET_ITEM(fields, OFFSET));
    out->ndim = copy_numbers(PyTuple_GET_ITEM(fields, SIZES), copies->sizes);
    Py_ssize_t strides = copy_numbers(PyTuple_GET_ITEM(fields, STRIDES), copies->strides);
    out->sizes = copies->sizes;
    out->strides = strides == out->ndim ? copies->strides : NULL;
    return known && !PyErr_Occurred() && out->ndim >= 0 && strides >= 0;
}

static int read_through_python(PyObject *tensor, GlTensor *out, GlTensorCopies *copies)
{
    PyObject *fields = gl_tensor_ask(tensor);
    int good = fields != NULL && gl_tensor_take_fields(fields, out, copies);
    Py_XDECREF(fields);
    PyErr_Clear();
    return good;
}

/* --- through the shims --- */

int gl_tensor_read_directly(PyObject *tensor, GlTensor *out)
{
    void *handle = gl_tensor_handle(tensor);
    const char *impl = gl_tensor_impl(tensor);
    const GlTensorApi *api = &gl_tensor_api;
    enum { STRIDED = 0 }; /* of c10::Layout */
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
    if (layout == STRIDED) {
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
    return gl_tensor_fallback ? read_through_python(tensor, out, copies) : gl_tensor_read_directly(tensor, out);
}

/* --- where the data lies --- */

int gl_tensor_place_through_python(PyObject *tensor, GlPlace *out)
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
        return gl_tensor_place_through_python(tensor, out);
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
    static char *names[] = {"gl_tensor_type", "samples", "reader", "place_reader", "force_fallback", NULL};
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
    Py_XSETREF(gl_tensor_type, Py_NewRef(type));
    Py_XSETREF(reader, Py_NewRef(read));
    Py_XSETREF(place_reader, Py_NewRef(place));
    Py_XSETREF(plain_types, types);
    gl_tensor_fallback = 1;
    const char *problem = forced ? "forced" : gl_tensor_learn(samples);
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

/* 1, 0, or -1: ask Python. Autograd's own record is read as it is: the attribute `is_leaf` brings that of a view up to
 * date when its base was written to, after which the view may be written to as well. */
static int read_is_leaf(PyObject *tensor, int requires_grad)
{
    static void *(*history)(const void *handle);
    static int looked;
    if (!requires_grad) {
        return 1;
    }
    if (!looked) {
        looked = 1;
        history = (void *(*)(const void *))gl_torch_symbol("_ZN5torch8autograd4impl14grad_fn_unsafeERKN2at6TensorE");
    }
    if (history == NULL || !gl_is_plain_tensor_type((PyObject *)Py_TYPE(tensor))) {
        return -1;
    }
    return history(gl_tensor_handle(tensor)) == NULL;
}

int gl_tensor_is_leaf(PyObject *tensor)
{
    int leaf = gl_tensor_fallback ? -1 : read_is_leaf(tensor, gl_tensor_api.requires_grad(gl_tensor_impl(tensor)));
    if (leaf < 0) {
        PyObject *fields = gl_tensor_ask(tensor);
        leaf = fields != NULL && PyTuple_GET_ITEM(fields, IS_LEAF) == Py_True;
        Py_XDECREF(fields);
        PyErr_Clear();
    }
    return leaf;
}

/* The whole tuple from the shims; NULL without an error: ask Python. */
static PyObject *metadata_directly(PyObject *tensor)
{
    GlTensor read;
    int32_t layout;
    if (!gl_tensor_read_directly(tensor, &read) || gl_tensor_api.layout(gl_tensor_handle(tensor), &layout)) {
        return NULL;
    }
    PyObject *device = gl_device_of_codes(read.device_type, read.device_index);
    PyObject *dtype = gl_dtype_of_code(read.dtype);
    PyObject *form = gl_layout_of_code(layout);
    if (device == NULL || dtype == NULL || form == NULL) {
        return NULL;
    }
    int leaf = read_is_leaf(tensor, read.requires_grad);
    if (leaf < 0) {
        return NULL;
    }
    return Py_BuildValue("OOOKOONNL", dtype, device, form, (unsigned long long)read.keys,
                         read.requires_grad ? Py_True : Py_False, leaf ? Py_True : Py_False, numbers(read.sizes, read.ndim),
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
    fields = gl_tensor_ask(tensor);
    if (fields != NULL && !gl_tensor_fallback && !gl_tensor_learn_codes(tensor, fields)) {
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
    return PyLong_FromLong(gl_code_of_dtype(dtype));
}

static PyMethodDef functions[] = {
    {"dtype_code", dtype_code, METH_O, "dtype_code(dtype) -> int\n\nThe number by which guards know a dtype."},
    {"init_tensor_reader", (PyCFunction)(void (*)(void))init_tensor_reader, METH_VARARGS | METH_KEYWORDS,
     "init_tensor_reader(gl_tensor_type, samples, reader, place_reader, force_fallback=False) -> str\n\n"
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
