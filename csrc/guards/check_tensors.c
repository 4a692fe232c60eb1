/* The check of a tensor: class, dispatch keys, dtype, device, requires_grad, sizes and strides. */

#include "node.h"

#include "../tensor_reader.h"

#include <string.h>

static const int64_t ANY = INT64_MIN; /* a size or stride that is not part of the assumption */

typedef struct {
    uint64_t keys;
    int32_t dtype, device_type, device_index;
    int requires_grad; /* -1: not part of the assumption */
    int64_t ndim;
    int has_strides;
    int plain; /* the class is one whose tensors answer from their fields */
    int all_sizes, all_strides; /* none of them is ANY */
    int fixed;                  /* plain, and nothing is ANY */
    PyObject *const *class_at;  /* where the class stands, or None once it is gone */
    int64_t numbers[];          /* the sizes, then the strides */
} Spec;

static int numbers_hold(const int64_t *expected, const int64_t *now, int64_t count, int all)
{
    if (all) {
        for (int64_t i = 0; i < count; i++) {
            if (expected[i] != now[i]) {
                return 0;
            }
        }
        return 1;
    }
    for (int64_t i = 0; i < count; i++) {
        if (expected[i] != ANY && expected[i] != now[i]) {
            return 0;
        }
    }
    return 1;
}

static int geometry_holds(const Spec *spec, const int64_t *sizes, const int64_t *strides)
{
    if (!numbers_hold(spec->numbers, sizes, spec->ndim, spec->all_sizes)) {
        return 0;
    }
    if (!spec->has_strides) {
        return 1;
    }
    return strides != NULL && numbers_hold(spec->numbers + spec->ndim, strides, spec->ndim, spec->all_strides);
}

static int holds_through_python(const Spec *spec, PyObject *tensor)
{
    GlTensor now;
    GlTensorCopies copies;
    return gl_tensor_read(tensor, &now, &copies) && now.keys == spec->keys && now.dtype == spec->dtype &&
           now.device_type == spec->device_type && now.device_index == spec->device_index &&
           (spec->requires_grad < 0 || now.requires_grad == spec->requires_grad) && now.ndim == spec->ndim &&
           geometry_holds(spec, now.sizes, now.strides);
}

static int holds_directly(const Spec *spec, PyObject *tensor)
{
    const GlTensorApi *api = &gl_tensor_api;
    const char *impl = gl_tensor_impl(tensor);
    void *handle = gl_tensor_handle(tensor);
    int32_t dtype, type, index;
    int64_t ndim, *sizes, *strides = NULL;
    /* The keys come first: equal keys mean a tensor of a kind for which the other questions have answers. */
    if (*(const uint64_t *)(impl + api->keys) != spec->keys ||
        (spec->requires_grad >= 0 && api->requires_grad(impl) != spec->requires_grad)) {
        return 0;
    }
    if (api->dtype(handle, &dtype) || dtype != spec->dtype || api->device_type(handle, &type) ||
        type != spec->device_type || api->device_index(handle, &index) || index != spec->device_index ||
        api->dim(handle, &ndim) || ndim != spec->ndim || api->sizes(handle, &sizes)) {
        return 0;
    }
    if (spec->has_strides && api->strides(handle, &strides)) {
        return 0;
    }
    return geometry_holds(spec, sizes, strides);
}

static int holds_raw(const Spec *spec, PyObject *tensor)
{
    const GlTensorApi *api = &gl_tensor_api;
    const char *impl = gl_tensor_impl(tensor);
    const int64_t *sizes, *strides;
    return *(const uint64_t *)(impl + api->keys) == spec->keys &&
           *(const uint16_t *)(impl + api->dtype_at) == spec->dtype &&
           ((const int8_t *)impl)[api->device_at] == spec->device_type &&
           ((const int8_t *)impl)[api->device_at + 1] == spec->device_index &&
           gl_raw_geometry(impl + api->geometry_at, &sizes, &strides) == spec->ndim &&
           geometry_holds(spec, sizes, strides) &&
           (spec->requires_grad < 0 || gl_raw_requires_grad(impl) == spec->requires_grad);
}

