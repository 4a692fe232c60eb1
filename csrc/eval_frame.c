/* The PEP 523 hook: where it is installed, which frames it looks at, what runs in them.
 *
 * Installing is counted; each thread that runs hooked, or has a frame callback of its own, is one reason.
 * Who is asked (a library user's callback, then the cache, then the frame handler) is decided here; what a
 * callback is and does is frame_callback.c's, how code gets into a frame is frame_swap.c's. */

#include "frame_swap.h"

/* --- installing ------------------------------------------------------------------------------------ */

static PyObject *evaluate(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag);

static Py_ssize_t reasons = 0;
static _PyFrameEvalFunction beneath = _PyEval_EvalFrameDefault; /* whom frames that we pass through go to */
static int buried = 0; /* somebody was on top when we left: ours may still be called from there */
static PyObject *frame_handler = NULL;

static _PyFrameEvalFunction
present_evaluator(void)
{
    return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Main());
}

void
gl_hook_acquire(void)
{
    if (reasons++ > 0) {
        return;
    }
    _PyFrameEvalFunction present = present_evaluator();
    if (present == evaluate) {
        return; /* left in place, and uncovered again since */
    }
    if (buried && present != _PyEval_EvalFrameDefault) {
        return; /* still called from above; to install on top would make a ring */
    }
    buried = 0;
    beneath = present;
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Main(), evaluate);
}

void
gl_hook_release(void)
{
    if (--reasons > 0) {
        return;
    }
    if (present_evaluator() == evaluate) {
        _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Main(), beneath);
        buried = 0;
    } else {
        buried = 1;
    }
}

/* --- looking at a frame ---------------------------------------------------------------------------- */

static PyObject *
pass_through(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    GL_C_RECURSION_CREDIT(tstate, GL_EVALUATOR_C_UNITS);
    PyObject *result = beneath(tstate, frame, throwflag);
    GL_C_RECURSION_CREDIT(tstate, -GL_EVALUATOR_C_UNITS);
    return result;
}

static PyObject *
tuple_of_params(_PyInterpreterFrame *frame, Py_ssize_t nparams)
{
    PyObject *params = PyTuple_New(nparams);
    for (Py_ssize_t i = 0; params != NULL && i < nparams; i++) {
        PyTuple_SET_ITEM(params, i, Py_NewRef(frame->localsplus[i]));
    }
    return params;
}

/* Runs an entry whose guards hold in the frame; takes over `bound`. */
static PyObject *
run_entry(PyThreadState *tstate, GlThread *thread, _PyInterpreterFrame *frame, GlEntry *entry,
          PyObject *bound)
{
    if (entry->function == NULL) {
        Py_XDECREF(bound);
        return pass_through(tstate, frame, 0);
    }
    GlRegion saved = thread->region;
    PyCodeObject *code = gl_frame_code(frame), *swap = (PyCodeObject *)entry->swap_code;
    Py_ssize_t nparams = gl_code_nparams(code);
    PyObject *result;
    gl_region_change(thread, 0, saved.context, saved.settings);
    if (swap != NULL && gl_swap_objection(code, swap) == NULL &&
        (bound == NULL || swap->co_nlocals > nparams) && gl_frame_make_room(tstate, frame, swap)) {
        result = gl_frame_run_code(tstate, frame, swap, bound);
        if (result != NULL && Py_IS_TYPE(result, &GlJump_Type)) {
            gl_frame_release_locals(frame);
        }
    } else {
        result = gl_call_entry(entry, bound, frame->localsplus, nparams, 0);
        Py_XDECREF(bound);
        result = gl_frame_finish(tstate, frame, result);
    }
    if (result != NULL && Py_IS_TYPE(result, &GlJump_Type)) {
        result = gl_follow_jumps(thread, result);
    }
    gl_region_restore(thread, &saved);
    return result;
}

/* Asks the handler about a frame; everything on this thread runs plainly meanwhile. */
static PyObject *
ask_handler(GlThread *thread, PyObject *function, PyObject *params)
{
    PyObject *args[] = {NULL, thread->region.context, function, params};
    return gl_ask(thread, frame_handler, args + 1, 3);
}

