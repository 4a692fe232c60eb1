/* _C.CompiledFunction: a callable that stands for a Python function.
 *
 * The warm call: bind arguments flat, ask the entries' guards, newest hit first, call the entry's
 * function. What a capture is and what guards say is not known here. */

#include "runtime.h"
#include "compat/compat.h"

#include <structmember.h>

/* --- what may follow when no entry holds --------------------------------------------------------- */

GlEntry *
gl_capture_answer(PyObject *answer, int *declined)
{
    *declined = answer == Py_None;
    if (answer == NULL || Py_IS_TYPE(answer, &GlEntry_Type)) {
        return (GlEntry *)answer;
    }
    if (answer != Py_None && answer != Py_NotImplemented) {
        PyErr_Format(PyExc_TypeError, "a capture must return an Entry, None or NotImplemented, not %.100s",
                     Py_TYPE(answer)->tp_name);
    }
    Py_DECREF(answer);
    return NULL;
}

/* What tells one callee from another: a function's code, else the object itself. */
static const void *
mark_of_callee(PyObject *callee)
{
    if (PyMethod_Check(callee)) {
        callee = PyMethod_GET_FUNCTION(callee);
    }
    return PyFunction_Check(callee) ? PyFunction_GET_CODE(callee) : callee;
}

/* A step that calls something else than before is not quiet any more, unless it does so all the time. */
static void
note_callee(GlCache *cache, PyObject *callee)
{
    const void *mark = mark_of_callee(callee);
    if (GL_UNLIKELY(mark != cache->callee) && cache->callees < UCHAR_MAX) {
        cache->callee = mark;
        cache->callees++;
        cache->quiet = (GlQuiet){0};
    }
}

/* Calls the original with its own frame let through and every frame below it looked at, if that has led to
 * anything lately. */
static PyObject *
call_original(GlCompiled *self, GlThread *thread, GlCache *cache, PyObject *const *params)
{
    if (self->callee_at >= 0 && self->callee_at < cache->nparams) {
        note_callee(cache, params[self->callee_at]);
    }
    if (cache->plain || gl_quiet_spend(&cache->quiet)) {
        return gl_call_spread(self->function, params);
    }
    unsigned long events = thread->events;
    Py_INCREF(cache);
    gl_region_change(thread, 1, self->context, self->settings);
    thread->let_through = self->function;
    PyObject *result = gl_call_spread(self->function, params);
    thread->let_through = NULL;
    gl_region_change(thread, 0, self->context, self->settings);
    gl_quiet_note(&cache->quiet, thread->events == events);
    Py_DECREF(cache);
    return result;
}

/* Asks for a capture, during which everything on this thread runs plainly. */
static PyObject *
ask_for_capture(GlCompiled *self, GlThread *thread, PyObject *const *params, Py_ssize_t nparams)
{
    PyObject *values = PyTuple_New(nparams);
    if (values == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < nparams; i++) {
        PyTuple_SET_ITEM(values, i, Py_NewRef(params[i]));
    }
    PyObject *args[] = {NULL, (PyObject *)self, values};
    PyObject *answer = gl_ask(thread, self->capture, args + 1, 2);
    Py_DECREF(values);
    return answer;
}

static PyObject *
run_captured(GlCompiled *self, GlThread *thread, GlCache *cache, GlEntry *entry, PyObject *const *params,
             Py_ssize_t nparams, int room)
{
    PyObject *bound = NULL;
    int holds = gl_guard_run(entry->guards, self->function, params, nparams, &bound);
    if (holds < 0) {
        return NULL;
    }
    if (!holds) {
        return gl_call_spread(self->function, params);
    }
    thread->events += entry->function != NULL;
    PyObject *result = entry->function == NULL ? call_original(self, thread, cache, params)
                                               : gl_call_entry(entry, bound, params, nparams, room);
    Py_XDECREF(bound);
    return gl_kept_by(result, entry);
}

/* Remembers that no entry fitted and no capture was wanted. Where that is the rule, the guards are not run
 * any more for this compiled function: from now on it looks into a cache that stays empty. */
