/* Growing regression trees over a finite table, and inserting one more observation into a grown tree.
 *
 * The setting. A look-ahead imagines thousands of states: the n real observations, and one to three imagined ones.
 * Each needs the predictions of an ensemble at all q candidates. Training each ensemble from scratch would cost n log n
 * per tree and state, yet a new observation mostly changes one leaf. So a tree is defined such that insertion and
 * training from scratch give the same tree, and the kernel inserts:
 *
 *   - The draws of a node are a hash of its place in the tree (seed at the root, parent's draw and side below), not of
 *     how many draws were made before. What happens in one subtree leaves the other alone.
 *   - A node's split depends on its own observations only. Sums over observations run in the order of their slots and
 *     an imagined observation has the last slot: the sums, too, are the same bits either way.
 *   - A split replaces the best one so far only if better by TIE of the node's sum of squares. Rounding cannot decide
 *     between equals; the first attribute tried and its lowest threshold do.
 *
 * Insertion walks down from the root. Where the split with the new observation is the old one, only the child in which
 * it falls changes; where it is another one, the subtree is grown anew. Nodes are immutable and new ones are made along
 * the path only, so a tree with one more observation shares most nodes with the tree before it, and siblings (states
 * that differ in their last imagined observation) start from the same parent tree. See batch.c for these levels.
 *
 * A subtree that is grown anew for one state is often grown anew for the next: where the observation does not enter,
 * its members are real observations only. Such subtrees are kept by place and members (Memo) and only painted again.
 *
 * One condition reaches across subtrees: min_variance compares a node with the whole bag, whose variance the new
 * observation changes. Every node therefore knows between which thresholds its subtree stays as it is (stopped, kept).
 *
 * Candidates. A tree's predictions are a row of q doubles. A set of candidates is a bit set; that of a child is the
 * parent's AND the table's set "code below cut". A new leaf writes its value at the bits of its set only.
 *
 * Split search. Only the order of feature values matters, so observations carry ranks. The sums of a node are binned by
 * rank, one set of bins per attribute; a bit set of touched bins gives their order without sorting and without a pass
 * over empty ones, which serves 3 distinct values and 50,000 alike.
 */
#include <math.h>
#include <string.h>

#include "forest.h"

static const double TIE = 1e-12; /* as in numpy_twin.py */

typedef struct {
    double gain;
    int32_t feature, low, high; /* codes on either side of the cut */
    int32_t cut;
} Split;