/* What to run in a frame that no entry of its cache fits. The entry's guards, if one comes back, hold.
 * `*hook_off` is set where the answer was NotImplemented: nothing that runs in the frame is to be looked at. */
static GlEntry *
capture_frame(GlThread *thread, _PyInterpreterFrame *frame, GlCache *cache, PyObject **bound, int *hook_off)
{
    PyObject *function = gl_frame_function(frame);
    PyObject *params = gl_cache_prune(cache) < 0 ? NULL : tuple_of_params(frame, cache->nparams);
    if (params == NULL) {
        return NULL;
    }
    int declined;
    GlEntry *entry = gl_capture_answer(ask_handler(thread, function, params), &declined);
    Py_DECREF(params);
    if (entry == NULL) {
        cache->skip |= declined && !PyErr_Occurred();
        *hook_off = !declined;
        return NULL;
    }
    thread->events += entry->function != NULL;
    int holds = gl_guard_run(entry->guards, function, frame->localsplus, cache->nparams, bound);
    if (holds <= 0) {
        Py_CLEAR(entry);
    }
    return entry;
}

/* The same, where something may be captured. Where not, and the entries never fit, they are let go. */
static GlEntry *
missed_frame(GlThread *thread, _PyInterpreterFrame *frame, GlCache *cache, PyObject **bound, int *hook_off)
{
    if (!cache->skip) {
        return frame_handler == NULL ? NULL : capture_frame(thread, frame, cache, bound, hook_off);
    }
    if (PyTuple_GET_SIZE(cache->entries) > 0 && ++cache->misses >= GL_USELESS_MISSES) {
        gl_cache_give_up(cache);
    }
    return NULL;
}

/* Runs a frame, and what is called in it, with the hook off. */
static PyObject *
run_unhooked(PyThreadState *tstate, GlThread *thread, _PyInterpreterFrame *frame)
{
    GlRegion saved = thread->region;
    gl_region_change(thread, 0, saved.context, saved.settings);
    PyObject *result = pass_through(tstate, frame, 0);
    gl_region_restore(thread, &saved);
    return result;
}

static PyObject *
run_under_settings(PyThreadState *tstate, GlThread *thread, _PyInterpreterFrame *frame)
{
    GlCache *cache = gl_cache_of(gl_frame_code(frame), thread->region.settings);
    if (cache == NULL) {
        return gl_frame_finish(tstate, frame, NULL);
    }
    PyObject *bound = NULL;
    int hook_off = 0;
    GlEntry *entry = gl_cache_match(cache, gl_frame_function(frame), frame->localsplus, &bound);
    if (entry != NULL) {
        thread->events += entry->worthwhile;
        if (gl_review_due(entry)) {
            gl_review(thread, gl_frame_function(frame), entry);
        }
    } else if (!PyErr_Occurred()) {
        entry = missed_frame(thread, frame, cache, &bound, &hook_off);
    }
    Py_DECREF(cache);
    if (entry == NULL) {
        if (PyErr_Occurred()) {
            return gl_frame_finish(tstate, frame, NULL);
        }
        return hook_off ? run_unhooked(tstate, thread, frame) : pass_through(tstate, frame, 0);
    }
    PyObject *result = run_entry(tstate, thread, frame, entry, bound);
    Py_DECREF(entry);
    return result;
}

/* --- the evaluator --------------------------------------------------------------------------------- */

/* Frames that may be looked at: a function's own, from its start, not a generator's. */
static int
is_candidate(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    enum {
        WANTED = CO_OPTIMIZED | CO_NEWLOCALS,
        UNWANTED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE,
    };
    if (throwflag || frame->owner != FRAME_OWNED_BY_THREAD || frame->f_locals != NULL || tstate->tracing) {
        return 0;
    }
    PyCodeObject *code = gl_frame_code(frame);
    if ((code->co_flags & (WANTED | UNWANTED)) != WANTED) {
        return 0;
    }
    GlCodeRecord *record = gl_code_record(code);
    return record == NULL || !record->skip;
}

static PyObject *name_del;

