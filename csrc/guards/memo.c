/* Memos: the same answer for less.
 *
 * Behind a run in which all held, each node is asked what its answer rests on. A register is *fixed* when it must hold
 * the same object, alive all the time, as long as the facts noted so far are true: a value in a dictionary whose version
 * has not changed, a field that is set once and for all of an object that is fixed. Nodes about fixed registers rest on
 * a few words of memory (a version, the pointer to a class or an instance dictionary, a length), all others are run
 * again. Facts stand in the order of the nodes, and each is looked at only when those before it are true, so that no
 * address is read that might be gone.
 *
 * A version is never given out again, so it tells that a dictionary is that dictionary, too: where one is reached by
 * way of something that is not fixed (a parameter, a cell, an item of a list), the way is walked and version and address
 * are compared. That is how the memo of one object refuses another. No memo owns anything of the user's.
 *
 * A version is not all: CPython's quick store to an attribute lets go of the former value, whose finalizer may call anything,
 * before it gives the dictionary a new one. So the place of each value that was found is compared as well.
 *
 * A memo that does not say yes is no answer, but for the node of a true path that says no. What changes at every call
 * (a counter among the attributes, globals of a script that is running) is doubted after a while, and its nodes run. */

#include "memo.h"

#include "../compat/layouts.h"
#include "../runtime.h"
#include "../tensor_reader.h"
#include "../torch_state.h"

#include <string.h>
#include <time.h>

typedef enum { NODE, SAME, WORD, DICT_VERSION, CLASS_VERSION, TENSOR, EMPTY } FactKind;

typedef struct {
    int32_t kind;
    int32_t node; /* that it is charged to when it is not true */
    const void *at;
    uint64_t expected;
} Fact;

struct GlMemo {
    PyObject *anchor; /* an address to compare, nothing more */
    unsigned long hits;
    Py_ssize_t count, registers;
    Fact *facts;
    PyObject **values; /* by register */
    PyObject **owned;  /* room for one a register */
};

enum { DOUBTFUL = 2, SOON = 16, FIXED = 1, VERSIONED = 2, KEYED = 4 };

struct GlRecording {
    const GlNode *nodes;
    PyObject *const *values;
    const unsigned char *doubts;
    unsigned char *states; /* by register */
    int32_t *makers;       /* by register: the node that writes it */
    int32_t now;           /* the node that is asked */
    Fact *facts;
    Py_ssize_t count, room;
    int failed; /* memory was short */
};

static int versions_tell;        /* of dictionaries, all changes */
static int shared_versions_tell; /* also where the values are shared with the owner */

/* --- what nodes note --- */

PyObject *gl_recorded(const GlRecording *recording, int32_t from) { return recording->values[from]; }

int gl_is_fixed(const GlRecording *recording, int32_t from) { return recording->states[from] & FIXED; }

PyObject *gl_recorded_parent(const GlNode *node, const GlRecording *recording) { return recording->values[node->from]; }

static int is_doubted(const GlRecording *recording, int32_t node)
{
    return recording->doubts != NULL && recording->doubts[node] >= DOUBTFUL;
}

static int note(GlRecording *recording, FactKind kind, int32_t node, const void *at, uint64_t expected)
{
    if (recording->count == recording->room) {
        Py_ssize_t room = recording->room ? 2 * recording->room : 64;
        Fact *facts = PyMem_Realloc(recording->facts, (size_t)room * sizeof(Fact));
        if (facts == NULL) {
            recording->failed = 1;
            return 0;
        }
        recording->facts = facts;
        recording->room = room;
    }
    recording->facts[recording->count++] = (Fact){kind, node, at, expected};
    return 1;
}

int gl_rests_on_word(GlRecording *recording, const void *address)
{
    return note(recording, WORD, recording->now, address, *(const uint64_t *)address);
}

/* Where there are other keys than strings, what a look-up finds rests on the `__eq__` of their classes, too. */
static int has_version(PyObject *dict)
{
    return PyDict_CheckExact(dict) && gl_dict_has_only_strings((PyDictObject *)dict) && versions_tell &&
           (shared_versions_tell || !gl_dict_shares_values(dict));
}

