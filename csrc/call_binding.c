/* Arguments to flat parameters, and back.
 *
 * Flat parameters are what the first local slots of a frame hold at entry: positional parameters,
 * keyword-only ones, then the tuple of `*args` and the dict of `**kwargs`, each if there is one.
 * Binding mirrors `initialize_locals` in CPython's ceval.c, except that where arguments do not fit it
 * says no more than that: the caller then calls the function itself, which raises the right TypeError. */

#include "runtime.h"

#define CODE_OF(function) ((PyCodeObject *)PyFunction_GET_CODE(function))

enum { DOES_NOT_FIT = 0, FITS = 1, FAILED = -1 };

/* Clears parameters 0 to nparams - 1 and finds room for more than GL_SMALL_PARAMS. */
static int
make_room(GlBoundCall *call, Py_ssize_t nparams)
{
    call->varargs = call->varkwargs = NULL;
    call->heap = NULL;
    call->params = call->small + 1;
    if (nparams > GL_SMALL_PARAMS) {
        call->heap = PyMem_New(PyObject *, nparams + 1);
        if (call->heap == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        call->params = call->heap + 1;
    }
    memset(call->params, 0, (size_t)nparams * sizeof(PyObject *));
    return 0;
}

static int
bind_positional(GlBoundCall *call, PyCodeObject *code, PyObject *const *args, Py_ssize_t nargs)
{
    Py_ssize_t taken = nargs < code->co_argcount ? nargs : code->co_argcount;
    memcpy(call->params, args, (size_t)taken * sizeof(PyObject *));
    if (!(code->co_flags & CO_VARARGS)) {
        return nargs > taken ? DOES_NOT_FIT : FITS;
    }
    call->varargs = PyTuple_New(nargs - taken);
    if (call->varargs == NULL) {
        return FAILED;
    }
    for (Py_ssize_t i = taken; i < nargs; i++) {
        PyTuple_SET_ITEM(call->varargs, i - taken, Py_NewRef(args[i]));
    }
    call->params[code->co_argcount + code->co_kwonlyargcount] = call->varargs;
    return FITS;
}

/* Position of the parameter that may be given by keyword `name`; -1: none; -2: error. */
static Py_ssize_t
find_parameter(PyCodeObject *code, PyObject *name)
{
    Py_ssize_t end = code->co_argcount + code->co_kwonlyargcount;
    PyObject *names = code->co_localsplusnames;
    for (Py_ssize_t i = code->co_posonlyargcount; i < end; i++) {
        if (PyTuple_GET_ITEM(names, i) == name) {
            return i;
        }
    }
    for (Py_ssize_t i = code->co_posonlyargcount; i < end; i++) {
        int same = PyObject_RichCompareBool(PyTuple_GET_ITEM(names, i), name, Py_EQ);
        if (same != 0) {
            return same > 0 ? i : -2;
        }
    }
    return -1;
}

static int
bind_keyword(GlBoundCall *call, PyCodeObject *code, PyObject *name, PyObject *value)
{
    if (!PyUnicode_Check(name)) {
        return DOES_NOT_FIT;
    }
    Py_ssize_t at = find_parameter(code, name);
    if (at == -2) {
        return FAILED;
    }
    if (at == -1) {
        if (call->varkwargs == NULL) {
            return DOES_NOT_FIT;
        }
        return PyDict_SetItem(call->varkwargs, name, value) < 0 ? FAILED : FITS;
    }
    if (call->params[at] != NULL) {
        return DOES_NOT_FIT;
    }
    call->params[at] = value;
    return FITS;
}

static int
bind_keywords(GlBoundCall *call, PyCodeObject *code, PyObject *const *values, PyObject *kwnames)
{
    if (code->co_flags & CO_VARKEYWORDS) {
        call->varkwargs = PyDict_New();
        if (call->varkwargs == NULL) {
            return FAILED;
        }
        call->params[gl_code_nparams(code) - 1] = call->varkwargs;
    }
    Py_ssize_t count = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t i = 0; i < count; i++) {
        int fits = bind_keyword(call, code, PyTuple_GET_ITEM(kwnames, i), values[i]);
        if (fits != FITS) {
            return fits;
        }
    }
    return FITS;
}