/* Frames that are looked at under the settings of the compiled call they run in. */
static int
is_under_settings(PyThreadState *tstate, GlThread *thread)
{
    return thread->region.hooked && !gl_bypass && !gl_is_watched(tstate); /* who watches sees all frames */
}

static PyObject *
evaluate_candidate(PyThreadState *tstate, GlThread *thread, _PyInterpreterFrame *frame)
{
    PyObject *result;
    if (thread->callback != NULL && gl_callback_evaluate(tstate, thread, frame, &result)) {
        return result;
    }
    if (!is_under_settings(tstate, thread)) {
        return pass_through(tstate, frame, 0);
    }
    /* A finalizer, and what it calls, runs wherever it happens to: no place of the program's. */
    int unasked = gl_frame_code(frame)->co_name == name_del;
    return unasked ? run_unhooked(tstate, thread, frame) : run_under_settings(tstate, thread, frame);
}

static PyObject *
evaluate(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    GlThread *thread = &gl_thread;
    if (thread->let_through != NULL && thread->let_through == gl_frame_function(frame)) {
        thread->let_through = NULL;
        return pass_through(tstate, frame, throwflag);
    }
    if (frame->owner == FRAME_OWNED_BY_THREAD && gl_stack_check(thread) < 0) {
        return gl_frame_finish(tstate, frame, NULL);
    }
    if ((!thread->region.hooked && thread->callback == NULL) || thread->plain || thread->capturing ||
        !is_candidate(tstate, frame, throwflag)) {
        return pass_through(tstate, frame, throwflag);
    }
    return evaluate_candidate(tstate, thread, frame);
}

/* --- module functions ------------------------------------------------------------------------------ */

static PyObject *
set_frame_handler(PyObject *Py_UNUSED(module), PyObject *handler)
{
    if (handler != Py_None && !PyCallable_Check(handler)) {
        PyErr_Format(PyExc_TypeError, "a frame handler must be callable or None, not %.100s",
                     Py_TYPE(handler)->tp_name);
        return NULL;
    }
    Py_XSETREF(frame_handler, handler == Py_None ? NULL : Py_NewRef(handler));
    Py_RETURN_NONE;
}

static PyObject *
hook_depth(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromSsize_t(reasons);
}

static PyObject *
hook_installed(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(present_evaluator() == evaluate);
}

/* In the child only the forking thread is left, and only its reasons to have the hook in place. */
static PyObject *
after_fork(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    GlThread *thread = &gl_thread;
    Py_ssize_t left = (thread->region.hooked != 0) + (thread->callback != NULL);
    if (left < reasons) {
        reasons = left + 1;
        gl_hook_release();
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_frame_handler", set_frame_handler, METH_O, "Set what is asked about a frame that no entry fits."},
    {"hook_depth", hook_depth, METH_NOARGS, "How many reasons there are to have the hook in place."},
    {"hook_installed", hook_installed, METH_NOARGS, "Whether CPython's evaluator pointer is ours."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef after_fork_method = {"after_fork", after_fork, METH_NOARGS, NULL};

static int
register_after_fork(void)
{
    PyObject *os = PyImport_ImportModule("os");
    if (os == NULL) {
        return -1;
    }
    PyObject *done = NULL;
    PyObject *method = PyCFunction_New(&after_fork_method, NULL);
    PyObject *nothing = PyTuple_New(0), *keywords = Py_BuildValue("{s:O}", "after_in_child", method);
    PyObject *registrar = PyObject_GetAttrString(os, "register_at_fork");
    if (registrar == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear(); /* a platform that cannot fork */
        done = Py_NewRef(Py_None);
    } else if (registrar != NULL && nothing != NULL && keywords != NULL) {
        done = PyObject_Call(registrar, nothing, keywords);
    }
    Py_XDECREF(registrar);
    Py_XDECREF(keywords);
    Py_XDECREF(nothing);
    Py_XDECREF(method);
    Py_DECREF(os);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

int
gl_eval_frame_init(PyObject *module)
{
    if (name_del == NULL) {
        name_del = PyUnicode_InternFromString("__del__");
        if (name_del == NULL || gl_frame_swap_init() < 0 || register_after_fork() < 0) {
            return -1;
        }
    }
    return PyModule_AddFunctions(module, functions);
}