/* The most frequent kind, without a branch for each number. */
static inline int holds_fixed(const Spec *spec, PyObject *tensor)
{
    const GlTensorApi *api = &gl_tensor_api;
    const char *impl = gl_tensor_impl(tensor);
    const int64_t *sizes, *strides, *expected = spec->numbers;
    int64_t ndim = spec->ndim;
    if (gl_raw_geometry(impl + api->geometry_at, &sizes, &strides) != ndim) {
        return 0;
    }
    uint64_t other = *(const uint64_t *)(impl + api->keys) ^ spec->keys;
    other |= (uint64_t)(*(const uint16_t *)(impl + api->dtype_at) ^ spec->dtype);
    other |= (uint64_t)(((const int8_t *)impl)[api->device_at] ^ spec->device_type);
    other |= (uint64_t)(((const int8_t *)impl)[api->device_at + 1] ^ spec->device_index);
    for (int64_t i = 0; i < ndim; i++) {
        other |= (uint64_t)((sizes[i] ^ expected[i]) | (strides[i] ^ expected[ndim + i]));
    }
    return other == 0 && (spec->requires_grad < 0 || gl_raw_requires_grad(impl) == spec->requires_grad);
}

int gl_tensor_holds(const GlNode *node, PyObject *tensor)
{
    const Spec *spec = node->data;
    if ((PyObject *)Py_TYPE(tensor) != *spec->class_at) {
        return 0;
    }
    if (gl_tensor_fallback) {
        return holds_through_python(spec, tensor);
    }
    if (spec->fixed && gl_tensor_api.raw) {
        return holds_fixed(spec, tensor);
    }
    return spec->plain && gl_tensor_api.raw ? holds_raw(spec, tensor) : holds_directly(spec, tensor);
}

static int run_tensor(const GlNode *node, GlRun *run) { return gl_tensor_holds(node, gl_parent(node, run)); }

int gl_is_same_tensor_check(const GlNode *one, const GlNode *other)
{
    const Spec *a = one->data, *b = other->data;
    size_t numbers = (size_t)a->ndim * 2 * sizeof(int64_t);
    return one->object == other->object && a->keys == b->keys && a->dtype == b->dtype &&
           a->device_type == b->device_type && a->device_index == b->device_index &&
           a->requires_grad == b->requires_grad && a->ndim == b->ndim && a->has_strides == b->has_strides &&
           memcmp(a->numbers, b->numbers, numbers) == 0;
}

int gl_is_tensor_check(const GlNode *node) { return node->run == run_tensor; }

/* --- building --- */

/* Sets `all` to whether every number is fixed. */
static int take_numbers(PyObject *tuple, int64_t *out, int *all)
{
    *all = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        PyObject *number = PyTuple_GET_ITEM(tuple, i);
        out[i] = number == Py_None ? ANY : PyLong_AsLongLong(number);
        if (PyErr_Occurred()) {
            return -1;
        }
        *all &= out[i] != ANY;
    }
    return 0;
}

static int check_operands(PyObject *const *operands)
{
    PyObject *type = gl_held(operands[0]), *sizes = operands[5], *strides = operands[6];
    if (type == NULL || !gl_is_tensor_type(type)) {
        PyErr_SetString(PyExc_TypeError, "the class of a tensor guard is no tensor class");
        return -1;
    }
    if (!PyTuple_Check(sizes) ||
        (strides != Py_None && (!PyTuple_Check(strides) || PyTuple_GET_SIZE(strides) != PyTuple_GET_SIZE(sizes)))) {
        PyErr_SetString(PyExc_TypeError, "sizes and strides are tuples of one length");
        return -1;
    }
    return 0;
}

