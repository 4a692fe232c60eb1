/* What the files of the frame side share: the thread's state, regions, cache, entries, compiled calls.
 * Includes no interpreter internals; files that touch frames include compat/compat.h themselves. */

#ifndef GRAPHLIFT_RUNTIME_H
#define GRAPHLIFT_RUNTIME_H

#include "graphlift.h"

#include <stdint.h>

#if defined(__GNUC__) && defined(__ELF__)
/* The library's few words fit the loader's static reserve, which makes an access one instruction. */
#define GL_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))
#elif defined(_MSC_VER)
#define GL_THREAD_LOCAL __declspec(thread)
#else
#define GL_THREAD_LOCAL _Thread_local
#endif

#if defined(__GNUC__)
#define GL_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#else
#define GL_UNLIKELY(condition) (condition)
#endif

/* --- regions.c: under what the calling thread runs ------------------------------------------------ */

/* `context` and `settings` are borrowed from the compiled function that is being called. */
typedef struct {
    int hooked; /* whether frames that start now are looked at */
    PyObject *context;
    PyObject *settings; /* NULL outside any compiled call */
} GlRegion;

typedef struct {
    GlRegion region;
    PyObject *callback;        /* library user's frame evaluator, or NULL */
    PyObject *callback_holder; /* its owner in the thread's dictionary */
    PyObject *let_through;     /* function whose very next frame is not to be looked at */
    PyObject **passing;        /* values of the jump that is being followed, until they are taken; or NULL */
    int capturing;
    int plain;
    unsigned long events; /* how often the hook found or asked for something; tells a quiet call */
    uintptr_t stack_low;    /* lowest address of the thread's C stack */
    uintptr_t stack_reserve; /* how much above it is not to be used; 0: not yet known */
} GlThread;

extern GL_THREAD_LOCAL GlThread gl_thread;

/* Process-wide: every compiled function runs its original. */
extern int gl_bypass;

#define gl_runs_plainly(thread) (gl_bypass | (thread)->plain | (thread)->capturing)

/* One more, or one fewer, of the reasons to have the hook in place. */
void gl_hook_acquire(void);
void gl_hook_release(void);

static inline void
gl_region_change(GlThread *thread, int hooked, PyObject *context, PyObject *settings)
{
    int former = thread->region.hooked;
    thread->region = (GlRegion){hooked, context, settings};
    if (GL_UNLIKELY(hooked != former)) {
        (hooked ? gl_hook_acquire : gl_hook_release)();
    }
}

static inline void
gl_region_restore(GlThread *thread, const GlRegion *saved)
{
    gl_region_change(thread, saved->hooked, saved->context, saved->settings);
}

/* Asks a handler of graphlift's own, in the middle of whatever the thread does: hook off, all plain, and all put
 * back. `args[-1]` may be written. */
PyObject *gl_ask(GlThread *thread, PyObject *callable, PyObject *const *args, Py_ssize_t nargs);

int gl_regions_init(PyObject *module);

/* --- c_stack.c ----------------------------------------------------------------------------------- */

/* Finds the calling thread's C stack and keeps its bounds in `thread`. */
void gl_stack_find(GlThread *thread);

/* Sets RecursionError; -1. */
int gl_stack_exhausted(void);

/* 0, or -1 with RecursionError set when little C stack is left: calls that CPython runs without C stack use
 * some here, so a raised sys.setrecursionlimit would end in a crash. An address outside the thread's own
 * stack (a fiber's) says nothing. */
static inline int
gl_stack_check(GlThread *thread)
{
    char here;
    if (GL_UNLIKELY(thread->stack_reserve == 0)) {
        gl_stack_find(thread);
    }
    uintptr_t left = (uintptr_t)&here - thread->stack_low;
    return GL_UNLIKELY(left < thread->stack_reserve) ? gl_stack_exhausted() : 0;
}

/* --- entry.c, code_cache.c ----------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    PyObject *guards;
    PyObject *function;  /* NULL: run the original */
    PyObject *swap_code; /* or NULL */
    PyObject *owner;
    PyObject *data;
    unsigned long long hits;
    unsigned long long review_at; /* so many hits, and whether it is worth its cost is asked */
    char worthwhile;              /* whether a call that only ran this has led to something */
    char valid;
} GlEntry;

