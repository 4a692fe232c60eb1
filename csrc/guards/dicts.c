/* Reading dictionaries and containers from beneath: no method of a subclass, no `__eq__` of a key is ever called. */

#include "node.h"
#include "../compat/layouts.h"

enum { PERTURB_SHIFT = 5 }; /* as in Objects/dictobject.c */

/* --- keys --- */

int gl_key_init(GlKey *key, PyObject *held)
{
    PyObject *object = gl_held(held);
    if (object == NULL) {
        PyErr_SetString(PyExc_ValueError, "a dictionary key of a guard is gone already");
        return -1;
    }
    key->held = Py_NewRef(held);
    key->hash = -1;
    key->hint = 0;
    key->by_identity = !gl_is_constant(object);
    if (!key->by_identity || Py_TYPE(object)->tp_hash == PyBaseObject_Type.tp_hash) {
        key->hash = PyObject_Hash(object);
        if (key->hash == -1) {
            Py_CLEAR(key->held);
            return -1;
        }
    }
    return 0;
}

/* Whether looking `wanted` up could take `stored` for it, both having the same hash and not being one object. */
static GlFound compare_keys(const GlKey *key, PyObject *wanted, PyObject *stored)
{
    richcmpfunc plain = PyBaseObject_Type.tp_richcompare;
    if (!key->by_identity && gl_is_constant(stored)) {
        int equal = PyObject_RichCompareBool(stored, wanted, Py_EQ);
        if (equal < 0) {
            PyErr_Clear();
        }
        return equal < 0 ? GL_UNSURE : equal ? GL_FOUND : GL_ABSENT;
    }
    if (Py_TYPE(stored)->tp_richcompare == plain &&
        (!key->by_identity || Py_TYPE(wanted)->tp_richcompare == plain)) {
        return GL_ABSENT; /* these equal themselves only */
    }
    return GL_UNSURE;
}

/* Mirrors the probing of dictobject.c for a table with keys of any kind. */
static GlFound find_in_general_table(PyDictObject *dict, const GlKey *key, PyObject *wanted, PyObject **value)
{
    PyDictKeysObject *keys = dict->ma_keys;
    PyDictKeyEntry *entries = DK_ENTRIES(keys);
    size_t mask = ((size_t)1 << keys->dk_log2_size) - 1;
    size_t perturb = (size_t)key->hash, at = (size_t)key->hash & mask;
    for (;;) {
        Py_ssize_t index = gl_dict_index(keys, at);
        if (index == -1) {
            return GL_ABSENT;
        }
        if (index >= 0) {
            PyDictKeyEntry *entry = &entries[index];
            GlFound found = GL_ABSENT;
            if (entry->me_key == wanted) {
                found = GL_FOUND;
            } else if (entry->me_key != NULL && entry->me_hash == key->hash) {
                found = compare_keys(key, wanted, entry->me_key);
            }
            if (found != GL_ABSENT) {
                *value = entry->me_value;
                return found;
            }
        }
        perturb >>= PERTURB_SHIFT;
        at = (at * 5 + perturb + 1) & mask;
    }
}

/* A key whose hash only the user's code tells. It is absent where no comparison could find it, whatever it says. */
static GlFound find_by_identity(PyObject *dict, const GlKey *key, PyObject *wanted, PyObject **value)
{
    Py_ssize_t at = 0;
    PyObject *stored;
    int plain = Py_TYPE(wanted)->tp_richcompare == PyBaseObject_Type.tp_richcompare, sure = 1;
    while (PyDict_Next(dict, &at, &stored, value)) {
        if (stored == wanted) {
            return GL_FOUND;
        }
        sure = sure && ((plain && gl_is_constant(stored)) || compare_keys(key, wanted, stored) == GL_ABSENT);
    }
    return sure ? GL_ABSENT : GL_UNSURE;
}

/* By the identity of an interned string, which is how namespaces are looked up; NULL: look properly. */
static PyObject *find_very_string(PyDictObject *dict, GlKey *key, PyObject *wanted)
{
    PyDictKeysObject *keys = dict->ma_keys;
    size_t mask = ((size_t)1 << keys->dk_log2_size) - 1;
    size_t perturb = (size_t)key->hash, at = (size_t)key->hash & mask;
    for (;;) {
        Py_ssize_t index = gl_dict_index(keys, at);
        if (index == -1) {
            return NULL;
        }
        PyObject *value = index >= 0 ? gl_string_entry(dict, index, wanted) : NULL;
        if (value != NULL) {
            key->hint = index;
            return value;
        }
        perturb >>= PERTURB_SHIFT;
        at = (at * 5 + perturb + 1) & mask;
    }
}

