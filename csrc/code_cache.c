/* Entries per code object and capture settings, hung on the code object itself.
 *
 * The garbage collector cannot see what hangs on a code object, so nothing of the user's may be kept
 * here: settings, guard programs (which hold user objects weakly) and generated functions only.
 *
 * `entries` is a tuple that a reader keeps a reference to while it walks it. Writers put another tuple
 * in its place; only when nobody else holds it is it changed where it lies. */

#include "runtime.h"
#include "compat/compat.h"

#include <structmember.h>

static Py_ssize_t extra_index = -1;

/* --- records on code objects --------------------------------------------------------------------- */

/* Tells caches that outlive their place on the code that they are not asked any more. */
static void
drop_cache_list(GlCodeRecord *record)
{
    GlCache *cache = record->caches;
    record->caches = NULL;
    while (cache != NULL) {
        GlCache *next = cache->next;
        cache->next = NULL;
        cache->code = NULL;
        Py_DECREF(cache);
        cache = next;
    }
}

static void
release_record(void *pointer)
{
    GlCodeRecord *record = pointer;
    /* When the interpreter goes down what an entry refers to may be half gone: leave it all where it is. */
    if (record == NULL || gl_is_finalizing()) {
        return;
    }
    /* A code object may die while an exception is on its way. */
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    drop_cache_list(record);
    PyErr_Restore(type, value, traceback);
    PyMem_Free(record);
}

GlCodeRecord *
gl_code_record(PyCodeObject *code)
{
    void *record = NULL;
    if (GL_CODE_EXTRA_GET((PyObject *)code, extra_index, &record) < 0) {
        PyErr_Clear();
        return NULL;
    }
    return record;
}

GlCodeRecord *
gl_code_record_make(PyCodeObject *code)
{
    GlCodeRecord *record = gl_code_record(code);
    if (record != NULL) {
        return record;
    }
    record = PyMem_Calloc(1, sizeof(GlCodeRecord));
    if (record == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    if (GL_CODE_EXTRA_SET((PyObject *)code, extra_index, record) < 0) {
        PyMem_Free(record);
        return NULL;
    }
    return record;
}

Py_ssize_t
gl_code_nparams(PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0) +
           ((code->co_flags & CO_VARKEYWORDS) != 0);
}

/* --- finding caches ------------------------------------------------------------------------------ */

GlCache *
gl_cache_find(PyCodeObject *code, PyObject *settings)
{
    GlCodeRecord *record = gl_code_record(code);
    GlCache *cache = record == NULL ? NULL : record->caches;
    while (cache != NULL && cache->settings != settings) {
        cache = cache->next;
    }
    return cache;
}

static GlCache *
cache_make(PyCodeObject *code, PyObject *settings)
{
    PyObject *entries = PyTuple_New(0);
    GlCache *cache = entries == NULL ? NULL : PyObject_GC_New(GlCache, &GlCache_Type);
    if (cache == NULL) {
        Py_XDECREF(entries);
        return NULL;
    }
    cache->code = code;
    cache->settings = Py_NewRef(settings);
    cache->entries = entries;
    cache->next = NULL;
    cache->nparams = gl_code_nparams(code);
    cache->simple = cache->nparams == code->co_argcount;
    cache->quiet = (GlQuiet){0};
    cache->callee = NULL;
    cache->callees = cache->misses = 0;
    cache->skip = cache->plain = 0;
    PyObject_GC_Track(cache);
    return cache;
}

GlCache *
gl_cache_of(PyCodeObject *code, PyObject *settings)
{
    GlCache *cache = gl_cache_find(code, settings);
    if (cache != NULL) {
        return (GlCache *)Py_NewRef(cache);
    }
    GlCodeRecord *record = gl_code_record_make(code);
    if (record == NULL || (cache = cache_make(code, settings)) == NULL) {
        return NULL;
    }
    cache->next = record->caches;
    record->caches = (GlCache *)Py_NewRef(cache);
    return cache;
}

/* --- walking and changing entries ---------------------------------------------------------------- */

/* Puts `fresh` (taken over) in place of `seen`, unless another thread or a finalizer was quicker: an
 * allocation may run Python code. 1 done, 0 to be tried again, -1 when `fresh` is NULL. */
static int
replace_entries(GlCache *cache, PyObject *seen, PyObject *fresh)
{
    if (fresh == NULL) {
        return -1;
    }
    if (cache->entries != seen) {
        Py_DECREF(fresh);
        return 0;
    }
    Py_SETREF(cache->entries, fresh);
    return 1;
}