static int note_version(GlRecording *recording, int32_t node, PyObject *dict)
{
    return note(recording, DICT_VERSION, node, gl_dict_version(dict), *gl_dict_version(dict));
}

int gl_rests_on_lasting_dict(GlRecording *recording, PyObject *dict)
{
    return has_version(dict) && note_version(recording, recording->now, dict);
}

int gl_rests_on_being(GlRecording *recording, int32_t to, PyObject *dict)
{
    if (has_version(dict)) {
        recording->states[to] |= VERSIONED;
        return note_version(recording, recording->now, dict);
    }
    /* Values that lie in the owner belong to one dictionary, and to no other ever after. */
    return gl_dict_shares_values(dict) && gl_rests_on_word(recording, &((PyDictObject *)dict)->ma_values);
}

int gl_rests_on_dict_value(GlRecording *recording, int32_t from, const GlKey *key, PyObject *value)
{
    if (!gl_rests_on_dict(recording, from)) {
        return 0;
    }
    PyObject **place = gl_value_place(recording->values[from], key->held, key->hint);
    return place != NULL && *place == value && gl_rests_on_word(recording, place);
}

/* The keys of a dictionary that shares its values with its owner belong to the class, and only ever become more. */
static int note_keys(GlRecording *recording, int32_t from)
{
    PyDictObject *dict = (PyDictObject *)recording->values[from];
    if (!(recording->states[from] & KEYED) && (!gl_rests_on_word(recording, &dict->ma_keys) ||
                                               !gl_rests_on_word(recording, &dict->ma_keys->dk_nentries))) {
        return 0;
    }
    recording->states[from] |= KEYED;
    return 1;
}

/* Where a shared value lies under a key; NULL: the class has no such key, or this is no such dictionary. */
static PyObject **shared_place(const GlRecording *recording, int32_t from, const GlKey *key, int *shares)
{
    PyObject *dict = recording->values[from];
    *shares = gl_is_fixed(recording, from) && !is_doubted(recording, recording->makers[from]) &&
              PyDict_CheckExact(dict) && gl_dict_shares_values(dict) && PyUnicode_CheckExact(key->held);
    return *shares ? gl_shared_value_at(dict, key->held) : NULL;
}

int gl_rests_on_absence(GlRecording *recording, int32_t from, const GlKey *key)
{
    int shares;
    if (gl_rests_on_dict(recording, from)) {
        return 1;
    }
    PyObject **place = shared_place(recording, from, key, &shares);
    return shares && note_keys(recording, from) && (place == NULL || gl_rests_on_word(recording, place));
}

int gl_rests_on_emptiness(GlRecording *recording, int32_t from, const GlKey *key)
{
    int shares;
    if (gl_rests_on_dict(recording, from)) {
        PyObject **lies = gl_value_place(recording->values[from], key->held, key->hint);
        return lies != NULL && note(recording, EMPTY, recording->now, lies, 0);
    }
    PyObject **place = shared_place(recording, from, key, &shares);
    return place != NULL && note_keys(recording, from) && note(recording, EMPTY, recording->now, place, 0);
}

/* Notes a version once a register; doubts about it are doubts about the node that reads the dictionary or class. */
static int note_once(GlRecording *recording, int32_t from, int (*noted)(GlRecording *, int32_t, PyObject *))
{
    int32_t maker = recording->makers[from];
    if (recording->states[from] & VERSIONED) {
        return 1;
    }
    if (!gl_is_fixed(recording, from) || is_doubted(recording, maker) ||
        !noted(recording, maker, recording->values[from])) {
        return 0;
    }
    recording->states[from] |= VERSIONED;
    return 1;
}

int gl_rests_on_dict(GlRecording *recording, int32_t from)
{
    return has_version(recording->values[from]) && note_once(recording, from, note_version);
}

