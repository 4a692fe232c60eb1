/* Storing keys whose `__hash__` and `__eq__` the captured program ran already: neither is run a second time.
 *
 * While one call of a C function lasts, the classes of the keys answer with the known hashes, and say that no two keys
 * are equal: keys that the program found equal are one object here. Nothing else can run meanwhile: the thread holds the
 * GIL, the function is C and is handed nothing that it would let go, and the collector is off. */

#include "runtime.h"

#include "compat/layouts.h"

static PyObject *const *the_keys;
static PyObject *const *the_hashes;
static Py_ssize_t key_count;

static Py_hash_t known_hash(PyObject *key)
{
    for (Py_ssize_t i = 0; i < key_count; i++) {
        if (the_keys[i] == key) {
            return PyLong_AsSsize_t(the_hashes[i]);
        }
    }
    PyErr_SetString(PyExc_SystemError, "a key whose hash is not known");
    return -1;
}

static PyObject *never_equal(PyObject *Py_UNUSED(left), PyObject *Py_UNUSED(right), int Py_UNUSED(op))
{
    Py_RETURN_FALSE;
}

typedef struct {
    PyTypeObject *type;
    hashfunc hash;
    richcmpfunc compare;
} Slots;

static PyObject *call_with_slots(PyObject *function, PyObject *args, PyObject *keys, PyObject *hashes, Slots *saved)
{
    Py_ssize_t count = PyTuple_GET_SIZE(keys);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyTypeObject *type = Py_TYPE(PyTuple_GET_ITEM(keys, i));
        saved[i] = (Slots){type, type->tp_hash, type->tp_richcompare};
        type->tp_hash = known_hash;
        type->tp_richcompare = never_equal;
    }
    the_keys = ((PyTupleObject *)keys)->ob_item;
    the_hashes = ((PyTupleObject *)hashes)->ob_item;
    key_count = count;
    PyObject *result = PyObject_Call(function, args, NULL);
    key_count = 0;
    while (count-- > 0) { /* backwards, so that what was saved first of a class comes last */
        saved[count].type->tp_hash = saved[count].hash;
        saved[count].type->tp_richcompare = saved[count].compare;
    }
    return result;
}

static PyObject *call_hashed(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *function, *args, *keys, *hashes;
    if (!PyArg_ParseTuple(arguments, "OO!O!O!", &function, &PyTuple_Type, &args, &PyTuple_Type, &keys, &PyTuple_Type,
                          &hashes)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(keys) != PyTuple_GET_SIZE(hashes)) {
        PyErr_SetString(PyExc_ValueError, "a hash is needed for each key");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); i++) {
        if (!PyType_HasFeature(Py_TYPE(PyTuple_GET_ITEM(keys, i)), Py_TPFLAGS_HEAPTYPE)) {
            PyErr_SetString(PyExc_TypeError, "only classes written in Python have a hash of the program's");
            return NULL;
        }
    }
    Slots *saved = PyMem_New(Slots, PyTuple_GET_SIZE(keys) + 1);
    if (saved == NULL) {
        return PyErr_NoMemory();
    }
    int enabled = PyGC_Disable();
    PyObject *result = call_with_slots(function, args, keys, hashes, saved);
    if (enabled) {
        PyGC_Enable();
    }
    PyMem_Free(saved);
    return result;
}

static int add_pair(PyObject *list, PyObject *key, Py_hash_t hash)
{
    PyObject *pair = Py_BuildValue("On", key, hash);
    int failed = pair == NULL || PyList_Append(list, pair) < 0;
    Py_XDECREF(pair);
    return failed ? -1 : 0;
}

static PyObject *stored_hashes(PyObject *Py_UNUSED(module), PyObject *container)
{
    Py_ssize_t at = 0;
    PyObject *key, *value, *list = PyList_New(0);
    Py_hash_t hash;
    int failed = list == NULL;
    if (PyDict_Check(container)) {
        while (!failed && gl_dict_next(container, &at, &key, &value, &hash)) {
            failed = add_pair(list, key, hash);
        }
    } else if (PyAnySet_Check(container)) {
        while (!failed && _PySet_NextEntry(container, &at, &key, &hash)) {
            failed = add_pair(list, key, hash);
        }
    } else if (!failed) {
        PyErr_SetString(PyExc_TypeError, "only dictionaries and sets keep hashes");
        failed = 1;
    }
    if (failed) {
        Py_CLEAR(list);
    }
    return list;
}

static PyMethodDef functions[] = {
    {"call_hashed", call_hashed, METH_VARARGS,
     "call_hashed(function, args, keys, hashes)\n\nCall a C function while `keys`, objects of classes written in Python, "
     "have these hashes and equal only themselves."},
    {"stored_hashes", stored_hashes, METH_O,
     "stored_hashes(container) -> list\n\n(key, hash) as a dictionary or set keeps them, in the order of its table."},
    {NULL, NULL, 0, NULL},
};

int gl_known_hashes_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