static int
bind_defaults(GlBoundCall *call, PyCodeObject *code, PyObject *function)
{
    PyObject *defaults = PyFunction_GET_DEFAULTS(function);
    Py_ssize_t given = defaults == NULL ? 0 : PyTuple_GET_SIZE(defaults);
    Py_ssize_t first = code->co_argcount - given;
    for (Py_ssize_t i = 0; i < code->co_argcount; i++) {
        if (call->params[i] != NULL) {
            continue;
        }
        if (i < first) {
            return DOES_NOT_FIT;
        }
        call->params[i] = PyTuple_GET_ITEM(defaults, i - first);
    }
    return FITS;
}

static int
bind_keyword_only_defaults(GlBoundCall *call, PyCodeObject *code, PyObject *function)
{
    PyObject *defaults = PyFunction_GET_KW_DEFAULTS(function);
    Py_ssize_t end = code->co_argcount + code->co_kwonlyargcount;
    for (Py_ssize_t i = code->co_argcount; i < end; i++) {
        if (call->params[i] != NULL) {
            continue;
        }
        PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
        PyObject *value = defaults == NULL ? NULL : PyDict_GetItemWithError(defaults, name);
        if (value == NULL) {
            return PyErr_Occurred() ? FAILED : DOES_NOT_FIT;
        }
        call->params[i] = value;
    }
    return FITS;
}

int
gl_bind_call(GlBoundCall *call, PyObject *function, PyObject *const *args, Py_ssize_t nargs,
             PyObject *kwnames)
{
    PyCodeObject *code = CODE_OF(function);
    if (make_room(call, gl_code_nparams(code)) < 0) {
        return FAILED;
    }
    int fits = bind_positional(call, code, args, nargs);
    if (fits == FITS) {
        fits = bind_keywords(call, code, args + nargs, kwnames);
    }
    if (fits == FITS) {
        fits = bind_defaults(call, code, function);
    }
    if (fits == FITS) {
        fits = bind_keyword_only_defaults(call, code, function);
    }
    call->pinned = 0;
    if (fits != FITS) {
        gl_bound_call_clear(call);
        return fits;
    }
    /* The caller holds its arguments, but defaults can be replaced while the call runs. */
    call->pinned = gl_code_nparams(code);
    for (Py_ssize_t i = 0; i < call->pinned; i++) {
        Py_INCREF(call->params[i]);
    }
    return FITS;
}

void
gl_bound_call_clear(GlBoundCall *call)
{
    for (Py_ssize_t i = 0; i < call->pinned; i++) {
        Py_DECREF(call->params[i]);
    }
    Py_CLEAR(call->varargs);
    Py_CLEAR(call->varkwargs);
    PyMem_Free(call->heap);
}

/* --- flat parameters to arguments ---------------------------------------------------------------- */

/* Names of the keyword-only parameters and of what `**kwargs` holds; a new tuple. */
static PyObject *
keyword_names(PyCodeObject *code, PyObject *varkwargs)
{
    Py_ssize_t named = code->co_kwonlyargcount;
    PyObject *names = PyTuple_New(named + (varkwargs == NULL ? 0 : PyDict_GET_SIZE(varkwargs)));
    if (names == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        PyTuple_SET_ITEM(names, i,
                         Py_NewRef(PyTuple_GET_ITEM(code->co_localsplusnames, code->co_argcount + i)));
    }
    PyObject *key, *value;
    for (Py_ssize_t at = 0, i = named; varkwargs != NULL && PyDict_Next(varkwargs, &at, &key, &value); i++) {
        PyTuple_SET_ITEM(names, i, Py_NewRef(key));
    }
    return names;
}