static int note_class_version(GlRecording *recording, int32_t node, PyObject *class)
{
    unsigned int version = gl_class_version((PyTypeObject *)class);
    return version != 0 && note(recording, CLASS_VERSION, node, &((PyTypeObject *)class)->tp_version_tag, version);
}

int gl_rests_on_class(GlRecording *recording, int32_t from)
{
    return PyType_Check(recording->values[from]) && note_once(recording, from, note_class_version);
}

int gl_rests_on_referent(GlRecording *recording, PyObject *reference)
{
    const void *address = &((PyWeakReference *)reference)->wr_object;
    /* The same few classes again and again: look back a little. */
    Py_ssize_t first = recording->count > 64 ? recording->count - 64 : 0;
    for (Py_ssize_t i = recording->count - 1; i >= first; i--) {
        if (recording->facts[i].at == address) {
            return 1;
        }
    }
    return gl_rests_on_word(recording, address);
}

/* --- recording --- */

/* A dictionary or class that was found on a way that is not fixed is that very one if address and version are. */
static int note_found(GlRecording *recording, const GlNode *node, int32_t index)
{
    PyObject *value = recording->values[node->to];
    if (!has_version(value) && !PyType_Check(value)) {
        return 0;
    }
    Py_ssize_t before = recording->count;
    if (!note(recording, SAME, index, node, (uint64_t)(uintptr_t)value)) {
        return 0;
    }
    recording->states[node->to] = FIXED;
    if (!(PyType_Check(value) ? gl_rests_on_class(recording, node->to) : gl_rests_on_dict(recording, node->to))) {
        recording->states[node->to] = 0;
        recording->count = before;
        return 0;
    }
    return 1;
}

/* The check of a tensor, or one before it that asks for the same: fewer of them are fewer places in memory to visit. */
static const GlNode *shared_check(const GlRecording *recording, const GlNode *node)
{
    enum { LOOK_BACK = 64 };
    Py_ssize_t first = recording->count > LOOK_BACK ? recording->count - LOOK_BACK : 0;
    for (Py_ssize_t i = recording->count - 1; i >= first; i--) {
        const Fact *fact = &recording->facts[i];
        const GlNode *other = (const GlNode *)(uintptr_t)fact->expected;
        if (fact->kind == TENSOR && gl_is_same_tensor_check(node, other)) {
            return other;
        }
    }
    return node;
}

static void record_node(GlRecording *recording, const GlNode *node, int32_t index)
{
    int accessor = node->op->flags & GL_ACCESSOR, doubted = is_doubted(recording, index);
    int fixed = node->op->flags & GL_ROOT || gl_is_fixed(recording, node->from);
    Py_ssize_t before = recording->count;
    int32_t from = node->op->flags & GL_ROOT ? -1 : node->from;
    unsigned char state = from < 0 ? 0 : recording->states[from];
    recording->now = index;
    if (accessor) {
        recording->makers[node->to] = index;
    }
    if (accessor) {
        recording->states[node->to] = 0;
    }
    if (fixed && !doubted && node->op->rests != NULL && node->op->rests(node, recording)) {
        if (accessor) {
            recording->states[node->to] |= FIXED;
        }
        return;
    }
    recording->count = before;
    if (from >= 0) {
        recording->states[from] = state;
    }
    if (accessor) {
        recording->states[node->to] = 0;
    }
    if (accessor && !doubted && note_found(recording, node, index)) {
        return;
    }
    if (gl_is_tensor_check(node) && fixed) {
        uint64_t check = (uint64_t)(uintptr_t)shared_check(recording, node);
        note(recording, TENSOR, index, recording->values[node->from], check);
    } else {
        note(recording, NODE, index, node, 0);
    }
}

static void memo_free(GlMemo *memo)
{
    PyMem_Free(memo->facts);
    PyMem_Free(memo->values);
    PyMem_Free(memo);
}

