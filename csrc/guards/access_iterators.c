/* Built-in iterators: what they go over, and where they stand. They are never advanced. */

#include "node.h"

#include "../compat/layouts.h"

/* What a list, tuple or dict iterator goes over; NULL when it is used up or no such iterator. */
static PyObject *iterated(PyObject *iterator)
{
    PyTypeObject *type = Py_TYPE(iterator);
    if (type == &PyListIter_Type) {
        return (PyObject *)((_PyListIterObject *)iterator)->it_seq;
    }
    if (type == &PyTupleIter_Type) {
        return (PyObject *)((_PyTupleIterObject *)iterator)->it_seq;
    }
    if (type == &PyDictIterKey_Type || type == &PyDictIterValue_Type || type == &PyDictIterItem_Type) {
        return (PyObject *)((GlDictIter *)iterator)->dict;
    }
    return NULL;
}

static int run_iterated(const GlNode *node, GlRun *run) { return gl_put(node, run, iterated(gl_parent(node, run))); }

/* How many items a list, tuple or dict iterator has given; -1: it is used up or no such iterator. */
static Py_ssize_t given(PyObject *iterator)
{
    PyTypeObject *type = Py_TYPE(iterator);
    if (iterated(iterator) == NULL) {
        return -1;
    }
    if (type == &PyListIter_Type) {
        return ((_PyListIterObject *)iterator)->it_index;
    }
    if (type == &PyTupleIter_Type) {
        return ((_PyTupleIterObject *)iterator)->it_index;
    }
    GlDictIter *it = (GlDictIter *)iterator;
    Py_ssize_t size = PyDict_GET_SIZE(it->dict);
    return it->used == size ? size - it->left : -1; /* a dict that changed size is an error at the next step */
}

/* operand: the number of items given so far */
static int run_iterator_at(const GlNode *node, GlRun *run) { return given(gl_parent(node, run)) == node->number; }

static int build_number(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    node->number = PyLong_AsSsize_t(operands[0]);
    return node->number == -1 && PyErr_Occurred() ? -1 : 0;
}

static int run_iterator_done(const GlNode *node, GlRun *run)
{
    PyObject *iterator = gl_parent(node, run);
    PyTypeObject *type = Py_TYPE(iterator);
    int known = type == &PyListIter_Type || type == &PyTupleIter_Type || type == &PyDictIterKey_Type ||
                type == &PyDictIterValue_Type || type == &PyDictIterItem_Type;
    return known && iterated(iterator) == NULL;
}

/* operands: the start, step and length of what a range iterator has left */
static int run_range_left(const GlNode *node, GlRun *run)
{
    PyObject *iterator = gl_parent(node, run);
    long now[3];
    if (Py_TYPE(iterator) != &PyRangeIter_Type) {
        return 0;
    }
    gl_range_left((_PyRangeIterObject *)iterator, &now[0], &now[1], &now[2]);
    const long *expected = node->data;
    return now[0] == expected[0] && now[1] == expected[1] && now[2] == expected[2];
}

static int build_range_left(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    long *expected = PyMem_New(long, 3);
    if (expected == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    node->data = expected;
    for (int i = 0; i < 3; i++) {
        expected[i] = PyLong_AsLong(operands[i]);
        if (expected[i] == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    return 0;
}

const GlOp gl_iterator_ops[] = {
    {"iterated", GL_ACCESSOR, 0, run_iterated, NULL, NULL, NULL},
    {"iterator_at", 0, 1, run_iterator_at, build_number, NULL, NULL},
    {"iterator_done", 0, 0, run_iterator_done, NULL, NULL, NULL},
    {"range_left", 0, 3, run_range_left, build_range_left, NULL, NULL},
    {NULL, 0, 0, NULL, NULL, NULL, NULL},
};

/* --- facts for the capture side and for the layout test --- */

static PyObject *iterator_state(PyObject *module, PyObject *iterator)
{
    if (Py_TYPE(iterator) == &PyRangeIter_Type) {
        long start, step, left;
        gl_range_left((_PyRangeIterObject *)iterator, &start, &step, &left);
        return Py_BuildValue("lll", start, step, left);
    }
    PyObject *over = iterated(iterator);
    return over == NULL ? Py_NewRef(Py_None) : Py_BuildValue("On", over, given(iterator));
}

static PyObject *reversed_at(PyObject *module, PyObject *args)
{
    PyObject *sequence;
    Py_ssize_t index;
    if (!PyArg_ParseTuple(args, "On:reversed_at", &sequence, &index)) {
        return NULL;
    }
    GlReversed *made = (GlReversed *)PyReversed_Type.tp_alloc(&PyReversed_Type, 0);
    if (made != NULL) {
        made->index = index;
        made->sequence = Py_NewRef(sequence);
    }
    return (PyObject *)made;
}

PyMethodDef gl_iterator_functions[] = {
    {"reversed_at", reversed_at, METH_VARARGS,
     "reversed_at(sequence, index) -> reversed\n\n"
     "`reversed(sequence)` that gives the item at `index` next; the sequence is asked nothing."},
    {"iterator_state", iterator_state, METH_O,
     "iterator_state(iterator) -> tuple | None\n\n"
     "(iterated, items given) of a list, tuple or dict iterator, (start, step, length) left of a range iterator, None "
     "for one that is used up or of another kind. Given is -1 where the next step would raise."},
    {NULL, NULL, 0, NULL},
};

/* Tries the layouts on iterators of known state; -1 with an error set if this Python's differ. */
static int try_layout(PyObject *over, int items)
{
    PyObject *iterator = over ? PyObject_GetIter(over) : NULL;
    PyObject *item = iterator ? PyIter_Next(iterator) : NULL;
    int good = 0;
    if (item != NULL && Py_TYPE(iterator) == &PyRangeIter_Type) {
        long start, step, left;
        gl_range_left((_PyRangeIterObject *)iterator, &start, &step, &left);
        good = start == 5 && step == 3 && left == items - 1;
    } else if (item != NULL) {
        good = iterated(iterator) == over && given(iterator) == 1;
    }
    Py_XDECREF(item);
    Py_XDECREF(iterator);
    Py_XDECREF(over);
    if (!good && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ImportError, "the built-in iterators of this Python have an unknown layout");
    }
    return good ? 0 : -1;
}

static int try_reversed(void)
{
    PyObject *over = Py_BuildValue("(ii)", 7, 8);
    GlReversed *made = over ? (GlReversed *)PyObject_CallOneArg((PyObject *)&PyReversed_Type, over) : NULL;
    int good = made != NULL && PyReversed_Type.tp_basicsize == sizeof(GlReversed) && made->index == 1 &&
               made->sequence == over;
    Py_XDECREF(made);
    Py_XDECREF(over);
    if (!good && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ImportError, "`reversed` of this Python has an unknown layout");
    }
    return good ? 0 : -1;
}

int gl_iterators_check(void)
{
    return try_reversed() < 0 || try_layout(Py_BuildValue("[iii]", 7, 8, 9), 3) < 0 ||
                   try_layout(Py_BuildValue("(iii)", 7, 8, 9), 3) < 0 ||
                   try_layout(Py_BuildValue("{sisisi}", "a", 1, "b", 2, "c", 3), 3) < 0 ||
                   try_layout(PyObject_CallFunction((PyObject *)&PyRange_Type, "iii", 2, 13, 3), 4) < 0
               ? -1
               : 0;
}