/* Draw number `index` of a node (splitmix64): 1, 2 keys of the children; 3, 5, ... order; 4, 6, ... thresholds. */
static inline uint64_t hashed(uint64_t key, uint64_t index) {
    uint64_t z = key + index * 0xD1B54A32D192ED03u + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline int lowest_bit(uint64_t word) { return __builtin_ctzll(word); }

/* First code at or above the threshold, within low+1..high. */
static int32_t cut_between(const Table *t, int feature, double threshold, int32_t low, int32_t high) {
    const double *values = t->values + t->starts[feature];
    int32_t from = low + 1, to = high;
    while (from < to) {
        int32_t middle = from + (to - from) / 2;
        if (values[middle] < threshold)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Position j of the Fisher-Yates permutation of attributes, drawn when it is needed. */
static int32_t next_attribute(Grower *g, uint64_t key, int j) {
    uint64_t left = (uint64_t)(g->table->d - j);
    int other = j + (int)(((hashed(key, 3 + 2 * (uint64_t)j) >> 32) * left) >> 32);
    int32_t attribute = g->order[other];
    g->order[other] = g->order[j];
    g->order[j] = attribute;
    return attribute;
}

/* The node's observations as a list; returns how many. */
static int list_members(Grower *g, const uint64_t *members) {
    int count = 0;
    for (int word = 0; word < g->member_words; word++)
        for (uint64_t rest = members[word]; rest; rest &= rest - 1) g->list[count++] = word * 64 + lowest_bit(rest);
    return count;
}

/* Sum the listed observations into the bins of `group` attributes. Several at once keep the adder busy: sums into one
 * bin wait for each other. Up to 64 codes the sets of touched bins stay in registers. */
static inline __attribute__((always_inline)) void fill_narrow(Grower *g, int count, const int32_t *features, int group) {
    const int32_t *codes[GROUP];
    uint64_t touched[GROUP] = {0};
    for (int k = 0; k < group; k++) codes[k] = g->slot_codes + (size_t)features[k] * g->slots;
    for (int i = 0; i < count; i++) {
        int slot = g->list[i];
        Sums sums = g->points[slot].sums;
        for (int k = 0; k < group; k++) {
            int code = codes[k][slot];
            g->bins[k * g->table->widest + code] += sums;
            touched[k] |= (uint64_t)1 << code;
        }
    }
    for (int k = 0; k < group; k++) g->touched[k] = touched[k];
}

static void fill_wide(Grower *g, int count, int32_t feature, int k) {
    const int32_t *codes = g->slot_codes + (size_t)feature * g->slots;
    uint64_t *touched = g->touched + (size_t)k * g->touched_words;
    for (int i = 0; i < count; i++) {
        int slot = g->list[i], code = codes[slot];
        g->bins[(size_t)k * g->table->widest + code] += g->points[slot].sums;
        touched[code >> 6] |= (uint64_t)1 << (code & 63);
    }
}

static void fill_bins(Grower *g, int count, const int32_t *features, int group) {
    if (g->touched_words > 1)
        for (int k = 0; k < group; k++) fill_wide(g, count, features[k], k);
    else if (group == 1)
        fill_narrow(g, count, features, 1);
    else if (group == 2)
        fill_narrow(g, count, features, 2);
    else if (group == 3)
        fill_narrow(g, count, features, 3);
    else
        fill_narrow(g, count, features, 4);
}

/* Reduction of the sum of squared deviations, given the left side's weight and sum; -1 if a side is too light. */
static inline double reduction(const Grower *g, const Node *node, Sums left, double whole) {
    double wl = left[0], sl = left[1], wr = node->w - wl, sr = node->s - sl, min_leaf = g->growth->min_leaf;
    if (wl < min_leaf || wr < min_leaf) return -1;
    return sl * sl * g->inverse[(int)wl] + sr * sr * g->inverse[(int)wr] - whole;
}

static inline void consider(Split *best, double gain, double tie, int32_t feature, int32_t low, int32_t high) {
    if (gain > best->gain + tie) *best = (Split){gain, feature, low, high, 0};
}

/* Best midpoint of one attribute, whose sums are in group k; empties its bins. */
static inline void scan_best(Grower *g, int k, int32_t feature, const Node *node, Split *best) {
    Sums *bins = g->bins + (size_t)k * g->table->widest, left = {0, 0};
    uint64_t *touched = g->touched + (size_t)k * g->touched_words;
    double whole = node->s * node->s * g->inverse[(int)node->w], tie = TIE * node->ss;
    int32_t low = -1;
    for (int word = 0; word < g->touched_words; word++) {
        for (uint64_t rest = touched[word]; rest; rest &= rest - 1) {
            int32_t code = word * 64 + lowest_bit(rest);
            if (low >= 0) consider(best, reduction(g, node, left, whole), tie, feature, low, code);
            left += bins[code];
            bins[code] = (Sums){0, 0};
            low = code;
        }
        touched[word] = 0;
    }
}

/* Smallest and largest touched code. */
static void touched_range(const uint64_t *touched, int words, int32_t *low, int32_t *high) {
    int first = 0, last = words - 1;
    while (!touched[first]) first++;
    while (!touched[last]) last--;
    *low = first * 64 + lowest_bit(touched[first]);
    *high = last * 64 + 63 - __builtin_clzll(touched[last]);
}

/* The cut of a random threshold between the values of two codes; `tried` counts the node's attributes. */
static int32_t random_cut(const Grower *g, uint64_t key, int tried, int32_t feature, int32_t low, int32_t high) {
    const double *values = g->table->values + g->table->starts[feature];
    double u = (double)(hashed(key, 4 + 2 * (uint64_t)tried) >> 11) * 0x1p-53;
    return cut_between(g->table, feature, values[low] + u * (values[high] - values[low]), low, high);
}

/* One random threshold between the node's smallest and largest value of the attribute; empties its bins. */
static void scan_random(Grower *g, int k, uint64_t key, int tried, const Node *node, Split *best) {
    Sums *bins = g->bins + (size_t)k * g->table->widest, left = {0, 0};
    uint64_t *touched = g->touched + (size_t)k * g->touched_words;
    int32_t feature = g->order[tried], low, high;
    touched_range(touched, g->touched_words, &low, &high);
    int32_t cut = low < high ? random_cut(g, key, tried, feature, low, high) : 0;
    for (int word = low >> 6; word <= high >> 6; word++) {
        for (uint64_t rest = touched[word]; rest; rest &= rest - 1) {
            int32_t code = word * 64 + lowest_bit(rest);
            if (code < cut) left += bins[code];
            bins[code] = (Sums){0, 0};
        }
        touched[word] = 0;
    }
    double whole = node->s * node->s * g->inverse[(int)node->w];
    if (low < high) consider(best, reduction(g, node, left, whole), TIE * node->ss, feature, cut - 1, cut);
}

/* Most nodes hold two observations. Every attribute that separates them gives the same two leaves: take the first. */
static Split split_pair(Grower *g, uint64_t key, const Node *node) {
    Split best = {g->growth->min_gain, -1, 0, 0, 0};
    double whole = node->s * node->s * g->inverse[(int)node->w];
    double gain = reduction(g, node, g->points[g->list[0]].sums, whole);
    if (!(gain > best.gain + TIE * node->ss)) return best;
    for (int tried = 0; tried < g->table->d; tried++) {
        int32_t feature = next_attribute(g, key, tried);
        const int32_t *codes = g->slot_codes + (size_t)feature * g->slots;
        int32_t a = codes[g->list[0]], b = codes[g->list[1]], low = a < b ? a : b, high = a < b ? b : a;
        if (a == b) continue;
        if (g->growth->random_splits) high = random_cut(g, key, tried, feature, low, high);
        return (Split){gain, feature, low, high, 0};
    }
    return best;
}

/* `attributes` attributes in random order, and on until one gains. */
static Split search(Grower *g, uint64_t key, const Node *node, int count) {
    Split best = {g->growth->min_gain, -1, 0, 0, 0};
    int d = g->table->d, wanted = g->growth->attributes < d ? g->growth->attributes : d;
    for (int tried = 0, group; tried < wanted || (tried < d && best.feature < 0); tried += group) {
        group = tried + GROUP <= wanted ? GROUP : tried < wanted ? wanted - tried : 1;
        for (int k = 0; k < group; k++) next_attribute(g, key, tried + k);
        fill_bins(g, count, g->order + tried, group);
        for (int k = 0; k < group; k++) {
            if (g->growth->random_splits)
                scan_random(g, k, key, tried + k, node, &best);
            else
                scan_best(g, k, g->order[tried + k], node, &best);
        }
    }
    return best;
}

/* The node's split; feature -1: none. */
static Split find_split(Grower *g, uint64_t key, const Node *node) {
    const Table *t = g->table;
    Split best = {g->growth->min_gain, -1, 0, 0, 0};
    int count = list_members(g, node->members);
    if (count < 2) return best;
    for (int f = 0; f < t->d; f++) g->order[f] = f;
    best = count == 2 ? split_pair(g, key, node) : search(g, key, node, count);
    if (best.feature >= 0) {
        const double *values = t->values + t->starts[best.feature];
        double middle = 0.5 * values[best.low] + 0.5 * values[best.high];
        best.cut = g->growth->random_splits ? best.high : cut_between(t, best.feature, middle, best.low, best.high);
    }
    return best;
}

static Node *new_node(Grower *g) {
    Node *node = (Node *)g->free_node;
    g->free_node += g->node_bytes;
    return node;
}

static inline double variance_of(double w, double s, double ss) { return ss / w - (s / w) * (s / w); }

/* The candidates on one side of a split, into the next depth's set. */
static void restrict_candidates(Grower *g, int depth, int32_t feature, int32_t cut, int side) {
    const Table *t = g->table;
    const uint64_t *from = g->candidates + (size_t)depth * t->words;
    uint64_t *to = g->candidates + (size_t)(depth + 1) * t->words, flip = side ? ~(uint64_t)0 : 0;
    if (t->below) {
        const uint64_t *below = t->below + (size_t)(t->starts[feature] + cut) * t->words;
        for (int word = 0; word < t->words; word++) to[word] = from[word] & (below[word] ^ flip);
        return;
    }
    const int32_t *codes = t->codes + (size_t)feature * t->q;
    for (int word = 0; word < t->words; word++) {
        uint64_t below = 0;
        if (from[word])
            for (int i = word * 64; i < t->q && i < word * 64 + 64; i++)
                below |= (uint64_t)(codes[i] < cut) << (i & 63);
        to[word] = from[word] & (below ^ flip);
    }
}

static void write_at(double *row, const uint64_t *set, int words, double value) {
    for (int word = 0; word < words; word++)
        for (uint64_t rest = set[word]; rest; rest &= rest - 1) row[word * 64 + lowest_bit(rest)] = value;
}

/* Spread a leaf's value over its candidates. */
static void paint_leaf(Grower *g, const Node *leaf, int depth) {
    const uint64_t *set = g->candidates + (size_t)depth * g->table->words;
    double mean = leaf->s / leaf->w, squares = 0;
    write_at(g->mean, set, g->table->words, mean);
    if (!g->variance) return;
    for (int word = 0; word < g->member_words; word++) /* around the mean: a sum of squares would cancel */
        for (uint64_t rest = leaf->members[word]; rest; rest &= rest - 1) {
            const Point *point = &g->points[word * 64 + lowest_bit(rest)];
            double away = point->target - mean;
            squares += point->sums[0] * away * away;
        }
    write_at(g->variance, set, g->table->words, squares / leaf->w);
}

/* Make the node a leaf. */
static const Node *close_leaf(Grower *g, Node *leaf, int depth, double stopped) {
    leaf->child[0] = leaf->child[1] = NULL;
    leaf->feature = -1;
    leaf->stopped = stopped;
    leaf->kept = INFINITY;
    paint_leaf(g, leaf, depth);
    return leaf;
}

static void join(Node *node, const Split *split, double variance, const Node *left, const Node *right) {
    node->feature = split->feature;
    node->cut = split->cut;
    node->child[0] = left;
    node->child[1] = right;
    node->stopped = left->stopped > right->stopped ? left->stopped : right->stopped;
    node->kept = fmin(variance, fmin(left->kept, right->kept));
}

/* The members on one side of a split as a node to be grown. */
static Node *side_of(Grower *g, const Node *node, const Split *split, int side) {
    const int32_t *codes = g->slot_codes + (size_t)split->feature * g->slots;
    Node *child = new_node(g);
    Sums sums = {0, 0};
    double ss = 0;
    for (int word = 0; word < g->member_words; word++) {
        uint64_t set = 0;
        for (uint64_t rest = node->members[word]; rest; rest &= rest - 1) {
            uint64_t above = codes[word * 64 + lowest_bit(rest)] >= split->cut;
            set |= (rest & -rest) & -(uint64_t)(above == (uint64_t)side);
        }
        child->members[word] = set;
        for (uint64_t rest = set; rest; rest &= rest - 1) {
            const Point *point = &g->points[word * 64 + lowest_bit(rest)];
            sums += point->sums;
            ss += point->wyy;
        }
    }
    child->w = sums[0];
    child->s = sums[1];
    child->ss = ss;
    return child;
}

/* The rules that make a node a leaf without a search. Sets `variance`, and `stopped` if the variance rule applied. */
static int ends(const Grower *g, const Node *node, double *variance, double *stopped) {
    *stopped = -INFINITY;
    *variance = INFINITY;
    if (node->w < 2.0 * g->growth->min_leaf) return 1;
    if (g->growth->min_variance <= 0) return 0;
    *variance = variance_of(node->w, node->s, node->ss);
    if (*variance >= g->least_variance) return 0;
    *stopped = *variance;
    return 1;
}

static const Node *grow_kept(Grower *g, Node *node, uint64_t key, int depth);

/* Grow the subtree of a node whose sums and members are set and whose candidates are those of this depth. */
static const Node *grow(Grower *g, Node *node, uint64_t key, int depth) {
    double variance, stopped;
    if (ends(g, node, &variance, &stopped)) return close_leaf(g, node, depth, stopped);
    Split split = find_split(g, key, node);
    if (split.feature < 0) return close_leaf(g, node, depth, stopped);
    const Node *child[2];
    for (int side = 0; side < 2; side++) {
        restrict_candidates(g, depth, split.feature, split.cut, side);
        child[side] = grow_kept(g, side_of(g, node, &split, side), hashed(key, 1 + (uint64_t)side), depth + 1);
    }
    join(node, &split, variance, child[0], child[1]);
    return node;
}

static void copy_members(const Grower *g, Node *node, const Node *old) {
    memcpy(node->members, old->members, (size_t)g->member_words * sizeof(uint64_t));
    node->w = old->w;
    node->s = old->s;
    node->ss = old->ss;
}

/* Spread the leaves of a grown subtree over the candidates of this depth. */
static void paint(Grower *g, const Node *node, int depth) {
    if (node->feature < 0) {
        paint_leaf(g, node, depth);
        return;
    }
    for (int side = 0; side < 2; side++) {
        restrict_candidates(g, depth, node->feature, node->cut, side);
        paint(g, node->child[side], depth + 1);
    }
}

/* Whether a subtree grown for one bag variance holds for the present one. */
static inline int holds(const Grower *g, const Node *node) {
    return g->growth->min_variance <= 0 || (node->stopped < g->least_variance && g->least_variance <= node->kept);
}

/* Members worth a place in the memo: three or more, all real. 0 if not so, else their number. */
static int worth_keeping(const Grower *g, const Node *node) {
    int count = 0;
    for (int word = 0; word < g->member_words; word++) count += __builtin_popcountll(node->members[word]);
    for (int slot = g->real; slot < g->slots; slot++)
        if (node->members[slot >> 6] >> (slot & 63) & 1) return 0;
    return g->memo.capacity && count > 2 ? count : 0;
}

/* Where the subtree is kept, or the free place for it. */
static Kept *find_kept(const Grower *g, uint64_t key, const Node *node) {
    size_t mask = g->memo.capacity - 1, bytes = (size_t)g->member_words * sizeof(uint64_t);
    uint64_t mixed = key + (uint64_t)g->tree;
    for (int word = 0; word < g->member_words; word++) mixed = (mixed ^ node->members[word]) * 0x9E3779B97F4A7C15u;
    for (size_t at = (size_t)(mixed >> 32) & mask;; at = (at + 1) & mask) {
        Kept *kept = &g->memo.entries[at];
        if (!kept->node) return kept;
        if (kept->key == key && kept->tree == g->tree && !memcmp(kept->node->members, node->members, bytes)) return kept;
    }
}

/* Grow a node that may be in the memo already, and keep it there if there is room. `node` is the last one allocated. */
static const Node *grow_kept(Grower *g, Node *node, uint64_t key, int depth) {
    int count = worth_keeping(g, node);
    if (!count) return grow(g, node, key, depth);
    Memo *memo = &g->memo;
    Kept *kept = find_kept(g, key, node);
    if (kept->node && holds(g, kept->node)) {
        g->free_node -= g->node_bytes;
        paint(g, kept->node, depth);
        return kept->node;
    }
    size_t bytes = g->node_bytes * 2 * (size_t)count;
    if (kept->node || memo->used * 4 >= memo->capacity * 3 || (!g->lasting && memo->next + bytes > memo->end))
        return grow(g, node, key, depth);
    if (g->lasting)
        grow(g, node, key, depth);
    else { /* move the node to lasting memory and grow it there */
        char *level = g->free_node - g->node_bytes;
        g->free_node = memo->next;
        node = memcpy(new_node(g), node, g->node_bytes);
        g->lasting = 1;
        grow(g, node, key, depth);
        g->lasting = 0;
        memo->next = g->free_node;
        g->free_node = level;
    }
    *find_kept(g, key, node) = (Kept){key, node, g->tree}; /* again: growing may have taken the place */
    memo->used++;
    return node;
}

/* A subtree that the new observation does not enter: the same, unless the bag's variance moved a leaf. */
static const Node *revise(Grower *g, const Node *old, uint64_t key, int depth) {
    if (holds(g, old)) return old;
    Node *node = new_node(g);
    copy_members(g, node, old);
    return grow(g, node, key, depth);
}

static const Node *insert(Grower *g, const Node *old, uint64_t key, int depth, int slot) {
    const Point *point = &g->points[slot];
    Node *node = new_node(g);
    copy_members(g, node, old);
    node->members[slot >> 6] |= (uint64_t)1 << (slot & 63);
    node->w += point->sums[0];
    node->s += point->sums[1];
    node->ss += point->wyy;

    double variance, stopped;
    if (ends(g, node, &variance, &stopped)) return close_leaf(g, node, depth, stopped);
    Split split = find_split(g, key, node);
    if (split.feature < 0) return close_leaf(g, node, depth, stopped);
    int same = old->feature == split.feature && old->cut == split.cut;
    int entered = g->slot_codes[(size_t)split.feature * g->slots + slot] >= split.cut;
    const Node *child[2];
    for (int side = 0; side < 2; side++) {
        uint64_t child_key = hashed(key, 1 + (uint64_t)side);
        if (same && side != entered && g->growth->min_variance <= 0) {
            child[side] = old->child[side];
            continue;
        }
        restrict_candidates(g, depth, split.feature, split.cut, side);
        if (!same)
            child[side] = grow_kept(g, side_of(g, node, &split, side), child_key, depth + 1);
        else if (side == entered)
            child[side] = insert(g, old->child[side], child_key, depth + 1, slot);
        else
            child[side] = revise(g, old->child[side], child_key, depth + 1);
    }
    join(node, &split, variance, child[0], child[1]);
    return node;
}

static void set_bag_variance(Grower *g, double w, double s, double ss) {
    g->least_variance = g->growth->min_variance * variance_of(w, s, ss);
}

/* Grow a tree on all slots with a weight. An empty bag gives a leaf of weight 0, whose row is left to the caller. */
const Node *grow_tree(Grower *g, uint64_t seed) {
    Node *root = new_node(g);
    memset(root, 0, g->node_bytes);
    for (int slot = 0; slot < g->slots; slot++) {
        if (g->points[slot].sums[0] <= 0) continue;
        root->members[slot >> 6] |= (uint64_t)1 << (slot & 63);
        root->w += g->points[slot].sums[0];
        root->s += g->points[slot].sums[1];
        root->ss += g->points[slot].wyy;
    }
    if (root->w <= 0) {
        root->feature = -1;
        root->stopped = -INFINITY;
        root->kept = INFINITY;
        return root;
    }
    set_bag_variance(g, root->w, root->s, root->ss);
    return grow(g, root, seed, 0);
}

/* The tree with one more observation, whose weight is positive; g->mean holds the old tree's row. */
const Node *insert_observation(Grower *g, const Node *root, uint64_t seed, int slot) {
    const Point *point = &g->points[slot];
    set_bag_variance(g, root->w + point->sums[0], root->s + point->sums[1], root->ss + point->wyy);
    return insert(g, root, seed, 0, slot);
}