/* Takes the facts over; NULL when memory is short. */
static GlMemo *memo_make(GlRecording *recording, Py_ssize_t registers, PyObject *anchor)
{
    GlMemo *memo = PyMem_Calloc(1, sizeof(GlMemo));
    PyObject **values = PyMem_New(PyObject *, 2 * registers + 1);
    if (memo == NULL || values == NULL || recording->failed) {
        PyMem_Free(memo);
        PyMem_Free(values);
        return NULL;
    }
    memcpy(values, recording->values, (size_t)registers * sizeof(PyObject *));
    Fact *facts = PyMem_Realloc(recording->facts, (size_t)(recording->count + 1) * sizeof(Fact));
    *memo = (GlMemo){.anchor = anchor,
                     .count = recording->count,
                     .registers = registers,
                     .facts = facts ? facts : recording->facts,
                     .values = values,
                     .owned = values + registers};
    recording->facts = NULL;
    return memo;
}

/* Whether it is worth having: most nodes need not be run. */
static int is_worthwhile(const GlRecording *recording, Py_ssize_t size)
{
    Py_ssize_t run = 0;
    for (Py_ssize_t i = 0; i < recording->count; i++) {
        run += recording->facts[i].kind == NODE || recording->facts[i].kind == SAME;
    }
    return run < size - size / 8;
}

static GlMemo *record(const GlMemos *memos, const GlNode *nodes, Py_ssize_t size, Py_ssize_t registers,
                      const GlRun *run, int *useless)
{
    GlRecording recording = {.nodes = nodes, .values = run->values, .doubts = memos->doubts};
    recording.states = PyMem_Calloc((size_t)registers + 1, 1);
    recording.makers = PyMem_Calloc((size_t)registers + 1, sizeof(int32_t));
    GlMemo *memo = NULL;
    if (recording.states != NULL && recording.makers != NULL) {
        for (Py_ssize_t i = 0; i < size && !recording.failed; i++) {
            record_node(&recording, &nodes[i], (int32_t)i);
        }
        *useless = !recording.failed && !is_worthwhile(&recording, size);
        if (!*useless) {
            memo = memo_make(&recording, registers, memos->anchor < 0 ? NULL : run->params[memos->anchor]);
        }
    }
    PyMem_Free(recording.facts);
    PyMem_Free(recording.states);
    PyMem_Free(recording.makers);
    return memo;
}

/* --- recalling --- */

static inline int is_empty_dict(PyObject *value)
{
    return value != NULL && PyDict_Check(value) && PyDict_GET_SIZE(value) == 0;
}

static inline GlRecall ask(const Fact *fact, GlRun *run)
{
    const GlNode *node = fact->at;
    switch ((FactKind)fact->kind) {
    case WORD:
        return *(const uint64_t *)fact->at == fact->expected ? GL_MEMO_HOLDS : GL_MEMO_UNSURE;
    case DICT_VERSION:
        return (*(const uint64_t *)fact->at ^ fact->expected) & GL_DICT_VERSION_MASK ? GL_MEMO_UNSURE : GL_MEMO_HOLDS;
    case TENSOR:
        node = (const GlNode *)(uintptr_t)fact->expected;
        return gl_tensor_holds(node, (PyObject *)(uintptr_t)fact->at) ? GL_MEMO_HOLDS : GL_MEMO_FAILS;
    case CLASS_VERSION:
        return *(const unsigned int *)fact->at == fact->expected ? GL_MEMO_HOLDS : GL_MEMO_UNSURE;
    case SAME:
        if (!node->run(node, run)) {
            return GL_MEMO_FAILS;
        }
        return (uintptr_t)run->values[node->to] == fact->expected ? GL_MEMO_HOLDS : GL_MEMO_UNSURE;
    case EMPTY:
        return is_empty_dict(*(PyObject *const *)fact->at) ? GL_MEMO_HOLDS : GL_MEMO_UNSURE;
    case NODE:
        return node->run(node, run) ? GL_MEMO_HOLDS : GL_MEMO_FAILS;
    }
    return GL_MEMO_UNSURE;
}

