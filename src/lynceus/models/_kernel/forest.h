/* The kernel's types. forest.c says how it works; letters as in values.py:
 * b states, q candidate rows, d features, n real and e imagined observations, m metrics. */
#ifndef LYNCEUS_FOREST_H
#define LYNCEUS_FOREST_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Vector loops are compiled for several widths where the loader can choose. Without contraction every width gives
 * the same bits. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define WIDE
#endif

enum { GROUP = 4 }; /* attributes that are summed up at once */

/* Rows of doubles are padded to whole blocks, so vector loops need no remainder. */
enum { BLOCK = 16 };
typedef double Lanes __attribute__((vector_size(64), aligned(8), may_alias));
static inline size_t padded(int q) { return ((size_t)q + BLOCK - 1) / BLOCK * BLOCK; }

/* The candidate table: ranks of the values, the values themselves, and bit sets of candidates below a rank. */
typedef struct {
    int q, d, words;         /* words of 64 candidates */
    int widest;              /* most distinct values of a feature */
    const int32_t *codes;    /* [d,q] */
    const double *values;    /* distinct values, feature after feature */
    const int64_t *starts;   /* [d+1] */
    const uint64_t *below;   /* [values,words], or NULL if too large to keep */
} Table;

typedef struct {
    int attributes, min_leaf, random_splits, total_spread;
    double min_gain, min_variance;
} Growth;

/* Everything that the states of a call share. */
typedef struct {
    Table table;
    Growth growth;
    int n, e, m, trees;
    int64_t b;
    const int64_t *rows;        /* [n] */
    const double *target;       /* [m,n] */
    const int32_t *bags;        /* [m,trees,n] */
    const uint64_t *seeds;      /* [m,trees] */
    const int64_t *extra_rows;  /* [b,e] */
    const double *extra_target; /* [b,e,m] */
    const int32_t *extra_bags;  /* [m,trees,e] */
} Problem;

enum { PRODUCT, EXACT, LOGNORMAL };

/* What pick maximises; see acquisition.py. */
typedef struct {
    int form, constraints;
    double confidence_z;
    const uint8_t *open;                                    /* [q] */
    const double *best, *worst, *left;                      /* [b] */
    const double *ceiling, *price, *boot, *minimum;         /* [q] or NULL */
    const int64_t *constraint_metric, *constraint_sign;     /* [constraints] */
    const double *constraint_bound;                         /* [constraints,q] */
} Acquisition;

/* Where the results go: predict fills mean and std [b,q,m]; pick fills row, value [b] and mean, std [b,m]. */
typedef struct {
    double *mean, *std, *value;
    int64_t *row;
} Answer;

/* Weight and weighted sum of targets, added up together. */
typedef double Sums __attribute__((vector_size(16)));

/* One observation in one tree's bag. */
typedef struct {
    Sums sums;          /* weight; weight * target (the target is centred) */
    double wyy, target; /* weight * target^2 */
} Point;

/* A node is never changed once made: inserting an observation makes new nodes along its path and shares the rest. */
typedef struct Node {
    const struct Node *child[2]; /* NULL in a leaf */
    int32_t feature, cut;        /* left: code < cut */
    double w, s, ss;             /* sums of Point over the node */
    double stopped, kept;        /* largest variance at which a leaf below was stopped, smallest of an inner node */
    uint64_t members[];          /* bit set of observations */
} Node;

/* Subtrees on real observations only, by tree, place and members: after another split the rest is often the same. */
typedef struct {
    uint64_t key;
    const Node *node; /* NULL: free */
    int tree;
} Kept;
typedef struct {
    Kept *entries;      /* [capacity], a power of two */
    size_t capacity, used;
    char *next, *end;   /* room for their nodes, which live as long as the batch */
} Memo;

/* One thread's memory for growing trees: the first part is set per tree, the second is scratch. */
typedef struct {
    const Table *table;
    const Growth *growth;
    int slots, real, member_words; /* n + e observations, n; words of a member set */
    int tree;                 /* number of the current tree */
    int lasting;              /* whether free_node is memory that lives as long as the batch */
    Memo memo;
    int32_t *slot_codes;      /* [d,slots] codes of the observations */
    double *target;           /* [m,slots], centred */
    const double *inverse;    /* [heaviest bag + 1] reciprocals of weights */
    const Point *points;      /* [slots] of the current tree */
    double least_variance;    /* of the current bag: below it a node is a leaf */
    double *mean, *variance;  /* [padded q] the current tree's leaves, spread over the candidates (variance may be NULL) */
    char *free_node;          /* bump allocator of the current level */
    size_t node_bytes;
    uint64_t *candidates;     /* [depth,words] candidate set of the node at each depth */
    int32_t *order;           /* [d] */
    int32_t *list;            /* [slots] members of the node at hand */
    Sums *bins;               /* [GROUP,widest], zero between uses */
    uint64_t *touched;        /* [GROUP,touched_words], zero between uses */
    int touched_words;
} Grower;

const Node *grow_tree(Grower *g, uint64_t seed);
const Node *insert_observation(Grower *g, const Node *root, uint64_t seed, int slot);

/* acquisition.c */
void prepare_normal_tables(void);
double normal_cdf(double z);
double normal_hinge(double z); /* z Phi(z) + phi(z) */
typedef struct {
    const double *mean, *std; /* [m,padded q] of the state */
    const int64_t *closed;    /* [e] its imagined rows */
    double *bound, *highest;  /* [q], [q / BLOCK] scratch */
    uint8_t *allowed;         /* [q] scratch */
    double *strike, *log_strike, *log_ceiling; /* [q] of the lognormal form, for ... */
    double held_best;         /* ... this best; NaN before the first */
} Scene;
void pick_row(const Problem *p, const Acquisition *acquisition, Scene *scene, int64_t state, Answer *out);

/* batch.c: acquisition NULL for predict. Returns 0, or -1 if memory ran out. */
int run_batch(const Problem *p, const Acquisition *acquisition, const Answer *out, int threads);

#endif
