/* Reading tensors without linking against torch. */

#ifndef GRAPHLIFT_TENSOR_READER_H
#define GRAPHLIFT_TENSOR_READER_H

#include <Python.h>

#include <stdint.h>

enum { GL_MAX_DIMS = 64 };

/* What guards read of a tensor. `sizes` and `strides` point into the tensor (or, where torch has to be asked through
 * Python, into `copies`) and are valid until the tensor changes. */
typedef struct {
    uint64_t keys; /* dispatch key set */
    int32_t dtype, device_type, device_index;
    int requires_grad;
    int64_t ndim;
    const int64_t *sizes;
    const int64_t *strides;
    int64_t offset; /* storage offset; -1: none */
} GlTensor;

/* Room for sizes and strides that had to be copied. */
typedef struct {
    int64_t sizes[GL_MAX_DIMS];
    int64_t strides[GL_MAX_DIMS];
} GlTensorCopies;

/* Where a tensor's data lies. */
typedef struct {
    uintptr_t storage; /* identity of the storage */
    uintptr_t data;    /* where the storage begins; 0: nowhere */
    int64_t bytes;     /* how long the storage is */
    int64_t offset;    /* of the tensor in it, in elements */
} GlPlace;

/* Whether tensors are read through torch's Python layer, which may let other threads run. */
extern int gl_tensor_fallback;

/* Whether the object is a tensor (of any class). */
int gl_is_tensor(PyObject *object);
/* Whether a class is torch's tensor class or one made from it. */
int gl_is_tensor_type(PyObject *type);
/* Whether a class is one of those whose tensors run no Python code when they are read. */
int gl_is_plain_tensor_type(PyObject *type);

/* The parts below take an object for which gl_is_tensor holds. They return 1, or 0 when torch has no plain answer (a
 * nested tensor, symbolic sizes); they leave no error set. */
int gl_tensor_read(PyObject *tensor, GlTensor *out, GlTensorCopies *copies);
int gl_tensor_place(PyObject *tensor, GlPlace *out);
/* Whether autograd has no history of it on record; asks Python where the record cannot be read. */
int gl_tensor_is_leaf(PyObject *tensor);

/* The numbers by which guards know a dtype and a device; 0, or -1 with an error set. */
int gl_tensor_codes(PyObject *dtype, PyObject *device, int32_t *dtype_code, int32_t *type, int32_t *index);

/* An address in torch's libraries, or NULL. */
void *gl_torch_symbol(const char *name);

/* What gl_tensor_read uses, for a check that stops early. Only where gl_tensor_fallback is 0. */
typedef struct {
    int32_t (*dtype)(void *handle, int32_t *out);
    int32_t (*device_type)(void *handle, int32_t *out);
    int32_t (*device_index)(void *handle, int32_t *out);
    int32_t (*layout)(void *handle, int32_t *out);
    int32_t (*dim)(void *handle, int64_t *out);
    int32_t (*sizes)(void *handle, int64_t **out);
    int32_t (*strides)(void *handle, int64_t **out);
    int32_t (*offset)(void *handle, int64_t *out);
    int32_t (*storage_bytes)(void *handle, int64_t *out);
    _Bool (*requires_grad)(const void *impl);
    Py_ssize_t slot;                        /* of at::Tensor in the Python object */
    Py_ssize_t keys;                        /* of the key set in TensorImpl */
    Py_ssize_t storage;                     /* of the StorageImpl pointer in TensorImpl; -1: unknown */
    Py_ssize_t data;                        /* of the data pointer in StorageImpl; -1: unknown */
    /* Places in TensorImpl that stand for the calls above where `raw` is set: for tensors of a plain class and of
     * strided layout, which answer from these fields. */
    int raw;
    Py_ssize_t dtype_at, device_at, geometry_at, autograd_at;
    Py_ssize_t flag_at; /* of requires_grad in the autograd metadata; -1: unknown */
} GlTensorApi;

extern GlTensorApi gl_tensor_api;

static inline void *gl_tensor_handle(PyObject *tensor) { return (char *)tensor + gl_tensor_api.slot; }
static inline const char *gl_tensor_impl(PyObject *tensor) { return *(const char **)gl_tensor_handle(tensor); }

/* c10::impl::SizesAndStrides: the number of dimensions, then sizes and strides, inline or behind a pointer. */
static inline int64_t gl_raw_geometry(const char *geometry, const int64_t **sizes, const int64_t **strides)
{
    enum { INLINE_DIMS = 5 };
    int64_t ndim = *(const int64_t *)geometry;
    const int64_t *numbers = (const int64_t *)geometry + 1;
    if (ndim <= INLINE_DIMS) {
        *sizes = numbers;
        *strides = numbers + INLINE_DIMS;
    } else {
        *sizes = *(const int64_t *const *)numbers;
        *strides = *sizes + ndim;
    }
    return ndim;
}

/* A tensor without autograd metadata requires no gradient; one whose own flag is set does, and others may by their
 * history. */
static inline int gl_raw_requires_grad(const char *impl)
{
    const uint8_t *autograd = *(const uint8_t *const *)(impl + gl_tensor_api.autograd_at);
    if (autograd == NULL) {
        return 0;
    }
    if (gl_tensor_api.flag_at >= 0 && autograd[gl_tensor_api.flag_at] == 1) {
        return 1;
    }
    return gl_tensor_api.requires_grad(impl);
}

#endif