static GlRecall recall(const GlMemo *memo, GlRun *run, Py_ssize_t *at)
{
    const Fact *fact = memo->facts, *end = fact + memo->count;
    for (; fact < end; fact++) {
        GlRecall said = ask(fact, run);
        if (GL_UNLIKELY(said != GL_MEMO_HOLDS)) {
            *at = fact->node;
            return said;
        }
    }
    return GL_MEMO_HOLDS;
}

/* Lets the nodes work on the registers of a memo. */
static void use_registers(const GlMemo *memo, GlRun *run)
{
    run->values = memo->values;
    run->owned = memo->owned;
    run->nowned = 0;
    run->owning = 0;
}

static int find_memo(const GlMemos *memos, const GlRun *run)
{
    PyObject *anchor = memos->anchor < 0 || memos->anchor >= run->nparams ? NULL : run->params[memos->anchor];
    for (int i = 0; i < memos->count; i++) {
        if (memos->items[i]->anchor == anchor) {
            return i;
        }
    }
    return -1;
}

static void move_to_front(GlMemos *memos, int at)
{
    GlMemo *memo = memos->items[at];
    memmove(&memos->items[1], &memos->items[0], (size_t)at * sizeof(GlMemo *));
    memos->items[0] = memo;
}

GlRecall gl_recall(GlMemos *memos, GlRun *run, Py_ssize_t *at, GlMemo **used)
{
    *used = NULL;
    int found = gl_tensor_fallback || gl_state_fallback ? -1 : find_memo(memos, run);
    if (found < 0) {
        return GL_MEMO_UNSURE;
    }
    if (found > 0) {
        move_to_front(memos, found);
    }
    GlMemo *memo = *used = memos->items[0];
    use_registers(memo, run);
    GlRecall said = recall(memo, run, at);
    if (said == GL_MEMO_HOLDS) {
        memo->hits++;
        memos->missed = 0;
    }
    return said;
}

/* Counts a change that came soon. */
static void doubt(GlMemos *memos, const GlMemo *memo, Py_ssize_t node, Py_ssize_t size)
{
    if (memo->hits >= SOON) {
        return;
    }
    if (memos->doubts == NULL) {
        memos->doubts = PyMem_Calloc((size_t)size + 1, 1);
    }
    if (memos->doubts != NULL && memos->doubts[node] < UCHAR_MAX) {
        memos->doubts[node]++;
    }
}

static void put_in_front(GlMemos *memos, GlMemo *memo)
{
    if (memos->count == GL_MAX_MEMOS) {
        memo_free(memos->items[--memos->count]);
    }
    memos->count++;
    memmove(&memos->items[1], &memos->items[0], (size_t)(memos->count - 1) * sizeof(GlMemo *));
    memos->items[0] = memo;
}

void gl_remember(GlMemos *memos, const GlNode *nodes, Py_ssize_t size, Py_ssize_t registers, const GlRun *run,
                 GlMemo *used, Py_ssize_t refused_at)
{
    if (memos->useless || gl_tensor_fallback || gl_state_fallback) {
        return;
    }
    if (used != NULL && (memos->count == 0 || memos->items[0] != used)) {
        return; /* something ran in between */
    }
    if (used != NULL) {
        doubt(memos, used, refused_at, size);
        memo_free(used);
        memmove(&memos->items[0], &memos->items[1], (size_t)--memos->count * sizeof(GlMemo *));
    } else {
        unsigned long missed = ++memos->missed;
        if ((missed & (missed - 1)) != 0) {
            return; /* objects that are new at each call are not worth a memo each */
        }
    }
    GlMemo *memo = record(memos, nodes, size, registers, run, &memos->useless);
    if (memo != NULL) {
        put_in_front(memos, memo);
    }
}

int gl_recall_costs(const GlMemos *memos, GlRun *run, Py_ssize_t times, double (*now)(void), double *costs)
{
    int found = find_memo(memos, run);
    if (found < 0) {
        return 0;
    }
    const GlMemo *memo = memos->items[found];
    use_registers(memo, run);
    for (const Fact *fact = memo->facts; fact < memo->facts + memo->count; fact++) {
        Py_ssize_t owned = run->nowned;
        double start = now();
        for (Py_ssize_t i = 0; i < times; i++) {
            gl_let_go(run, owned);
            if (ask(fact, run) != GL_MEMO_HOLDS) {
                return 0;
            }
        }
        costs[fact->node] += (now() - start) / (double)times;
    }
    return 1;
}

