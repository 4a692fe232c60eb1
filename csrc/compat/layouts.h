/* Layouts of CPython objects that have no public reader: the hash table of a dict, and the built-in iterators.
 * The readers are tried on objects of known content at import, so that a Python that moved a field refuses to load
 * instead of reading nonsense. */

#ifndef GRAPHLIFT_COMPAT_LAYOUTS_H
#define GRAPHLIFT_COMPAT_LAYOUTS_H

#include <Python.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#undef _PyGC_FINALIZED /* a public macro on 3.12 that the internal headers define as a function */
#define Py_BUILD_CORE
#include <internal/pycore_dict.h>
#include <internal/pycore_list.h>
#include <internal/pycore_tuple.h>
#if PY_VERSION_HEX >= 0x030C0000
#include <internal/pycore_range.h>
#endif
#undef Py_BUILD_CORE
#pragma GCC diagnostic pop

#if PY_VERSION_HEX < 0x030C0000
typedef struct {
    PyObject_HEAD
    Py_ssize_t it_index;
    PyTupleObject *it_seq;
} _PyTupleIterObject;
typedef struct {
    PyObject_HEAD
    Py_ssize_t it_index;
    PyListObject *it_seq;
} _PyListIterObject;
typedef struct {
    PyObject_HEAD
    long index;
    long start;
    long step;
    long len;
} _PyRangeIterObject;
#endif

/* In an internal header only on 3.13. */
PyAPI_FUNC(int) _PySet_NextEntry(PyObject *set, Py_ssize_t *at, PyObject **key, Py_hash_t *hash);

/* What `reversed` gives for a sequence without a `__reversed__` of its own. */
typedef struct {
    PyObject_HEAD
    Py_ssize_t index;
    PyObject *sequence; /* NULL when used up */
} GlReversed;

/* What is left of a range iterator. */
static inline void gl_range_left(_PyRangeIterObject *it, long *start, long *step, long *left)
{
#if PY_VERSION_HEX >= 0x030C0000
    *start = it->start;
    *left = it->len;
#else
    *start = it->start + it->index * it->step;
    *left = it->len - it->index;
#endif
    *step = it->step;
}

/* Iterators over keys, values and items of a dict. */
typedef struct {
    PyObject_HEAD
    PyDictObject *dict; /* NULL when used up */
    Py_ssize_t used;
    Py_ssize_t position;
    PyObject *result;
    Py_ssize_t left;
} GlDictIter;

/* Tables whose keys are all exact strings are looked up by CPython without calling anything. */
static inline int gl_dict_has_only_strings(PyDictObject *dict) { return DK_IS_UNICODE(dict->ma_keys); }

/* The instance dictionary of an object whose class lets CPython manage it, if it has been made: it lies in front of
 * the object, and while there are only inline values 3.12 puts a pointer with its lowest bit set there. */
static inline PyObject **gl_made_dict_slot(PyObject *object)
{
    enum { MANAGED_DICT = -3 };
    return &((PyObject **)object)[MANAGED_DICT];
}

static inline PyObject *gl_made_dict(PyObject *object)
{
    PyObject *dict = NULL;
    if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
        dict = *gl_made_dict_slot(object);
    }
    return (uintptr_t)dict & 1 ? NULL : dict;
}

/* A number that another state of a dictionary never has: each change that is seen to gives it a new one of a counter
 * of the process. From 3.12 on the lowest bits belong to others. */
#if PY_VERSION_HEX >= 0x030D0000
#define GL_DICT_VERSION_MASK (~(uint64_t)0xFFF)
#elif PY_VERSION_HEX >= 0x030C0000
#define GL_DICT_VERSION_MASK (~(uint64_t)0xFF)
#else
#define GL_DICT_VERSION_MASK (~(uint64_t)0)
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static inline const uint64_t *gl_dict_version(PyObject *dict) { return &((PyDictObject *)dict)->ma_version_tag; }
#pragma GCC diagnostic pop

/* Whether the values lie where the owner of the dictionary keeps its attributes: 3.13.0 changes them there without a
 * new version. */
static inline int gl_dict_shares_values(PyObject *dict) { return ((PyDictObject *)dict)->ma_values != NULL; }

/* The value of entry number `at` in a table of strings, if its key is this very object; else NULL. */
static inline PyObject *gl_string_entry(PyDictObject *dict, Py_ssize_t at, PyObject *key)
{
    PyDictKeysObject *keys = dict->ma_keys;
    if (at >= keys->dk_nentries || !DK_IS_UNICODE(keys)) {
        return NULL;
    }
    PyDictUnicodeEntry *entry = &DK_UNICODE_ENTRIES(keys)[at];
    if (entry->me_key != key) {
        return NULL;
    }
    return dict->ma_values ? dict->ma_values->values[at] : entry->me_value;
}

/* Where a dictionary that shares its values keeps that of a key (this very string, interned); NULL: it has no such key. */
static inline PyObject **gl_shared_value_at(PyObject *object, PyObject *key)
{
    PyDictObject *dict = (PyDictObject *)object;
    PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(dict->ma_keys);
    for (Py_ssize_t i = 0; i < dict->ma_keys->dk_nentries; i++) {
        if (entries[i].me_key == key || PyUnicode_Compare(entries[i].me_key, key) == 0) {
            return &dict->ma_values->values[i];
        }
    }
    return NULL;
}

/* Where a dictionary with strings for keys keeps the value of one (`hint`: the entry to look at first), or NULL. */
static inline PyObject **gl_value_place(PyObject *object, PyObject *key, Py_ssize_t hint)
{
    PyDictObject *dict = (PyDictObject *)object;
    PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(dict->ma_keys);
    Py_ssize_t count = dict->ma_keys->dk_nentries, at = hint;
    if (!PyUnicode_CheckExact(key)) {
        return NULL;
    }
    if (at >= count || entries[at].me_key != key) {
        for (at = 0; at < count; at++) {
            PyObject *stored = entries[at].me_key;
            if (stored == key || (stored != NULL && PyUnicode_Compare(stored, key) == 0)) {
                break;
            }
        }
    }
    if (at >= count) {
        return NULL;
    }
    return dict->ma_values ? &dict->ma_values->values[at] : &entries[at].me_value;
}

/* Entry number `at` of the probe sequence of a general table; see lookdict_index. */
static inline Py_ssize_t gl_dict_index(PyDictKeysObject *keys, size_t at)
{
    switch (keys->dk_log2_index_bytes - keys->dk_log2_size) {
    case 0:
        return ((const int8_t *)keys->dk_indices)[at];
    case 1:
        return ((const int16_t *)keys->dk_indices)[at];
    case 2:
        return ((const int32_t *)keys->dk_indices)[at];
    default:
        return (Py_ssize_t)((const int64_t *)keys->dk_indices)[at];
    }
}

/* The next key of a dict with its value, and the hash that the table keeps for it. */
static inline int gl_dict_next(PyObject *dict, Py_ssize_t *at, PyObject **key, PyObject **value, Py_hash_t *hash)
{
    if (!PyDict_Next(dict, at, key, value)) {
        return 0;
    }
    PyDictKeysObject *keys = ((PyDictObject *)dict)->ma_keys;
    *hash = DK_IS_UNICODE(keys) ? PyObject_Hash(*key) : DK_ENTRIES(keys)[*at - 1].me_hash;
    return 1;
}

#endif