static int
note_declined(GlCompiled *self, GlCache *cache)
{
    if (++self->declined < GL_USELESS_MISSES) {
        return 0;
    }
    unsigned long long hits = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cache->entries); i++) {
        hits += ((GlEntry *)PyTuple_GET_ITEM(cache->entries, i))->hits;
    }
    self->declined = 0;
    if (hits - self->hits_seen >= GL_USELESS_MISSES / 2) {
        self->hits_seen = hits;
        return 0;
    }
    /* No settings are None: the cache under it is for all that have done with this code. */
    GlCache *empty = gl_cache_of((PyCodeObject *)PyFunction_GET_CODE(self->function), Py_None);
    if (empty == NULL) {
        return -1;
    }
    empty->skip = 1;
    Py_XSETREF(self->cache, empty);
    return 0;
}

static PyObject *
run_missed(GlCompiled *self, GlThread *thread, GlCache *cache, PyObject *const *params,
           Py_ssize_t nparams, int room)
{
    if (gl_cache_prune(cache) < 0) {
        return NULL;
    }
    if (cache->skip) {
        return call_original(self, thread, cache, params);
    }
    int declined;
    GlEntry *entry = gl_capture_answer(ask_for_capture(self, thread, params, nparams), &declined);
    if (entry == NULL) {
        if (PyErr_Occurred()) {
            return NULL;
        }
        if (!declined) {
            return gl_call_spread(self->function, params);
        }
        return note_declined(self, cache) < 0 ? NULL : call_original(self, thread, cache, params);
    }
    PyObject *result = run_captured(self, thread, cache, entry, params, nparams, room);
    Py_DECREF(entry);
    return result;
}

/* --- one segment --------------------------------------------------------------------------------- */

/* The cache of the function's present code: `__code__` may have been replaced since the last call. */
static GlCache *
present_cache(GlCompiled *self)
{
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(self->function);
    if (GL_UNLIKELY(self->cache == NULL || self->cache->code != code)) {
        GlCache *cache = gl_cache_of(code, self->settings);
        if (cache == NULL) {
            return NULL;
        }
        Py_XSETREF(self->cache, cache);
    }
    return self->cache;
}

/* Runs an entry whose guards hold, in the region of a segment; takes over `entry` and `bound`. */
static inline PyObject *
run_matched(GlCompiled *self, GlThread *thread, GlCache *cache, GlEntry *entry, PyObject *bound,
            PyObject *const *params, Py_ssize_t nparams, int room)
{
    PyObject *result;
    if (gl_review_due(entry)) {
        gl_review(thread, self->function, entry);
    }
    if (GL_UNLIKELY(entry->function == NULL)) {
        result = call_original(self, thread, cache, params);
    } else if (bound == NULL) {
        result = gl_call_function(entry->function, params, nparams);
    } else {
        result = gl_call_entry(entry, bound, params, nparams, room);
        Py_DECREF(bound);
    }
    gl_kept_by(result, entry);
    Py_DECREF(entry);
    return result;
}

PyObject *
gl_compiled_segment(GlCompiled *self, GlThread *thread, PyObject *const *params, Py_ssize_t nparams, int room)
{
    GlCache *cache = (GlCache *)Py_XNewRef(present_cache(self));
    if (cache == NULL) {
        return NULL;
    }
    gl_region_change(thread, 0, self->context, self->settings);
    PyObject *bound, *result;
    GlEntry *entry;
    if (GL_UNLIKELY(gl_is_watched(gl_tstate()))) {
        /* It began behind the frame's beginning: who watches is to see the program, not a capture of it. */
        gl_region_change(thread, 1, self->context, self->settings);
        result = gl_call_spread(self->function, params);
    } else if (cache->skip && PyTuple_GET_SIZE(cache->entries) == 0) {
        result = call_original(self, thread, cache, params);
    } else if ((entry = gl_cache_match(cache, self->function, params, &bound)) != NULL) {
        thread->events += entry->worthwhile;
        result = run_matched(self, thread, cache, entry, bound, params, nparams, room);
    } else {
        result = PyErr_Occurred() ? NULL : run_missed(self, thread, cache, params, nparams, room);
    }
    Py_DECREF(cache);
    return result;
}