/* `entries` with `entry` in front and nowhere else; a new reference. */
static PyObject *
with_front(PyObject *entries, PyObject *entry)
{
    Py_ssize_t count = PyTuple_GET_SIZE(entries), found = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        found += PyTuple_GET_ITEM(entries, i) == entry;
    }
    PyObject *fresh = PyTuple_New(count + 1 - found);
    if (fresh == NULL) {
        return NULL;
    }
    PyTuple_SET_ITEM(fresh, 0, Py_NewRef(entry));
    for (Py_ssize_t from = 0, to = 1; from < count; from++) {
        PyObject *other = PyTuple_GET_ITEM(entries, from);
        if (other != entry) {
            PyTuple_SET_ITEM(fresh, to++, Py_NewRef(other));
        }
    }
    return fresh;
}

static int
put_in_front(GlCache *cache, PyObject *entry)
{
    int done = 0;
    while (done == 0) {
        PyObject *seen = Py_NewRef(cache->entries);
        done = replace_entries(cache, seen, with_front(seen, entry));
        Py_DECREF(seen);
    }
    return done;
}

/* Moves entry `at` to the front. Only an optimisation: where it cannot be done all stays as it is. */
static void
move_to_front(GlCache *cache, Py_ssize_t at)
{
    PyObject *entry = PyTuple_GET_ITEM(cache->entries, at);
    if (Py_REFCNT(cache->entries) == 1) {
        PyObject **items = ((PyTupleObject *)cache->entries)->ob_item;
        memmove(items + 1, items, (size_t)at * sizeof(PyObject *));
        items[0] = entry;
        return;
    }
    if (put_in_front(cache, entry) < 0) {
        PyErr_Clear();
    }
}

GlEntry *
gl_cache_match(GlCache *cache, PyObject *function, PyObject *const *params, PyObject **bound)
{
    PyObject *entries = Py_NewRef(cache->entries);
    GlEntry *found = NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(entries), at;
    *bound = NULL;
    for (at = 0; at < count; at++) {
        GlEntry *entry = (GlEntry *)PyTuple_GET_ITEM(entries, at);
        if (!entry->valid) {
            continue;
        }
        int holds = gl_entry_holds(entry, function, params, cache->nparams, bound);
        if (holds != 0) {
            found = holds > 0 ? (GlEntry *)Py_NewRef(entry) : NULL;
            break;
        }
    }
    int unchanged = entries == cache->entries;
    Py_DECREF(entries);
    if (found != NULL) {
        found->hits++;
        cache->misses = 0;
        if (at > 0 && unchanged) {
            move_to_front(cache, at);
        }
    }
    return found;
}

/* `entries` without `removed` and without what is not valid any more; a new reference. */
static PyObject *
without(PyObject *entries, PyObject *removed)
{
    PyObject *kept = PyList_New(0);
    for (Py_ssize_t i = 0; kept != NULL && i < PyTuple_GET_SIZE(entries); i++) {
        PyObject *entry = PyTuple_GET_ITEM(entries, i);
        if (((GlEntry *)entry)->valid && entry != removed && PyList_Append(kept, entry) < 0) {
            Py_CLEAR(kept);
        }
    }
    PyObject *fresh = kept == NULL ? NULL : PyList_AsTuple(kept);
    Py_XDECREF(kept);
    return fresh;
}

static int
take_out(GlCache *cache, PyObject *removed)
{
    int done = 0;
    while (done == 0) {
        PyObject *seen = Py_NewRef(cache->entries);
        done = replace_entries(cache, seen, without(seen, removed));
        Py_DECREF(seen);
    }
    return done < 0 ? -1 : 0;
}

int
gl_cache_prune(GlCache *cache)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cache->entries); i++) {
        if (!((GlEntry *)PyTuple_GET_ITEM(cache->entries, i))->valid) {
            return take_out(cache, NULL);
        }
    }
    return 0;
}

int
gl_cache_give_up(GlCache *cache)
{
    PyObject *nothing = PyTuple_New(0);
    if (nothing == NULL) {
        return -1;
    }
    cache->skip = 1;
    Py_SETREF(cache->entries, nothing);
    return 0;
}

/* --- the Python type ----------------------------------------------------------------------------- */

static int
check_entry(PyObject *entry)
{
    if (Py_IS_TYPE(entry, &GlEntry_Type)) {
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "an Entry is needed, not %.100s", Py_TYPE(entry)->tp_name);
    return -1;
}

