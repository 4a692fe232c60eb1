/* GuardProgram: builds nodes from plain data, and what Python sees of them. Knows no kind of node. */

#include "program.h"

#include <string.h>

static PyObject *op_table; /* name -> address of its GlOp */

int gl_put_new(const GlNode *node, GlRun *run, PyObject *value)
{
    if (value == NULL) {
        PyErr_Clear();
        return 0;
    }
    run->owned[run->nowned++] = value;
    run->values[node->to] = value;
    return 1;
}

int32_t gl_register(const GlBuild *build, PyObject *index)
{
    Py_ssize_t at = PyLong_AsSsize_t(index);
    if (at == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (at < 0 || at >= build->nodes || build->registers[at] < 0) {
        PyErr_Format(PyExc_ValueError, "node %zd is no accessor that comes before", at);
        return -1;
    }
    return build->registers[at];
}

int32_t *gl_registers(const GlBuild *build, PyObject *const *indices, Py_ssize_t count)
{
    int32_t *registers = PyMem_New(int32_t, count ? count : 1);
    if (registers == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        registers[i] = gl_register(build, indices[i]);
        if (registers[i] < 0) {
            PyMem_Free(registers);
            return NULL;
        }
    }
    return registers;
}

/* --- building --- */

static const GlOp *find_op(PyObject *name)
{
    PyObject *address = PyDict_GetItemWithError(op_table, name);
    if (address == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_ValueError, "there is no guard node named %R", name);
        }
        return NULL;
    }
    return PyLong_AsVoidPtr(address);
}

static int take_parent(GlNode *node, const GlBuild *build, PyObject *index)
{
    if (node->op->flags & GL_ROOT) {
        return 0;
    }
    node->from = gl_register(build, index);
    return node->from < 0 ? -1 : 0;
}

static int build_node(GlNode *node, GlBuild *build, PyObject *row)
{
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) < 2) {
        PyErr_SetString(PyExc_TypeError, "a guard node is a tuple (name, parent, operands...)");
        return -1;
    }
    PyObject *const *items = ((PyTupleObject *)row)->ob_item;
    Py_ssize_t count = PyTuple_GET_SIZE(row) - 2;
    const GlOp *op = find_op(items[0]);
    if (op == NULL) {
        return -1;
    }
    memset(node, 0, sizeof *node);
    node->op = op;
    node->run = op->run;
    if (op->operands >= 0 && count != op->operands) {
        PyErr_Format(PyExc_TypeError, "guard node %s takes %zd operands, not %zd", op->name, op->operands, count);
        return -1;
    }
    if (take_parent(node, build, items[1]) < 0) {
        return -1;
    }
    return op->build == NULL ? 0 : op->build(node, build, items + 2, count);
}

static void clear_node(GlNode *node)
{
    if (node->op != NULL && node->op->clear != NULL && node->data != NULL) {
        node->op->clear(node);
    }
    Py_CLEAR(node->object);
    PyMem_Free(node->data);
    node->data = NULL;
}

static int build_nodes(GlProgram *self, PyObject *rows, int32_t *registers)
{
    GlBuild build = {registers, 0, 0};
    Py_ssize_t count = PySequence_Fast_GET_SIZE(rows);
    for (Py_ssize_t i = 0; i < count; i++) {
        GlNode *node = &self->nodes[i];
        self->size = i + 1; /* so that a half-built node is cleared as well */
        if (build_node(node, &build, PySequence_Fast_GET_ITEM(rows, i)) < 0) {
            return -1;
        }
        registers[i] = node->to = node->op->flags & GL_ACCESSOR ? (int32_t)self->registers++ : -1;
        if (node->to >= 0) {
            self->makers[node->to] = (int32_t)i;
        }
        build.nodes = i + 1;
    }
    self->calls_out = build.calls_out;
    return 0;
}

static int build_outputs(GlProgram *self, PyObject *indices, const int32_t *registers)
{
    GlBuild build = {registers, self->size, 0};
    PyObject *fast = PySequence_Fast(indices, "outputs must be a sequence");
    if (fast == NULL) {
        return -1;
    }
    self->noutputs = PySequence_Fast_GET_SIZE(fast);
    self->outputs = gl_registers(&build, PySequence_Fast_ITEMS(fast), self->noutputs);
    Py_DECREF(fast);
    return self->outputs == NULL ? -1 : 0;
}

static int build_program(GlProgram *self, PyObject *rows, PyObject *outputs)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(rows);
    int32_t *registers = PyMem_New(int32_t, count + 1);
    self->nodes = PyMem_Calloc(count + 1, sizeof(GlNode));
    self->makers = PyMem_New(int32_t, count + 1);
    self->suspect = -1;
    if (registers == NULL || self->nodes == NULL || self->makers == NULL) {
        PyMem_Free(registers);
        PyErr_NoMemory();
        return -1;
    }
    int failed = build_nodes(self, rows, registers) < 0 || build_outputs(self, outputs, registers) < 0;
    PyMem_Free(registers);
    if (!failed) {
        gl_memos_init(&self->memos, self->nodes, self->size);
    }
    return failed ? -1 : 0;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"nodes", "outputs", NULL};
    PyObject *nodes, *outputs = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:GuardProgram", names, &nodes, &outputs)) {
        return NULL;
    }
    PyObject *rows = PySequence_Fast(nodes, "nodes must be a sequence");
    PyObject *empty = PyTuple_New(0);
    GlProgram *self = rows && empty ? (GlProgram *)type->tp_alloc(type, 0) : NULL;
    if (self != NULL && build_program(self, rows, outputs ? outputs : empty) < 0) {
        Py_CLEAR(self);
    }
    Py_XDECREF(rows);
    Py_XDECREF(empty);
    return (PyObject *)self;
}