/* --- the call ------------------------------------------------------------------------------------ */

/* The entry that was hit last, if it is hit again: what nearly every call finds. A new reference, or NULL
 * without an error whatever went wrong: the whole cache is asked then, this entry among them. */
static inline GlEntry *
match_newest(GlCache *cache, PyObject *function, PyObject *const *params, PyObject **bound)
{
    PyObject *entries = cache->entries;
    if (PyTuple_GET_SIZE(entries) == 0) {
        return NULL;
    }
    GlEntry *entry = (GlEntry *)PyTuple_GET_ITEM(entries, 0);
    if (!entry->valid) {
        return NULL;
    }
    Py_INCREF(entry);
    if (GL_UNLIKELY(gl_entry_holds(entry, function, params, cache->nparams, bound) <= 0)) {
        PyErr_Clear();
        Py_DECREF(entry);
        return NULL;
    }
    entry->hits++;
    return entry;
}

static inline PyObject *
run_call(GlCompiled *self, GlThread *thread, PyThreadState *tstate, GlCache *cache, PyObject *const *params,
         Py_ssize_t nparams, int room)
{
    GlRegion saved = thread->region;
    PyObject *bound = NULL, *result;
    GL_C_RECURSION_CREDIT(tstate, GL_EVALUATOR_C_UNITS);
    GlEntry *entry = match_newest(cache, self->function, params, &bound);
    if (GL_UNLIKELY(entry == NULL)) {
        result = gl_compiled_segment(self, thread, params, nparams, room);
    } else {
        gl_region_change(thread, 0, self->context, self->settings);
        result = run_matched(self, thread, cache, entry, bound, params, nparams, room);
    }
    if (result != NULL && GL_UNLIKELY(Py_IS_TYPE(result, &GlJump_Type))) {
        result = gl_follow_jumps(thread, result);
    }
    GL_C_RECURSION_CREDIT(tstate, -GL_EVALUATOR_C_UNITS);
    gl_region_restore(thread, &saved);
    return result;
}

static PyObject *
bind_and_run(GlCompiled *self, GlThread *thread, PyThreadState *tstate, PyObject *const *args,
             Py_ssize_t nargs, PyObject *kwnames)
{
    GlBoundCall call;
    int fits = gl_bind_call(&call, self->function, args, nargs, kwnames);
    if (fits < 0) {
        return NULL;
    }
    if (!fits) {
        /* CPython knows best how to say what is wrong with the arguments. */
        return PyObject_Vectorcall(self->function, args, (size_t)nargs, kwnames);
    }
    /* Comparing a keyword that is a subclass of str may run anything, even replace the code. */
    GlCache *cache = present_cache(self);
    PyObject *result = NULL;
    if (GL_UNLIKELY(cache != NULL && cache->nparams != call.pinned)) {
        result = PyObject_Vectorcall(self->function, args, (size_t)nargs, kwnames);
    } else if (cache != NULL) {
        result = run_call(self, thread, tstate, cache, call.params, call.pinned, 1);
    }
    gl_bound_call_clear(&call);
    return result;
}

static PyObject *
run_plainly(GlCompiled *self, PyThreadState *tstate, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    GL_C_RECURSION_CREDIT(tstate, GL_EVALUATOR_C_UNITS);
    PyObject *result = PyObject_Vectorcall(self->function, args, nargsf, kwnames);
    GL_C_RECURSION_CREDIT(tstate, -GL_EVALUATOR_C_UNITS);
    return result;
}

static PyObject *
compiled_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    GlCompiled *self = (GlCompiled *)callable;
    GlThread *thread = &gl_thread;
    PyThreadState *tstate = gl_tstate();
    if (GL_UNLIKELY(gl_stack_check(thread) < 0)) {
        return NULL;
    }
    if (GL_UNLIKELY(gl_runs_plainly(thread) || gl_is_watched(tstate))) {
        return run_plainly(self, tstate, args, nargsf, kwnames);
    }
    GlCache *cache = present_cache(self);
    if (GL_UNLIKELY(cache == NULL)) {
        return NULL;
    }
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    int room = (nargsf & PY_VECTORCALL_ARGUMENTS_OFFSET) != 0;
    if (kwnames != NULL || !cache->simple || nargs != cache->nparams) {
        return bind_and_run(self, thread, tstate, args, nargs, kwnames);
    }
    return run_call(self, thread, tstate, cache, args, nargs, room);
}

