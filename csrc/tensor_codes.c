/* Numbers for dtypes, device types and layouts: torch's own where its functions were asked, else new ones from the end;
 * and the one object that stands for each. */

#include "tensor_parts.h"

enum { CODES = 128, DEVICES = 64 };

typedef struct {
    PyObject *objects[CODES];
} Codes;

static Codes dtypes, layouts, device_types; /* the last: names */

static int32_t find_code(Codes *codes, PyObject *object)
{
    for (int32_t i = 0; i < CODES; i++) {
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
    for (int32_t i = CODES - 1; code < 0 && i >= 0; i--) {
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
    if (code < 0 || code >= CODES) {
        return 0;
    }
    if (codes->objects[code] == NULL && find_code(codes, object) < 0) {
        codes->objects[code] = Py_NewRef(object);
    }
    return codes->objects[code] == object;
}

/* --- device objects, one for each (type, index) --- */

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

/* --- for the reader --- */

int32_t gl_code_of_dtype(PyObject *dtype) { return code_of(&dtypes, dtype); }

static PyObject *object_of(const Codes *codes, int32_t code)
{
    return code >= 0 && code < CODES ? codes->objects[code] : NULL;
}

PyObject *gl_dtype_of_code(int32_t code) { return object_of(&dtypes, code); }
PyObject *gl_layout_of_code(int32_t code) { return object_of(&layouts, code); }
PyObject *gl_device_of_codes(int32_t type, int32_t index) { return known_device(type, index); }

int gl_bind_codes(PyObject *fields, int32_t dtype, int32_t layout, int32_t type, int32_t index)
{
    PyObject *device = PyTuple_GET_ITEM(fields, DEVICE);
    PyObject *name = PyObject_GetAttrString(device, "type");
    if (name == NULL || !PyUnicode_CheckExact(name)) {
        Py_XDECREF(name);
        return 0;
    }
    PyUnicode_InternInPlace(&name);
    int good = bind_code(&dtypes, dtype, PyTuple_GET_ITEM(fields, DTYPE)) &&
               bind_code(&layouts, layout, PyTuple_GET_ITEM(fields, LAYOUT)) && bind_code(&device_types, type, name);
    if (good) {
        remember_device(type, index, device);
    }
    Py_DECREF(name);
    return good;
}