GlFound gl_dict_find(PyObject *dict, GlKey *key, PyObject **value)
{
    *value = gl_string_entry((PyDictObject *)dict, key->hint, key->held);
    if (*value != NULL) {
        return GL_FOUND;
    }
    PyObject *wanted = gl_held(key->held);
    if (wanted == NULL) {
        return GL_UNSURE;
    }
    if (key->hash == -1) {
        return find_by_identity(dict, key, wanted, value);
    }
    if (!gl_dict_has_only_strings((PyDictObject *)dict)) {
        return find_in_general_table((PyDictObject *)dict, key, wanted, value);
    }
    if (!PyUnicode_CheckExact(wanted)) {
        /* No string equals a constant of another type, or an object that equals itself only. */
        int plain = Py_TYPE(wanted)->tp_richcompare == PyBaseObject_Type.tp_richcompare;
        return key->by_identity && !plain ? GL_UNSURE : GL_ABSENT;
    }
    *value = find_very_string((PyDictObject *)dict, key, wanted);
    if (*value == NULL) {
        *value = _PyDict_GetItem_KnownHash(dict, wanted, key->hash);
    }
    if (*value == NULL) {
        PyErr_Clear();
        return GL_ABSENT;
    }
    return GL_FOUND;
}

/* --- order --- */

static int each_ordered_key(PyObject *dict, int (*visit)(PyObject *, void *), void *context)
{
    /* The order of an OrderedDict is kept beside the table and told by its own C iterator only. */
    int enabled = PyGC_Disable();
    PyObject *iterator = PyODict_Type.tp_iter(dict);
    int result = iterator != NULL;
    PyObject *key;
    while (result && (key = Py_TYPE(iterator)->tp_iternext(iterator)) != NULL) {
        result = visit(key, context);
        Py_DECREF(key); /* the dictionary holds it as well */
    }
    if (PyErr_Occurred()) {
        PyErr_Clear();
        result = 0;
    }
    Py_XDECREF(iterator);
    if (enabled) {
        PyGC_Enable();
    }
    return result;
}

int gl_is_quiet_order(PyObject *dict)
{
    Py_ssize_t at = 0;
    PyObject *key;
    if (!PyObject_TypeCheck(dict, &PyODict_Type)) {
        return 1;
    }
    while (PyDict_Next(dict, &at, &key, NULL)) {
        if (!gl_is_constant(key) && Py_TYPE(key)->tp_hash != PyBaseObject_Type.tp_hash) {
            return 0;
        }
    }
    return 1;
}

int gl_dict_each_key(PyObject *dict, int (*visit)(PyObject *key, void *context), void *context)
{
    if (PyObject_TypeCheck(dict, &PyODict_Type)) {
        return PyDict_GET_SIZE(dict) == 0 ? 1 : each_ordered_key(dict, visit, context);
    }
    Py_ssize_t at = 0;
    PyObject *key;
    while (PyDict_Next(dict, &at, &key, NULL)) {
        if (!visit(key, context)) {
            return 0;
        }
    }
    return 1;
}

/* --- instance dictionaries --- */

PyObject *gl_instance_dict(PyObject *object, int create)
{
    PyObject *dict = gl_made_dict(object);
    if (dict != NULL) {
        return PyDict_Check(dict) ? dict : NULL;
    }
    /* Making it allocates; on 3.11 an allocation may start a collection, and that runs finalizers. */
    int enabled = PyGC_Disable();
    PyObject **slot = _PyObject_GetDictPtr(object);
    dict = slot == NULL ? NULL : *slot;
    if (slot != NULL && dict == NULL && create) {
        dict = PyObject_GenericGetDict(object, NULL);
        if (dict == NULL) {
            PyErr_Clear();
        } else {
            Py_DECREF(dict); /* the object holds it */
        }
    }
    if (enabled) {
        PyGC_Enable();
    }
    return dict != NULL && PyDict_Check(dict) ? dict : NULL;
}

PyObject **gl_instance_dict_slot(PyObject *object)
{
    PyObject **slot;
    if (PyType_Check(object)) {
        return NULL; /* a static one has it elsewhere from 3.12 on */
    }
    if (gl_made_dict(object) != NULL) {
        slot = gl_made_dict_slot(object);
    } else if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
        return NULL;
    } else {
        slot = _PyObject_GetDictPtr(object);
    }
    return slot != NULL && *slot != NULL ? slot : NULL;
}

Py_ssize_t gl_length(PyObject *object)
{
    if (PyList_Check(object) || PyTuple_Check(object)) {
        return Py_SIZE(object);
    }
    if (PyDict_Check(object)) {
        return PyDict_GET_SIZE(object);
    }
    PyTypeObject *type = Py_TYPE(object);
    while (!gl_is_c_type(type)) {
        type = type->tp_base; /* down to the C type whose storage this is */
    }
    lenfunc length = type->tp_as_sequence ? type->tp_as_sequence->sq_length : NULL;
    if (length == NULL && type->tp_as_mapping != NULL) {
        length = type->tp_as_mapping->mp_length;
    }
    Py_ssize_t size = length == NULL ? -1 : length(object);
    if (size < 0) {
        PyErr_Clear();
    }
    return size;
}