/* --- the type ------------------------------------------------------------------------------------ */

static PyObject *
compiled_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"function", "settings", "capture", "context", "callee_at", NULL};
    PyObject *function, *settings, *capture, *context = Py_None;
    Py_ssize_t callee_at = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO|On:CompiledFunction", names, &PyFunction_Type,
                                     &function, &settings, &capture, &context, &callee_at)) {
        return NULL;
    }
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    if (callee_at < -1 || callee_at >= code->co_argcount) {
        PyErr_SetString(PyExc_ValueError, "CompiledFunction: callee_at is no positional parameter");
        return NULL;
    }
    if (!PyCallable_Check(capture)) {
        PyErr_SetString(PyExc_TypeError, "CompiledFunction: capture must be callable");
        return NULL;
    }
    GlCompiled *self = (GlCompiled *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = compiled_call;
    self->function = Py_NewRef(function);
    self->settings = Py_NewRef(settings);
    self->capture = Py_NewRef(capture);
    self->context = Py_NewRef(context);
    self->callee_at = callee_at;
    return (PyObject *)self;
}

static int
compiled_traverse(GlCompiled *self, visitproc visit, void *arg)
{
    Py_VISIT(self->function);
    Py_VISIT(self->settings);
    Py_VISIT(self->context);
    Py_VISIT(self->capture);
    Py_VISIT(self->cache);
    Py_VISIT(self->dict);
    return 0;
}

static PyObject *
call_cleared(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(args), size_t Py_UNUSED(nargsf),
             PyObject *Py_UNUSED(kwnames))
{
    PyErr_SetString(PyExc_ReferenceError,
                    "the compiled function has been taken apart by the garbage collector");
    return NULL;
}

static int
compiled_clear(GlCompiled *self)
{
    self->vectorcall = call_cleared;
    Py_CLEAR(self->function);
    Py_CLEAR(self->settings);
    Py_CLEAR(self->context);
    Py_CLEAR(self->capture);
    Py_CLEAR(self->cache);
    Py_CLEAR(self->dict);
    return 0;
}

static void
compiled_dealloc(GlCompiled *self)
{
    PyObject_GC_UnTrack(self);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    compiled_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
compiled_bind(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    if (instance == NULL || instance == Py_None) {
        return Py_NewRef(self);
    }
    return PyMethod_New(self, instance);
}

static PyObject *
compiled_repr(GlCompiled *self)
{
    if (self->function == NULL) {
        return PyUnicode_FromFormat("<compiled function at %p>", self);
    }
    PyObject *name = ((PyFunctionObject *)self->function)->func_qualname;
    return PyUnicode_FromFormat("<compiled function %U at %p>", name, self);
}

PyTypeObject GlCompiled_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "graphlift._C.CompiledFunction",
    .tp_basicsize = sizeof(GlCompiled),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = compiled_new,
    .tp_traverse = (traverseproc)compiled_traverse,
    .tp_clear = (inquiry)compiled_clear,
    .tp_dealloc = (destructor)compiled_dealloc,
    .tp_vectorcall_offset = offsetof(GlCompiled, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = compiled_bind,
    .tp_repr = (reprfunc)compiled_repr,
    .tp_getattro = gl_compiled_getattro,
    .tp_setattro = gl_compiled_setattro,
    .tp_dictoffset = offsetof(GlCompiled, dict),
    .tp_weaklistoffset = offsetof(GlCompiled, weakrefs),
    .tp_methods = gl_compiled_methods,
    .tp_getset = gl_compiled_getset,
};

int
gl_compiled_init(PyObject *module)
{
    if (gl_compiled_attributes_init() < 0) {
        return -1;
    }
    return PyModule_AddType(module, &GlCompiled_Type);
}