/* How often in a row the hook found nothing, and for how many calls it is left away therefore. */
typedef struct {
    unsigned char idle;
    unsigned int budget;
} GlQuiet;

typedef struct GlCache {
    PyObject_HEAD
    PyCodeObject *code; /* borrowed; NULL once the code died or dropped this cache */
    PyObject *settings;
    PyObject *entries; /* a tuple, newest hit first; replaced, or turned in place when nobody else holds it */
    struct GlCache *next;
    Py_ssize_t nparams;
    GlQuiet quiet;           /* of calls of the original with the hook on */
    const void *callee;      /* what the original, a single call, called last; only compared */
    unsigned char callees;   /* how often that was another one */
    unsigned char misses;    /* calls in a row that no entry fitted, with `skip` set */
    char simple;             /* positional parameters only */
    char skip;               /* nothing more is captured here: the original runs, hook on */
    char plain;              /* the original never needs the hook */
} GlCache;

extern PyTypeObject GlEntry_Type;
extern PyTypeObject GlCache_Type;

/* What hangs on a code object. */
typedef struct {
    GlCache *caches; /* list of strong references */
    char skip;
    GlQuiet quiet; /* of `call_hooked` */
} GlCodeRecord;

/* The record of a code object: NULL when it has none (never an error). */
GlCodeRecord *gl_code_record(PyCodeObject *code);

/* The same, made when absent; NULL with MemoryError set. */
GlCodeRecord *gl_code_record_make(PyCodeObject *code);

/* Whether an entry stands for a call: 1, with the binding (or NULL) in `*bound`, 0, or -1 with an error set. What its
 * code calls has names among the global ones, so a function of the same code with others is another matter. */
static inline int
gl_entry_holds(GlEntry *entry, PyObject *function, PyObject *const *params, Py_ssize_t nparams, PyObject **bound)
{
    PyFunctionObject *captured = (PyFunctionObject *)entry->function;
    if (GL_UNLIKELY(captured != NULL && captured->func_globals != ((PyFunctionObject *)function)->func_globals)) {
        *bound = NULL;
        return 0;
    }
    return gl_guard_run(entry->guards, function, params, nparams, bound);
}

/* How many flat parameters a code object takes. */
Py_ssize_t gl_code_nparams(PyCodeObject *code);

/* The cache of a code object under some settings. `find` borrows and may give NULL, `of` makes one and
 * returns a new reference or NULL with an error set. */
GlCache *gl_cache_find(PyCodeObject *code, PyObject *settings);
GlCache *gl_cache_of(PyCodeObject *code, PyObject *settings);

/* The first entry whose guards hold: a new reference, with the binding (or NULL) in `*bound`.
 * NULL without an error set when there is none. */
GlEntry *gl_cache_match(GlCache *cache, PyObject *function, PyObject *const *params, PyObject **bound);

int gl_cache_prune(GlCache *cache);

/* Forgets all entries and captures nothing more here; 0, or -1 with an error set. */
int gl_cache_give_up(GlCache *cache);

/* So many calls in a row that no entry fits, where nothing more is captured, and entries are not asked any
 * more. */
enum { GL_USELESS_MISSES = 64 };
int gl_cache_init(PyObject *module);
int gl_entry_init(PyObject *module);

/* --- call_binding.c ------------------------------------------------------------------------------ */

#define GL_SMALL_PARAMS 16

/* Flat parameters of one call; `params[-1]` may be written. */
typedef struct {
    PyObject **params;
    Py_ssize_t pinned; /* parameters that the call holds a reference to */
    PyObject *varargs; /* owned, or NULL */
    PyObject *varkwargs;
    PyObject **heap;
    PyObject *small[GL_SMALL_PARAMS + 1];
} GlBoundCall;

/* Binds arguments as CPython would. 1; 0 when they do not fit; -1 with an error set. */
int gl_bind_call(GlBoundCall *call, PyObject *function, PyObject *const *args, Py_ssize_t nargs,
                 PyObject *kwnames);
void gl_bound_call_clear(GlBoundCall *call);