/* operands: class, key set, dtype, device, requires_grad or None, sizes, strides or None */
static int build_tensor(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    if (check_operands(operands) < 0) {
        return -1;
    }
    Py_ssize_t ndim = PyTuple_GET_SIZE(operands[5]);
    Spec *spec = PyMem_Calloc(1, sizeof(Spec) + (size_t)ndim * 2 * sizeof(int64_t));
    if (spec == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    node->data = spec;
    node->object = Py_NewRef(operands[0]);
    spec->class_at = gl_is_weak(node->object) ? &((PyWeakReference *)node->object)->wr_object : &node->object;
    spec->keys = PyLong_AsUnsignedLongLong(operands[1]);
    spec->requires_grad = operands[4] == Py_None ? -1 : operands[4] == Py_True;
    spec->ndim = ndim;
    spec->has_strides = operands[6] != Py_None;
    spec->plain = spec->has_strides && gl_is_plain_tensor_type(gl_held(operands[0]));
    if (PyErr_Occurred() ||
        gl_tensor_codes(operands[2], operands[3], &spec->dtype, &spec->device_type, &spec->device_index) < 0 ||
        take_numbers(operands[5], spec->numbers, &spec->all_sizes) < 0) {
        return -1;
    }
    if (spec->has_strides && take_numbers(operands[6], spec->numbers + ndim, &spec->all_strides) < 0) {
        return -1;
    }
    spec->fixed = spec->plain && spec->all_sizes && spec->all_strides;
    return 0;
}

/* --- the storage offset --- */

static int run_tensor_offset(const GlNode *node, GlRun *run)
{
    PyObject *tensor = gl_parent(node, run);
    GlTensor now;
    GlTensorCopies copies;
    return gl_is_tensor(tensor) && gl_tensor_read(tensor, &now, &copies) && now.offset == node->number;
}

static int build_number(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    node->number = PyLong_AsSsize_t(operands[0]);
    return PyErr_Occurred() ? -1 : 0;
}

/* --- whether it is a leaf --- */

static int run_tensor_leaf(const GlNode *node, GlRun *run)
{
    PyObject *tensor = gl_parent(node, run);
    return gl_is_tensor(tensor) && gl_tensor_is_leaf(tensor) == node->number;
}

static int build_leaf(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    build->calls_out = 1; /* a tensor of another class is asked through Python */
    node->number = PyObject_IsTrue(operands[0]);
    return node->number < 0 ? -1 : 0;
}

/* --- how a view was made, for autograd. operands: torch's reader of it, the number it must give --- */

static int run_view_made(const GlNode *node, GlRun *run)
{
    PyObject *tensor = gl_parent(node, run);
    PyObject *made = gl_is_tensor(tensor) ? PyObject_CallOneArg(node->object, tensor) : NULL;
    PyObject *number = made == NULL ? NULL : PyNumber_Long(made);
    int holds = number != NULL && PyLong_AsSsize_t(number) == node->number;
    Py_XDECREF(number);
    Py_XDECREF(made);
    PyErr_Clear(); /* no view at all */
    return holds;
}

static int build_view_made(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    if (!PyCFunction_Check(operands[0])) {
        PyErr_Format(PyExc_TypeError, "no C function: %R", operands[0]);
        return -1;
    }
    build->calls_out = 1;
    node->object = Py_NewRef(operands[0]);
    return build_number(node, build, operands + 1, 1);
}

const GlOp gl_tensor_ops[] = {
    {"tensor", GL_ALONE, 7, run_tensor, build_tensor, NULL, NULL},
    {"tensor_offset", 0, 1, run_tensor_offset, build_number, NULL, NULL},
    {"tensor_leaf", 0, 1, run_tensor_leaf, build_leaf, NULL, NULL},
    {"view_made", 0, 2, run_view_made, build_view_made, NULL, NULL},
    {NULL, 0, 0, NULL, NULL, NULL, NULL},
};
