/* What guard nodes and the program that runs them agree on.
 *
 * A program is a straight list of nodes. An *accessor* reads a place and puts the object into a register of
 * its own; a *check* looks at registers and says whether an assumption still holds. A place that is not there
 * is a guard that fails, never an exception. No node runs user code.
 *
 * Values are borrowed: nothing runs between two nodes that could drop them. Where that is not so (a node that
 * calls into torch's Python layer, which may let another thread run) the whole program runs in *owning* mode.
 *
 * Most answers of a program rest on little: as long as the version of a dictionary is the same, so is every value in
 * it. What each kind of node rests on is written beside it (`rests`); memo.c makes use of it. */

#ifndef GRAPHLIFT_GUARDS_NODE_H
#define GRAPHLIFT_GUARDS_NODE_H

#include "../graphlift.h"

#include <stdint.h>

/* The functions of a node all have one shape, whether or not they need all of it. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

typedef struct GlNode GlNode;
typedef struct GlOp GlOp;
typedef struct GlRecording GlRecording;

typedef struct {
    PyObject **values; /* one slot a register */
    PyObject **owned;  /* references to release at the end; room for one a register */
    Py_ssize_t nowned;
    PyObject *function;
    PyObject *const *params;
    Py_ssize_t nparams;
    int owning;
    int again; /* set by a node that failed only for want of owning mode */
} GlRun;

/* 1: go on; 0: the guard does not hold. Leaves no error set. */
typedef int (*GlNodeRun)(const GlNode *node, GlRun *run);

struct GlNode {
    GlNodeRun run;
    int32_t from; /* register of the parent */
    int32_t to;   /* register that an accessor writes */
    PyObject *object;
    Py_ssize_t number;
    void *data; /* PyMem memory, freed with the node */
    const GlOp *op;
};

typedef struct {
    const int32_t *registers; /* of each node built so far; -1 for a check */
    Py_ssize_t nodes;         /* nodes built so far */
    int calls_out;            /* set by a node that may let other threads run */
} GlBuild;

enum {
    GL_ROOT = 1,     /* has no parent */
    GL_ACCESSOR = 2, /* writes a register */
    GL_ALONE = 4,    /* a check that may be asked without those before it */
};

struct GlOp {
    const char *name;
    int flags;
    Py_ssize_t operands; /* how many; -1: any number */
    GlNodeRun run;
    /* Takes the operands in and may choose another `run`; 0, or -1 with an error set. NULL: nothing to take. */
    int (*build)(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count);
    /* Releases what `data` refers to (`object` and the memory itself are released by the program). */
    void (*clear)(GlNode *node);
    /* Asked behind a run in which all held, and only where the parent is fixed (see memo.c): notes the facts from which
     * it follows that the answer would be the same again. 1: they are all; 0: there is no knowing but by running the
     * node. NULL: always 0. */
    int (*rests)(const GlNode *node, GlRecording *recording);
};

/* Tables of the files in this folder, each ended by a row without a name. */
extern const GlOp gl_root_ops[], gl_dict_access_ops[], gl_object_access_ops[], gl_slot_ops[], gl_iterator_ops[],
    gl_identity_ops[], gl_constant_ops[], gl_container_ops[], gl_tensor_ops[], gl_alias_ops[], gl_expression_ops[],
    gl_state_ops[], gl_namespace_ops[];

static inline PyObject *gl_parent(const GlNode *node, const GlRun *run) { return run->values[node->from]; }

/* An accessor's result: a borrowed reference, or NULL when there is nothing. */
static inline int gl_put(const GlNode *node, GlRun *run, PyObject *value)
{
    if (value == NULL) {
        return 0;
    }
    if (run->owning) {
        run->owned[run->nowned++] = Py_NewRef(value);
    }
    run->values[node->to] = value;
    return 1;
}

/* An accessor's result: a new reference, or NULL (an error, if set, is dropped). */
int gl_put_new(const GlNode *node, GlRun *run, PyObject *value);

/* Releases what a run owns beyond its first `keep` references. */
static inline void gl_let_go(GlRun *run, Py_ssize_t keep)
{
    while (run->nowned > keep) {
        Py_DECREF(run->owned[--run->nowned]);
    }
}

/* The register written by the accessor with that index; -1 with an error set. */
int32_t gl_register(const GlBuild *build, PyObject *index);
/* The registers of `count` node indices as an array in PyMem memory; NULL with an error set. */
int32_t *gl_registers(const GlBuild *build, PyObject *const *indices, Py_ssize_t count);

/* --- objects held by a program ---
 * A program lies where the garbage collector cannot see it, so it owns nothing of the user's. An operand that
 * is a weak reference stands for its referent, and for nothing once that is gone. */

static inline int gl_is_weak(PyObject *held) { return PyWeakref_CheckRefExact(held); }

/* What a weak reference refers to, borrowed; None when it is gone. An object whose deallocation CPython has put off
 * (a long chain of them) is still entered in its references: it is gone, too, and must not be owned again. */