/* Calls a function with flat parameters, spread again as its signature wants them. */
PyObject *gl_call_spread(PyObject *function, PyObject *const *params);

/* Calls a Python function with positional arguments. Its own vectorcall leaves out the checks of results
 * that are meant for C code. */
static inline PyObject *
gl_call_function(PyObject *function, PyObject *const *args, Py_ssize_t nargs)
{
    return ((PyFunctionObject *)function)->vectorcall(function, args, (size_t)nargs, NULL);
}

/* Calls an entry's function with the binding (may be NULL) before the parameters.
 * `room`: whether `params[-1]` may be written. */
PyObject *gl_call_entry(GlEntry *entry, PyObject *bound, PyObject *const *params, Py_ssize_t nparams,
                        int room);

/* --- compiled_function.c, compiled_attributes.c, jump.c ------------------------------------------ */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *settings;
    PyObject *context;
    PyObject *capture;
    GlCache *cache; /* of the code seen last; NULL before the first call */
    unsigned long long hits_seen; /* of the cache's entries, when misses were last counted from nought */
    Py_ssize_t callee_at;  /* which parameter a step calls; -1: none, or not known */
    unsigned char declined; /* calls since then that no entry fitted, and no capture was wanted */
    PyObject *dict;
    PyObject *weakrefs;
} GlCompiled;

extern PyTypeObject GlCompiled_Type;
extern PyTypeObject GlJump_Type;

/* Runs one segment: guards, then the entry's code, or a capture. Changes the thread's region and leaves
 * it to the caller to put back. May return a Jump. */
PyObject *gl_compiled_segment(GlCompiled *self, GlThread *thread, PyObject *const *params,
                              Py_ssize_t nparams, int room);

/* `result`; if it is a jump, `entry` lives until it was followed to its target's end, whoever drops it from the
 * cache meanwhile. */
PyObject *gl_kept_by(PyObject *result, GlEntry *entry);

/* Follows jumps until a value or an error comes; takes over `result`. Changes the region as above. */
PyObject *gl_follow_jumps(GlThread *thread, PyObject *result);

/* A new reference to the Entry in what a capture or the frame handler answered, which it takes over.
 * NULL without an error: None or NotImplemented, told apart by `*declined` (1: None, so remember). */
GlEntry *gl_capture_answer(PyObject *answer, int *declined);

/* --- quiet.c ------------------------------------------------------------------------------------- */

/* Whether the hook may be left away this time; counts the call if so. */
static inline int
gl_quiet_spend(GlQuiet *quiet)
{
    if (quiet->budget == 0) {
        return 0;
    }
    quiet->budget--;
    return 1;
}

/* Remembers whether a call under the hook led to nothing. */
void gl_quiet_note(GlQuiet *quiet, int led_to_nothing);

/* Whether an entry has been hit often enough to ask what it is worth. */
#define gl_review_due(entry) GL_UNLIKELY((entry)->hits >= (entry)->review_at)

/* Asks the review handler about an entry that is about to run. It runs in any case. */
void gl_review(GlThread *thread, PyObject *function, GlEntry *entry);

int gl_quiet_init(PyObject *module);
int gl_known_hashes_init(PyObject *module);
int gl_buffers_init(PyObject *module);
int gl_collector_init(PyObject *module);

/* Classes made without running anything of the program's (classes.c). */
int gl_classes_init(PyObject *module);

PyObject *gl_compiled_getattro(PyObject *self, PyObject *name);
int gl_compiled_setattro(PyObject *self, PyObject *name, PyObject *value);
extern PyMethodDef gl_compiled_methods[];
extern PyGetSetDef gl_compiled_getset[];

int gl_compiled_init(PyObject *module);
int gl_compiled_attributes_init(void);
int gl_jump_init(PyObject *module);

/* --- eval_frame.c, frame_callback.c, frame_swap.c ------------------------------------------------ */

/* NULL when `new` may stand in for `old` in a frame, else a sentence that says why not. */
const char *gl_swap_objection(PyCodeObject *old, PyCodeObject *new);

int gl_eval_frame_init(PyObject *module);
int gl_frame_callback_init(PyObject *module);
int gl_frame_swap_init(void);

#endif
