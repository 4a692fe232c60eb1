/* Accessors on attributes that C keeps: members and computed fields of C types, and `__slots__` of Python classes.
 *
 * A descriptor of a class written in Python belongs to the user, so of those only the class (weakly) and the offset
 * are kept. */

#include "node.h"

#include <string.h>
#include <structmember.h>

/* --- descriptors of C types: the operand is the descriptor --- */

static int run_getset(const GlNode *node, GlRun *run)
{
    PyObject *object = gl_parent(node, run);
    PyGetSetDescrObject *descriptor = (PyGetSetDescrObject *)node->object;
    if (!PyObject_TypeCheck(object, PyDescr_TYPE(descriptor)) || descriptor->d_getset->get == NULL) {
        return 0;
    }
    return gl_put_new(node, run, descriptor->d_getset->get(object, descriptor->d_getset->closure));
}

static int run_member(const GlNode *node, GlRun *run)
{
    PyObject *object = gl_parent(node, run);
    PyMemberDescrObject *descriptor = (PyMemberDescrObject *)node->object;
    if (!PyObject_TypeCheck(object, PyDescr_TYPE(descriptor))) {
        return 0;
    }
    /* An error is an object, whose making may start a collection on 3.11. */
    int enabled = PyGC_Disable();
    int held = gl_put_new(node, run, PyMember_GetOne((char *)object, descriptor->d_member));
    if (enabled) {
        PyGC_Enable();
    }
    return held;
}

/* A member in which nothing is stored. */
static int run_member_unset(const GlNode *node, GlRun *run)
{
    PyObject *object = gl_parent(node, run);
    PyMemberDescrObject *descriptor = (PyMemberDescrObject *)node->object;
    if (!PyObject_TypeCheck(object, PyDescr_TYPE(descriptor))) {
        return 0;
    }
    int enabled = PyGC_Disable();
    PyObject *value = PyMember_GetOne((char *)object, descriptor->d_member);
    int unset = value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError);
    PyErr_Clear();
    if (enabled) {
        PyGC_Enable();
    }
    Py_XDECREF(value);
    return unset;
}

static int build_member(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    if (!Py_IS_TYPE(operands[0], &PyMemberDescr_Type)) {
        PyErr_Format(PyExc_TypeError, "no member descriptor: %R", operands[0]);
        return -1;
    }
    node->object = Py_NewRef(operands[0]);
    return 0;
}

/* The names of classes and functions are handed out as they lie there. Other computed fields may do anything; torch's
 * may let another thread run. */
static int is_plain_name(const PyGetSetDescrObject *descriptor)
{
    PyTypeObject *type = PyDescr_TYPE(descriptor);
    const char *name = descriptor->d_getset->name;
    return (type == &PyType_Type || type == &PyFunction_Type) &&
           (strcmp(name, "__name__") == 0 || strcmp(name, "__qualname__") == 0);
}

static int build_slot(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    PyObject *descriptor = operands[0];
    if (Py_IS_TYPE(descriptor, &PyGetSetDescr_Type)) {
        node->run = run_getset;
        build->calls_out |= !is_plain_name((PyGetSetDescrObject *)descriptor);
    } else if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
        PyErr_Format(PyExc_TypeError, "no member or getset descriptor: %R", descriptor);
        return -1;
    }
    node->object = Py_NewRef(descriptor);
    return 0;
}

/* --- __slots__: the operand is the descriptor, which is not kept --- */

static PyObject **slot_of(const GlNode *node, const GlRun *run)
{
    PyObject *object = gl_parent(node, run), *owner = gl_held(node->object);
    if (owner == NULL || !PyObject_TypeCheck(object, (PyTypeObject *)owner)) {
        return NULL;
    }
    return (PyObject **)((char *)object + node->number);
}

static int run_class_slot(const GlNode *node, GlRun *run)
{
    PyObject **slot = slot_of(node, run);
    return slot != NULL && gl_put(node, run, *slot);
}

static int run_class_slot_empty(const GlNode *node, GlRun *run)
{
    PyObject **slot = slot_of(node, run);
    return slot != NULL && *slot == NULL;
}

static int build_class_slot(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    PyMemberDescrObject *descriptor = (PyMemberDescrObject *)operands[0];
    if (!Py_IS_TYPE(operands[0], &PyMemberDescr_Type) || descriptor->d_member->type != T_OBJECT_EX) {
        PyErr_Format(PyExc_TypeError, "no slot of a class: %R", operands[0]);
        return -1;
    }
    node->number = descriptor->d_member->offset;
    node->object = PyWeakref_NewRef((PyObject *)PyDescr_TYPE(descriptor), NULL);
    return node->object == NULL ? -1 : 0;
}

/* Whether the value is the descriptor of that very slot; descriptors cannot be held weakly. */
static int run_slot_descriptor(const GlNode *node, GlRun *run)
{
    PyObject *value = gl_parent(node, run);
    if (!Py_IS_TYPE(value, &PyMemberDescr_Type)) {
        return 0;
    }
    PyMemberDescrObject *descriptor = (PyMemberDescrObject *)value;
    return (PyObject *)PyDescr_TYPE(descriptor) == gl_held(node->object) &&
           descriptor->d_member->type == T_OBJECT_EX && descriptor->d_member->offset == node->number;
}

const GlOp gl_slot_ops[] = {
    {"slot", GL_ACCESSOR, 1, run_member, build_slot, NULL, NULL},
    {"slot_unset", 0, 1, run_member_unset, build_member, NULL, NULL},
    {"class_slot", GL_ACCESSOR, 1, run_class_slot, build_class_slot, NULL, NULL},
    {"class_slot_empty", 0, 1, run_class_slot_empty, build_class_slot, NULL, NULL},
    {"slot_descriptor", 0, 1, run_slot_descriptor, build_class_slot, NULL, NULL},
    {NULL, 0, 0, NULL, NULL, NULL, NULL},
};
