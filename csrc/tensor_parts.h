/* What the files of the tensor reader share; nobody else's business. */

#ifndef GRAPHLIFT_TENSOR_PARTS_H
#define GRAPHLIFT_TENSOR_PARTS_H

#include "tensor_reader.h"

/* Where things stand in the tuple that read_metadata and the Python reader give. */
enum { DTYPE, DEVICE, LAYOUT, KEYS, REQUIRES_GRAD, IS_LEAF, SIZES, STRIDES, OFFSET, FIELDS };

/* --- tensor_codes.c: small numbers for dtypes, device types and layouts, and the objects they stand for --- */

int32_t gl_code_of_dtype(PyObject *dtype);
/* The object a code stands for; NULL: none yet. */
PyObject *gl_dtype_of_code(int32_t code);
PyObject *gl_layout_of_code(int32_t code);
PyObject *gl_device_of_codes(int32_t type, int32_t index);
/* Binds what torch's functions give to the objects that Python shows; 0 when a code already means another. */
int gl_bind_codes(PyObject *fields, int32_t dtype, int32_t layout, int32_t type, int32_t index);

/* --- tensor_reader.c --- */

extern PyObject *gl_tensor_type; /* torch's tensor class in C */

/* What the Python reader says of a tensor, checked for its form; NULL with an error set. */
PyObject *gl_tensor_ask(PyObject *tensor);
int gl_tensor_take_fields(PyObject *fields, GlTensor *out, GlTensorCopies *copies);
int gl_tensor_read_directly(PyObject *tensor, GlTensor *out);
int gl_tensor_place_through_python(PyObject *tensor, GlPlace *out);

/* --- tensor_layout.c --- */

/* Fills gl_tensor_api in. Why the shims cannot be used, or NULL. */
const char *gl_tensor_learn(PyObject *samples);
/* Binds the codes that the shims give for a tensor to the objects in `fields`; 0 on contradiction. */
int gl_tensor_learn_codes(PyObject *tensor, PyObject *fields);

#endif
