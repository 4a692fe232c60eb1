/* What one run of a program found, and the fewest facts from which it follows that another run would find the same. */

#ifndef GRAPHLIFT_GUARDS_MEMO_H
#define GRAPHLIFT_GUARDS_MEMO_H

#include "node.h"

enum { GL_MAX_MEMOS = 32 };

typedef struct GlMemo GlMemo;

/* The memos of a program, the one that held last in front. */
typedef struct {
    GlMemo *items[GL_MAX_MEMOS];
    int count;
    int useless;           /* nothing in the program can be remembered */
    Py_ssize_t anchor;     /* memos are told apart by that parameter; -1: there is nothing to tell them apart by */
    unsigned long missed;  /* runs in a row that held and for which there was no memo */
    unsigned char *doubts; /* by node: how often what it found had changed soon after; NULL: never */
} GlMemos;

typedef enum { GL_MEMO_HOLDS, GL_MEMO_FAILS, GL_MEMO_UNSURE } GlRecall;

/* Sets `memos` up for a program. */
void gl_memos_init(GlMemos *memos, const GlNode *nodes, Py_ssize_t size);
void gl_memos_clear(GlMemos *memos);

/* Whether the program holds, told from a memo. HOLDS: run->values are what it finds. FAILS: at node `*at`. UNSURE: it
 * must be run; `*used` is the memo that did not say, or NULL. */
GlRecall gl_recall(GlMemos *memos, GlRun *run, Py_ssize_t *at, GlMemo **used);

/* Remembers a run in which all held, if that will pay; in place of `used`, which was unsure of node `refused_at`, if there
 * was one. Nothing may have run in between. */
void gl_remember(GlMemos *memos, const GlNode *nodes, Py_ssize_t size, Py_ssize_t registers, const GlRun *run,
                 GlMemo *used, Py_ssize_t refused_at);

/* Adds to `costs`, by node, the mean time in ns, by the clock `now`, of asking for the facts that a memo charges to it;
 * 0 when there is no memo that holds. */
int gl_recall_costs(const GlMemos *memos, GlRun *run, Py_ssize_t times, double (*now)(void), double *costs);

/* Tries whether versions of dictionaries tell what they should; 0, or -1 with an error set. */
int gl_memos_check(void);

/* How many facts the memos rest on, and how many bytes they take. */
void gl_memos_size(const GlMemos *memos, Py_ssize_t *facts, Py_ssize_t *bytes);

#endif
