/* _C.Jump and the loop that runs it: how a frame goes on in another code object without a call.
 *
 * A segment that has handed an instruction to CPython returns a Jump to the C code that ran it, which
 * runs the next segment in the same place. So depth does not grow with the number of jumps. */

#include "runtime.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *target;
    PyObject *values;
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
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static int
jump_traverse(GlJump *self, visitproc visit, void *arg)
{
    Py_VISIT(self->target);
    Py_VISIT(self->values);
    return 0;
}

static void
jump_dealloc(GlJump *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->target);
    Py_CLEAR(self->values);
    PyObject_GC_Del(self);
}

static PyMemberDef members[] = {
    {"target", T_OBJECT, offsetof(GlJump, target), READONLY, "the compiled function that goes on"},
    {"values", T_OBJECT, offsetof(GlJump, values), READONLY, "the flat parameters of its code"},
    {NULL, 0, 0, 0, NULL},
};

/* Immutable, and made of things that exist before it: it cannot close a cycle, so needs no tp_clear. */
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

static PyObject *
run_target(GlThread *thread, GlJump *jump)
{
    GlCompiled *target = (GlCompiled *)jump->target;
    if (target->function == NULL) {
        PyErr_SetString(PyExc_ReferenceError,
                        "the target of a jump has been taken apart by the garbage collector");
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(jump->values);
    Py_ssize_t wanted = gl_code_nparams((PyCodeObject *)PyFunction_GET_CODE(target->function));
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "a jump to %U brings %zd values, its code takes %zd",
                     ((PyFunctionObject *)target->function)->func_qualname, count, wanted);
        return NULL;
    }
    return gl_compiled_segment(target, thread, ((PyTupleObject *)jump->values)->ob_item, count, 0);
}

PyObject *
gl_follow_jumps(GlThread *thread, PyObject *result)
{
    while (result != NULL && Py_IS_TYPE(result, &GlJump_Type)) {
        PyObject *jump = result;
        result = run_target(thread, (GlJump *)jump);
        Py_DECREF(jump);
    }
    return result;
}

int
gl_jump_init(PyObject *module)
{
    return PyModule_AddType(module, &GlJump_Type);
}