static PyObject *
cache_add(GlCache *self, PyObject *entry)
{
    if (check_entry(entry) < 0 || put_in_front(self, entry) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
cache_remove(GlCache *self, PyObject *entry)
{
    if (check_entry(entry) < 0 || take_out(self, entry) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
cache_clear_entries(GlCache *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *fresh = PyTuple_New(0);
    if (fresh == NULL) {
        return NULL;
    }
    self->skip = 0;
    Py_SETREF(self->entries, fresh);
    Py_RETURN_NONE;
}

static PyObject *
cache_give_up(GlCache *self, PyObject *Py_UNUSED(ignored))
{
    if (gl_cache_give_up(self) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static int
cache_traverse(GlCache *self, visitproc visit, void *arg)
{
    Py_VISIT(self->settings);
    Py_VISIT(self->entries);
    return 0;
}

static void
cache_dealloc(GlCache *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->settings);
    Py_CLEAR(self->entries);
    PyObject_GC_Del(self);
}

static PyMethodDef methods[] = {
    {"add", (PyCFunction)(void (*)(void))cache_add, METH_O, "Put an entry in front."},
    {"remove", (PyCFunction)(void (*)(void))cache_remove, METH_O,
     "Take an entry out, if it is there, and all that are not valid any more."},
    {"clear", (PyCFunction)(void (*)(void))cache_clear_entries, METH_NOARGS,
     "Forget all entries and the skip mark."},
    {"give_up", (PyCFunction)(void (*)(void))cache_give_up, METH_NOARGS,
     "Forget all entries and capture nothing more: the original runs, hook on."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"entries", T_OBJECT, offsetof(GlCache, entries), READONLY, "the entries, newest hit first"},
    {"settings", T_OBJECT, offsetof(GlCache, settings), READONLY, "the settings it stands for"},
    {"skip", T_BOOL, offsetof(GlCache, skip), 0, "whether nothing more is captured here"},
    {"plain", T_BOOL, offsetof(GlCache, plain), 0, "whether the original never needs the hook"},
    {NULL, 0, 0, 0, NULL},
};

/* No tp_clear: a cycle through a cache also goes through an entry, which can be cleared. */
PyTypeObject GlCache_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "graphlift._C.Cache",
    .tp_doc = "The entries of one code object under one group of capture settings.",
    .tp_basicsize = sizeof(GlCache),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = (traverseproc)cache_traverse,
    .tp_dealloc = (destructor)cache_dealloc,
    .tp_methods = methods,
    .tp_members = members,
};

/* --- module functions ---------------------------------------------------------------------------- */

static PyObject *
cache_of(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *code, *settings;
    if (!PyArg_ParseTuple(args, "O!O:cache_of", &PyCode_Type, &code, &settings)) {
        return NULL;
    }
    return (PyObject *)gl_cache_of((PyCodeObject *)code, settings);
}

static PyObject *
drop_caches(PyObject *Py_UNUSED(module), PyObject *code)
{
    if (!PyCode_Check(code)) {
        PyErr_Format(PyExc_TypeError, "a code object is needed, not %.100s", Py_TYPE(code)->tp_name);
        return NULL;
    }
    GlCodeRecord *record = gl_code_record((PyCodeObject *)code);
    if (record != NULL) {
        record->quiet = (GlQuiet){0};
        drop_cache_list(record);
    }
    Py_RETURN_NONE;
}

static PyObject *
mark_skip(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"code", "skip", NULL};
    PyObject *code;
    int skip = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|p:mark_skip", names, &PyCode_Type, &code, &skip)) {
        return NULL;
    }
    GlCodeRecord *record = gl_code_record_make((PyCodeObject *)code);
    if (record == NULL) {
        return NULL;
    }
    record->skip = (char)skip;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"cache_of", cache_of, METH_VARARGS, "The cache of a code object under some settings."},
    {"drop_caches", drop_caches, METH_O, "Forget every cache of a code object."},
    {"mark_skip", (PyCFunction)(void (*)(void))mark_skip, METH_VARARGS | METH_KEYWORDS,
     "Tell the hook to pass a code object through without asking."},
    {NULL, NULL, 0, NULL},
};

int
gl_cache_init(PyObject *module)
{
    if (extra_index < 0) {
        extra_index = GL_CODE_EXTRA_REQUEST(release_record);
    }
    if (extra_index < 0) {
        PyErr_SetString(PyExc_ImportError,
                        "graphlift._C: CPython has no slot left for data on code objects.");
        return -1;
    }
    if (PyModule_AddType(module, &GlCache_Type) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