static int program_traverse(GlProgram *self, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < self->size; i++) {
        Py_VISIT(self->nodes[i].object);
    }
    Py_VISIT(self->audit);
    return 0;
}

static int program_clear(GlProgram *self)
{
    Py_CLEAR(self->audit);
    return 0;
}

static void program_dealloc(GlProgram *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->audit);
    gl_memos_clear(&self->memos);
    for (Py_ssize_t i = 0; i < self->size; i++) {
        clear_node(&self->nodes[i]);
    }
    PyMem_Free(self->nodes);
    PyMem_Free(self->makers);
    PyMem_Free(self->outputs);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* --- Python's face --- */

static int parse_call(PyObject *const *args, Py_ssize_t count, const char *name, GlRun *run)
{
    if (count != 2 || !PyTuple_Check(args[1])) {
        PyErr_Format(PyExc_TypeError, "%s() takes a function and a tuple of parameters", name);
        return -1;
    }
    run->function = args[0];
    run->params = ((PyTupleObject *)args[1])->ob_item;
    run->nparams = PyTuple_GET_SIZE(args[1]);
    return 0;
}

static PyObject *program_check(GlProgram *self, PyObject *const *args, Py_ssize_t count)
{
    GlRun run;
    Py_ssize_t failed;
    if (parse_call(args, count, "check", &run) < 0 || gl_program_run(self, &run, &failed, NULL) < 0) {
        return NULL;
    }
    return PyLong_FromSsize_t(failed);
}

static PyObject *program_bind(GlProgram *self, PyObject *const *args, Py_ssize_t count)
{
    GlRun run;
    Py_ssize_t failed;
    PyObject *bound = NULL;
    if (parse_call(args, count, "bind", &run) < 0 || gl_program_run(self, &run, &failed, &bound) < 0) {
        return NULL;
    }
    if (failed >= 0) {
        Py_RETURN_NONE;
    }
    return bound != NULL ? bound : PyTuple_New(0);
}

static PyObject *program_set_audit(GlProgram *self, PyObject *audit)
{
    Py_XSETREF(self->audit, audit == Py_None ? NULL : Py_NewRef(audit));
    Py_RETURN_NONE;
}

static PyObject *program_memos(GlProgram *self, PyObject *Py_UNUSED(ignored))
{
    Py_ssize_t facts, bytes;
    gl_memos_size(&self->memos, &facts, &bytes);
    return Py_BuildValue("inn", self->memos.count, facts, bytes);
}

static Py_ssize_t program_length(PyObject *self) { return ((GlProgram *)self)->size; }

static PyMethodDef program_methods[] = {
    {"check", (PyCFunction)(void (*)(void))program_check, METH_FASTCALL,
     "check(function, params) -> int\n\n-1 when all holds, else the index of the first node that does not."},
    {"bind", (PyCFunction)(void (*)(void))program_bind, METH_FASTCALL,
     "bind(function, params) -> tuple | None\n\nThe values of the outputs, or None when a guard fails."},
    {"set_audit", (PyCFunction)program_set_audit, METH_O,
     "set_audit(callable | None)\n\nCall it after each run with (function, params, failed node or -1)."},
    {"memos", (PyCFunction)program_memos, METH_NOARGS,
     "memos() -> (memos, facts, bytes)\n\nHow many runs are remembered, what they rest on, and the memory they take."},
    {"profile", (PyCFunction)gl_program_profile, METH_VARARGS,
     "profile(function, params, times) -> list\n\nMean time of each node in ns, up to one that does not hold; where a run is "
     "remembered,\nof what is asked in its place."},
    {"measure", (PyCFunction)gl_program_measure, METH_VARARGS,
     "measure(function, params, times) -> (failed, ns)\n\nRun many times; the last result and the mean time."},
    {NULL, NULL, 0, NULL},
};

static PySequenceMethods program_as_sequence = {.sq_length = program_length};

PyTypeObject GlGuardProgram_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "graphlift._C.GuardProgram",
    .tp_basicsize = sizeof(GlProgram),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A straight program of accessors and checks, run on a function and its flat parameters.",
    .tp_new = program_new,
    .tp_dealloc = (destructor)program_dealloc,
    .tp_traverse = (traverseproc)program_traverse,
    .tp_clear = (inquiry)program_clear,
    .tp_free = PyObject_GC_Del,
    .tp_methods = program_methods,
    .tp_as_sequence = &program_as_sequence,
};

static int add_ops(const GlOp *op)
{
    for (; op->name != NULL; op++) {
        PyObject *address = PyLong_FromVoidPtr((void *)op);
        int failed = address == NULL || PyDict_SetItemString(op_table, op->name, address) < 0;
        Py_XDECREF(address);
        if (failed) {
            return -1;
        }
    }
    return 0;
}

int gl_guards_init(PyObject *module)
{
    const GlOp *tables[] = {gl_root_ops,       gl_dict_access_ops, gl_object_access_ops, gl_slot_ops,
                            gl_iterator_ops,   gl_identity_ops,    gl_constant_ops,      gl_container_ops,
                            gl_tensor_ops,     gl_alias_ops,       gl_expression_ops,    gl_state_ops,
                            gl_namespace_ops};
    if (op_table == NULL && (op_table = PyDict_New()) == NULL) {
        return -1;
    }
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (add_ops(tables[i]) < 0) {
            return -1;
        }
    }
    if (gl_memos_check() < 0 || gl_deque_init() < 0 || gl_iterators_check() < 0 || PyModule_AddFunctions(module, gl_iterator_functions) < 0 ||
        PyModule_AddFunctions(module, gl_state_functions) < 0) {
        return -1;
    }
    return PyModule_AddType(module, &GlGuardProgram_Type);
}
