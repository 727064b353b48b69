// The contract between Python and the compute kernels: plain structs, and one table of functions per
// instruction set. A kernel allocates nothing, starts no thread, throws nothing, and keeps no state.
//
// Sizes: V words, D dimensions, stride = D rounded up to 16 floats. Rows are 64-byte aligned and the floats between
// D and stride are 0 and stay 0. Tables are updated in place, by several threads at once and without locks (ADR 1).
#pragma once
#include <cstddef>
#include <cstdint>

namespace skipgrad {

struct Tables {
    float* input;   // (V, stride)
    float* output;  // (V, stride)
    int32_t dim;
    int32_t stride;
};

// The distribution q that noise words are drawn from: word w for cumulative[w-1] <= u < cumulative[w].
struct Noise {
    const uint64_t* cumulative;  // (V), the last is 2^64-1
    const uint32_t* guide;       // (2^guide_bits), the first word whose cumulative exceeds i << (64 - guide_bits)
    int32_t guide_bits;
};

// Neighbors in a sentence that predict the words around them. Token i of the group stands at its place lead + i, and sees
// the place at a distance d, 0 < d <= window, with the weight (window + 1 - d) / window.
struct Group {
    int32_t tokens, places;  // tokens <= kGroup, lead + tokens <= places <= kGroup + 2 window
    int32_t lead;            // <= window
};
constexpr int32_t kGroup = 8;

// Predictions that a head handles in one step. The tokens, and the places, of the groups follow one another.
struct Block {
    int32_t tokens, places, groups;  // T, S, G
    const int32_t* input;            // (T) words
    const int32_t* output;           // (S) words
    const float* pairs;              // (T) the weights of the places that a token sees, summed
    const Group* group;              // (G)
};

// Block-shared negative sampling: `draws` noise words a block stand for `negatives` per pair.
struct Negative {
    int32_t negatives;  // K
    int32_t draws;      // N, a multiple of 8
};

// Part of a corpus to train on, or to evaluate: whole sentences, each ended by -1.
struct Shard {
    const int32_t* ids;
    int64_t count;
    int64_t position;      // of ids[0] in the corpus: a sentence is held out by its position
    const uint32_t* keep;  // (V) probability to keep a token, times 2^32 - 1
    uint64_t key;          // of the random stream: a function of seed, epoch and position
    uint64_t heldout_key;  // a function of the seed
    uint64_t heldout;      // share of the sentences that is held out, times 2^32
    int32_t window;
    int32_t block;           // T, tokens a block
    float lr_begin, lr_end;  // learning rate, linear over the shard
};

struct Totals {
    int64_t raw;      // tokens read (those of the sentences that were trained on, or evaluated)
    int64_t trained;  // tokens that survived subsampling
    double pairs;     // weights of the true pairs, summed
    double loss;      // weighted sum over the pairs, nats
};

// Consecutive rows of an output table that is scored whole (heads/softmax.h).
struct Rows {
    const float* u;     // (count, stride)
    const float* bias;  // (count), or null where there is none
    int64_t count;
    int32_t dim, stride;
};

// Hidden vectors that are scored against them; n is a multiple of kHiddenTile, what fills it up is 0 and weighs 0.
constexpr int kHiddenTile = 48;  // 48 = 3 registers of 16, 6 of 8, 12 of 4
struct Hidden {
    const float* rows;    // (n, stride)
    const float* packed;  // (n / kHiddenTile, dim, kHiddenTile), made by pack_hidden
    const float* weight;  // (n)
    int32_t n;
};

// The true pairs of each hidden vector, ordered by row: pairs next[i] .. end[i]-1 of hidden vector i.
struct Truth {
    const int32_t* row;  // `first` is the first of Rows
    const float* weight;
    int64_t* next;       // (n) the first pair at or behind `first`; is moved on behind the rows that were scored
    const int64_t* end;  // (n)
    int64_t first;
};

// Where `scale` times the gradients is added. The rows may be those that are scored: a tile is read before it changes.
struct Gradients {
    float* hidden;  // (n, stride)
    float* rows;    // (count, stride)
    float* bias;    // (count), or null
    float scale;
};

// A step of Adam; the corrections of its moments for having started at 0 are part of `rate` and `root`.
struct Adam {
    float rate;  // learning rate / (1 - beta1^t)
    float root;  // 1 / sqrt(1 - beta2^t)
    float beta1, beta2, epsilon;
};

struct Kernels {
    const char* isa;
    // Bytes of 64-byte aligned scratch for shards of at most `count` ids, blocks of at most `block` tokens and `window`
    // contexts on each side; for a single step, count = 0.
    size_t (*negative_scratch)(const Negative&, int32_t stride, int32_t window, int32_t block, int64_t count);
    // Trains on the shard's sentences that are not held out.
    void (*negative_train)(const Tables&, const Noise&, const Negative&, const Shard&, void* scratch, Totals*);
    // The loss of the sentences that are held out; the tables are only read.
    void (*negative_evaluate)(const Tables&, const Noise&, const Negative&, const Shard&, void* scratch, Totals*);
    // One step on a block with the given noise words (N): updates the tables, returns the loss.
    double (*negative_step)(const Tables&, const Block&, const Negative&, const int32_t* noise, float lr,
                            int32_t window, void* scratch);
    // Runs a register-only loop of fused multiply-adds and returns how many flop it did: the machine's peak.
    double (*fma_loop)(int64_t rounds);
    void (*pack_hidden)(const float* rows, int32_t n, int32_t dim, int32_t stride, float* packed);
    // Adds the rows to the running maximum (from -1e30) and the sum of exp(score - maximum) of each hidden vector (n).
    void (*softmax_forward)(const Rows&, const Hidden&, float* peaks, float* totals);
    // lse = peak + log(total) over all rows. Returns the loss of the rows without weight * lse.
    double (*softmax_backward)(const Rows&, const Hidden&, const float* lse, const Truth&, const Gradients&);
    // Negative sampling without noise; noise (count): K q of each row. Returns the loss of the rows.
    double (*logistic_backward)(const Rows&, const Hidden&, const float* noise, const Truth&, const Gradients&);
    // Updates n parameters with their gradient and its two moments; the gradient is set to 0.
    void (*adam_step)(float* x, float* g, float* m, float* s, int64_t n, const Adam&);
};

// The table for `isa` ("v2", "v3", "v4", "neon", "plain"), or nullptr where this machine cannot run it.
const Kernels* find_kernels(const char* isa);

// The fastest table that this machine runs.
const Kernels* best_kernels();

}  // namespace skipgrad