/* Copies positional parameters, `*args`, keyword-only ones and the values of `**kwargs`, in this order. */
static void
spread(PyObject **to, PyCodeObject *code, PyObject *const *params, PyObject *varargs, PyObject *varkwargs)
{
    memcpy(to, params, (size_t)code->co_argcount * sizeof(PyObject *));
    to += code->co_argcount;
    for (Py_ssize_t i = 0; varargs != NULL && i < PyTuple_GET_SIZE(varargs); i++) {
        *to++ = PyTuple_GET_ITEM(varargs, i);
    }
    memcpy(to, params + code->co_argcount, (size_t)code->co_kwonlyargcount * sizeof(PyObject *));
    to += code->co_kwonlyargcount;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; varkwargs != NULL && PyDict_Next(varkwargs, &at, &key, &value);) {
        *to++ = value;
    }
}

static PyObject *
call_spread_slowly(PyObject *function, PyCodeObject *code, PyObject *const *params)
{
    Py_ssize_t at = code->co_argcount + code->co_kwonlyargcount;
    PyObject *varargs = code->co_flags & CO_VARARGS ? params[at++] : NULL;
    PyObject *varkwargs = code->co_flags & CO_VARKEYWORDS ? params[at] : NULL;
    /* Flat parameters also come from emitted code, by way of a Jump. */
    if ((varargs != NULL && !PyTuple_Check(varargs)) || (varkwargs != NULL && !PyDict_Check(varkwargs))) {
        PyErr_SetString(PyExc_TypeError, "among flat parameters *args is a tuple and **kwargs is a dict");
        return NULL;
    }
    PyObject *names = keyword_names(code, varkwargs);
    if (names == NULL) {
        return NULL;
    }
    Py_ssize_t positional = code->co_argcount + (varargs == NULL ? 0 : PyTuple_GET_SIZE(varargs));
    PyObject **args = PyMem_New(PyObject *, positional + PyTuple_GET_SIZE(names) + 1);
    PyObject *result = NULL;
    if (args == NULL) {
        PyErr_NoMemory();
    } else {
        spread(args, code, params, varargs, varkwargs);
        result = PyObject_Vectorcall(function, args, (size_t)positional, names);
        PyMem_Free(args);
    }
    Py_DECREF(names);
    return result;
}

PyObject *
gl_call_spread(PyObject *function, PyObject *const *params)
{
    PyCodeObject *code = CODE_OF(function);
    if (gl_code_nparams(code) == code->co_argcount) {
        return gl_call_function(function, params, code->co_argcount);
    }
    return call_spread_slowly(function, code, params);
}

/* --- calling an entry ---------------------------------------------------------------------------- */

static PyObject *
call_with_copy(PyObject *function, PyObject *bound, PyObject *const *params, Py_ssize_t nparams)
{
    PyObject *small[GL_SMALL_PARAMS + 1];
    PyObject **args = nparams <= GL_SMALL_PARAMS ? small : PyMem_New(PyObject *, nparams + 1);
    if (args == NULL) {
        return PyErr_NoMemory();
    }
    args[0] = bound;
    memcpy(args + 1, params, (size_t)nparams * sizeof(PyObject *));
    PyObject *result = gl_call_function(function, args, nparams + 1);
    if (args != small) {
        PyMem_Free(args);
    }
    return result;
}

PyObject *
gl_call_entry(GlEntry *entry, PyObject *bound, PyObject *const *params, Py_ssize_t nparams, int room)
{
    PyObject *function = entry->function;
    if (bound == NULL) {
        return gl_call_function(function, params, nparams);
    }
    if (!room) {
        return call_with_copy(function, bound, params, nparams);
    }
    PyObject **args = (PyObject **)params - 1;
    PyObject *kept = args[0];
    args[0] = bound;
    PyObject *result = gl_call_function(function, args, nparams + 1);
    args[0] = kept;
    return result;
}
