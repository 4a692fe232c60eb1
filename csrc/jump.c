/* _C.Jump and the loop that runs it: how a frame goes on in another code object without a call.
 *
 * A segment that has handed an instruction to CPython returns a Jump to the C code that ran it, which
 * runs the next segment in the same place. So depth does not grow with the number of jumps. */

#include "runtime.h"
#include "compat/compat.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *target;
    PyObject *values;
    PyObject *keeper; /* the entry whose code made it: it owns the names that segments are found by */
} GlJump;

/* Emitted code makes one at every break, so arguments are taken from the vector, positions only. */
static PyObject *
jump_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (PyVectorcall_NARGS(nargsf) != 2 || (kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0)) {
        PyErr_SetString(PyExc_TypeError, "Jump() takes two positional arguments: target and values");
        return NULL;
    }
    if (!Py_IS_TYPE(args[0], &GlCompiled_Type) || !PyTuple_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "Jump(): the target is a CompiledFunction, the values are a tuple");
        return NULL;
    }
    GlJump *self = PyObject_GC_New(GlJump, (PyTypeObject *)type);
    if (self == NULL) {
        return NULL;
    }
    self->target = Py_NewRef(args[0]);
    self->values = Py_NewRef(args[1]);
    self->keeper = NULL;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static int
jump_traverse(GlJump *self, visitproc visit, void *arg)
{
    Py_VISIT(self->target);
    Py_VISIT(self->values);
    Py_VISIT(self->keeper);
    return 0;
}

static void
jump_dealloc(GlJump *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->target);
    Py_CLEAR(self->values);
    Py_CLEAR(self->keeper);
    PyObject_GC_Del(self);
}

static PyMemberDef members[] = {
    {"target", T_OBJECT, offsetof(GlJump, target), READONLY, "the compiled function that goes on"},
    {"values", T_OBJECT, offsetof(GlJump, values), READONLY, "the flat parameters of its code"},
    {NULL, 0, 0, 0, NULL},
};

/* Made of things that exist before it: it cannot close a cycle, so needs no tp_clear. */
PyTypeObject GlJump_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "graphlift._C.Jump",
    .tp_doc = "What a segment returns to go on with the next one.",
    .tp_basicsize = sizeof(GlJump),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_vectorcall = jump_vectorcall,
    .tp_new = NULL,
    .tp_traverse = (traverseproc)jump_traverse,
    .tp_dealloc = (destructor)jump_dealloc,
    .tp_members = members,
};

/* --- the loop -------------------------------------------------------------------------------------- */

static PyObject *
run_target(GlThread *thread, GlCompiled *target, PyObject *values)
{
    if (target->function == NULL) {
        PyErr_SetString(PyExc_ReferenceError,
                        "the target of a jump has been taken apart by the garbage collector");
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(values);
    Py_ssize_t wanted = gl_code_nparams((PyCodeObject *)PyFunction_GET_CODE(target->function));
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "a jump to %U brings %zd values, its code takes %zd",
                     ((PyFunctionObject *)target->function)->func_qualname, count, wanted);
        return NULL;
    }
    return gl_compiled_segment(target, thread, ((PyTupleObject *)values)->ob_item, count, 0);
}

/* Runs the target of a jump. The jump gives up what it holds, and the values are held only until the frame
 * that got them says so (`taken`): from then on a value lives as long as the program holds it. */
static PyObject *
follow(GlThread *thread, GlJump *jump)
{
    PyObject *target = jump->target, *values = jump->values;
    if (values == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "a jump can be followed once");
        return NULL;
    }
    jump->target = jump->values = NULL;
    PyObject **saved = thread->passing;
    thread->passing = &values;
    PyObject *result = run_target(thread, (GlCompiled *)target, values);
    thread->passing = saved;
    Py_XDECREF(values);
    Py_DECREF(target);
    return result;
}

PyObject *
gl_kept_by(PyObject *result, GlEntry *entry)
{
    if (result != NULL && Py_IS_TYPE(result, &GlJump_Type)) {
        Py_XSETREF(((GlJump *)result)->keeper, Py_NewRef(entry));
    }
    return result;
}

PyObject *
gl_follow_jumps(GlThread *thread, PyObject *result)
{
    while (result != NULL && Py_IS_TYPE(result, &GlJump_Type)) {
        PyObject *jump = result;
        result = follow(thread, (GlJump *)jump);
        Py_DECREF(jump);
    }
    return result;
}

/* --- what emitted code calls ----------------------------------------------------------------------- */

/* The first thing that code does which a jump leads to. */
static PyObject *
taken(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    PyObject **passing = gl_thread.passing;
    if (passing != NULL) {
        gl_thread.passing = NULL;
        Py_CLEAR(*passing);
    }
    Py_RETURN_NONE;
}

/* How a segment calls the one of the frame that its own frame had called. */
static PyObject *
enter(PyObject *Py_UNUSED(module), PyObject *jump)
{
    if (!Py_IS_TYPE(jump, &GlJump_Type)) {
        PyErr_Format(PyExc_TypeError, "enter() takes a Jump, not %.100s", Py_TYPE(jump)->tp_name);
        return NULL;
    }
    GlThread *thread = &gl_thread;
    if (gl_stack_check(thread) < 0) {
        return NULL;
    }
    PyThreadState *tstate = gl_tstate();
    GlRegion saved = thread->region;
    /* The call of this function is counted, too; in plain Python there is none. */
    GL_C_CALL_CREDIT(tstate, 1);
    GL_C_RECURSION_CREDIT(tstate, GL_EVALUATOR_C_UNITS);
    PyObject *result = gl_follow_jumps(thread, Py_NewRef(jump));
    GL_C_RECURSION_CREDIT(tstate, -GL_EVALUATOR_C_UNITS);
    GL_C_CALL_CREDIT(tstate, -1);
    gl_region_restore(thread, &saved);
    return result;
}

static PyMethodDef functions[] = {
    {"taken", taken, METH_NOARGS, "Says that the frame has the values of the jump that led to it."},
    {"enter", enter, METH_O, "Goes on at a jump's target, and with what that jumps to; gives the last result."},
    {NULL, NULL, 0, NULL},
};

int
gl_jump_init(PyObject *module)
{
    if (PyModule_AddFunctions(module, functions) < 0) {
        return -1;
    }
    return PyModule_AddType(module, &GlJump_Type);
}