static inline PyObject *gl_referent(PyObject *reference)
{
    PyObject *object = ((PyWeakReference *)reference)->wr_object;
    return Py_REFCNT(object) > 0 ? object : Py_None;
}

/* The object that `held` stands for, borrowed; NULL when it is gone. */
static inline PyObject *gl_held(PyObject *held)
{
    if (!gl_is_weak(held)) {
        return held;
    }
    PyObject *object = gl_referent(held);
    return object == Py_None ? NULL : object;
}

/* Whether a class was made in C: no program can change it or drop it. */
static inline int gl_is_c_type(PyTypeObject *type)
{
    return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE);
}

/* --- constants (check_constants.c) --- */

/* Same exact type and same value, floats by their bits, collections item by item in order. */
int gl_same_constant(PyObject *expected, PyObject *value);
/* Whether an object is a constant through and through: comparing it runs no user code, holding it holds no user
 * object. */
int gl_is_constant(PyObject *value);

/* --- tensors (check_tensors.c) --- */

/* Whether the node is the check of a tensor, and whether a tensor passes it. */
int gl_is_tensor_check(const GlNode *node);
int gl_tensor_holds(const GlNode *node, PyObject *tensor);
/* Whether two such checks ask for the same. */
int gl_is_same_tensor_check(const GlNode *one, const GlNode *other);

/* --- dictionaries (dicts.c) --- */

typedef enum { GL_FOUND, GL_ABSENT, GL_UNSURE } GlFound;

typedef struct {
    PyObject *held; /* the key, or a weak reference to it */
    Py_hash_t hash;
    int by_identity; /* its equality might run user code: only the same object counts */
    Py_ssize_t hint; /* the entry of a table of strings where it was found last */
} GlKey;

int gl_key_init(GlKey *key, PyObject *held);
/* Looks a key up in the storage of a dict (or a subclass). UNSURE: only user code could tell. */
GlFound gl_dict_find(PyObject *dict, GlKey *key, PyObject **value);
/* Calls `visit` for each key in the order that iteration shows; stops at 0 and returns 0, else 1. */
int gl_dict_each_key(PyObject *dict, int (*visit)(PyObject *key, void *context), void *context);
/* Whether the order of keys can be read without running code of the program's: an OrderedDict hashes its keys for it. */
int gl_is_quiet_order(PyObject *dict);
/* The instance dictionary, borrowed, made real if the object keeps its attributes elsewhere; NULL: it has none. */
PyObject *gl_instance_dict(PyObject *object, int create);
/* Where an object has its instance dictionary, which has been made; NULL: nowhere, or it is a class. */
PyObject **gl_instance_dict_slot(PyObject *object);
/* The length that the C storage of a container tells; -1 when it has none. */
Py_ssize_t gl_length(PyObject *object);

/* Tries the layouts of this Python's iterators; 0, or -1 with an error set. */
int gl_iterators_check(void);

/* Finds the class `collections.deque`; -1 with an error set. */
int gl_deque_init(void);
extern PyMethodDef gl_iterator_functions[];

/* --- memos (memo.c): what `rests` may ask and note; those that note return 1, or 0 where it cannot be done --- */

/* What a register held, and whether it is fixed. */
PyObject *gl_recorded(const GlRecording *recording, int32_t from);
int gl_is_fixed(const GlRecording *recording, int32_t from);
/* What the node's parent held. */
PyObject *gl_recorded_parent(const GlNode *node, const GlRecording *recording);

/* A word at an address that is valid as long as the facts noted before hold; it must stay as it is now. */
int gl_rests_on_word(GlRecording *recording, const void *address);
/* The version of the dictionary, of a class exactly dict, in that register: all that it holds, and the order. */
int gl_rests_on_dict(GlRecording *recording, int32_t from);
/* That a dictionary found at a fixed place, to be in that register, is that very one and not another at its address. */
int gl_rests_on_being(GlRecording *recording, int32_t to, PyObject *dict);
/* What of a dictionary tells that this value is under a key, that it lacks the key, that an empty dictionary is there. */
int gl_rests_on_dict_value(GlRecording *recording, int32_t from, const GlKey *key, PyObject *value);
int gl_rests_on_absence(GlRecording *recording, int32_t from, const GlKey *key);
int gl_rests_on_emptiness(GlRecording *recording, int32_t from, const GlKey *key);
/* The version of such a dictionary that lives as long as the process. */
int gl_rests_on_lasting_dict(GlRecording *recording, PyObject *dict);
/* The version of the class in that register: all that a look-up along its order of resolution finds. */
int gl_rests_on_class(GlRecording *recording, int32_t from);
/* A weak reference of the program's has its referent still. */
int gl_rests_on_referent(GlRecording *recording, PyObject *reference);

/* --- state of the process (check_state.c) --- */

/* The version of a class, given one if need be; 0: it has none. */
unsigned int gl_class_version(PyTypeObject *class);

extern PyMethodDef gl_state_functions[];

#endif