/* --- whether versions tell --- */

/* Runs Python statements that change `d`, a dictionary; 1 when each gave it another version, -1 with an error set. */
static int each_tells(const char *make, const char *const *changes)
{
    PyObject *names = PyDict_New(), *done = NULL;
    int tells = names != NULL && PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) == 0 &&
                        (done = PyRun_String(make, Py_file_input, names, names)) != NULL
                    ? 1
                    : -1;
    Py_XDECREF(done);
    PyObject *dict = tells == 1 ? PyDict_GetItemString(names, "d") : NULL;
    for (; tells == 1 && *changes != NULL; changes++) {
        uint64_t before = *gl_dict_version(dict);
        done = PyRun_String(*changes, Py_file_input, names, names);
        tells = done == NULL ? -1 : ((*gl_dict_version(dict) ^ before) & GL_DICT_VERSION_MASK) != 0;
        Py_XDECREF(done);
    }
    Py_XDECREF(names);
    return tells;
}

int gl_memos_check(void)
{
    static const char *const changes[] = {"d['a'] = 1",  "d['a'] = 2",         "d.update(a=3)", "d['b'] = 1", "del d['b']",
                                          "d.pop('a')",  "d.setdefault('c')",  "d |= {'c': 1}", "d.popitem()",
                                          "d['a'] = 0",  "d.clear()",          NULL};
    /* `f` has run so often that its instructions have become those for this kind of object. */
    static const char *const of_object[] = {"f(o, 3)", "f(o, 4)", "o.b = 1", "del o.b", "d['a'] = 5", "o.a = 6", NULL};
#define OBJECT "class O: pass\no = O()\no.a = 0\nd = o.__dict__"
#define WARM "\ndef f(o, i): o.a = i\nfor i in range(99): f(o, -i)"
    versions_tell = each_tells("d = {}", changes);
    if (versions_tell == 1) {
        versions_tell = each_tells(OBJECT " = dict(o.__dict__)" WARM, of_object);
    }
    if (versions_tell == 1) {
        shared_versions_tell = each_tells(OBJECT WARM, of_object);
    }
    if (versions_tell < 0 || shared_versions_tell < 0) {
        versions_tell = shared_versions_tell = 0;
        return -1;
    }
    return 0;
}

/* --- life --- */

/* The parameter whose attributes are read first, mostly `self`. */
static Py_ssize_t find_anchor(const GlNode *nodes, Py_ssize_t size)
{
    for (Py_ssize_t i = 0; i < size; i++) {
        if (strcmp(nodes[i].op->name, "instance_dict") != 0) {
            continue;
        }
        for (Py_ssize_t j = 0; j < i; j++) {
            if (nodes[j].to == nodes[i].from && strcmp(nodes[j].op->name, "param") == 0) {
                return nodes[j].number;
            }
        }
    }
    return -1;
}

void gl_memos_init(GlMemos *memos, const GlNode *nodes, Py_ssize_t size)
{
    memset(memos, 0, sizeof *memos);
    memos->anchor = find_anchor(nodes, size);
}

void gl_memos_clear(GlMemos *memos)
{
    while (memos->count > 0) {
        memo_free(memos->items[--memos->count]);
    }
    PyMem_Free(memos->doubts);
    memos->doubts = NULL;
}

void gl_memos_size(const GlMemos *memos, Py_ssize_t *facts, Py_ssize_t *bytes)
{
    *facts = *bytes = 0;
    for (int i = 0; i < memos->count; i++) {
        const GlMemo *memo = memos->items[i];
        *facts += memo->count;
        *bytes += (Py_ssize_t)(sizeof(GlMemo) + (size_t)memo->count * sizeof(Fact)) +
                  2 * memo->registers * (Py_ssize_t)sizeof(PyObject *);
    }
}
