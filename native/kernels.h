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
    float* output;  // (rows of the head, stride)
    float* bias;    // (rows of the head) added to the scores, and learned; nullptr: none
    int32_t dim;
    int32_t stride;
};

// The distribution q that words are drawn from: word w for cumulative[w-1] <= u < cumulative[w].
struct Noise {
    const uint64_t* cumulative;  // (V), the last is 2^64-1
    const uint32_t* guide;       // (2^guide_bits), the first word whose cumulative exceeds i << (64 - guide_bits)
    int32_t guide_bits;
};

// Neighbors in a sentence. Token i of the group stands at its place lead + i, and sees the place at a distance d,
// 0 < d <= window, with the weight (window + 1 - d) / window.
struct Group {
    int32_t tokens, places;  // tokens <= kGroup, lead + tokens <= places <= kGroup + 2 window
    int32_t lead;            // <= window
};
constexpr int32_t kGroup = 8;
constexpr int32_t kMaxWindow = 50;

// Tokens that a head handles in one step. The tokens, and the places, of the groups follow one another.
struct Block {
    int32_t tokens, places, groups;  // T, S, G
    const int32_t* token;            // (T) words
    const int32_t* place;            // (S) words
    const float* pairs;              // (T) the weights of the places that a token sees, summed
    const Group* group;              // (G)
};

// What predicts what. kSkipGram: a token's input row predicts the words at its places. kMean, kSum: the weighted mean, or
// sum, of the input rows of its places predicts the token (CBOW).
enum Encoder : int32_t { kSkipGram, kMean, kSum };

// Words that are likely around a word c, by id: near words n[c] with the cumulative probabilities, `count` of them.
// A block draws half of its words from those of its tokens in turn: q_n = (noise_n + mean over tokens i of near_n[c_i]) / 2.
struct Near {
    const int32_t* words;      // (V, count) ascending; nullptr: all draws come from the noise
    const float* cumulative;   // (V, count), the last is 1
    const float* probability;  // (V) of the noise
    int32_t count;
};

enum HeadKind : int32_t { kNegative, kNce, kImportance, kSampled, kHierarchical, kSoftmax, kAdaptive };

struct Head {
    HeadKind kind;
    // Heads that draw: a block shares `draws` rows, words 0 .. exact-1 and then words drawn from `noise`.
    Noise noise;
    int32_t draws;        // N, a multiple of 8
    int32_t exact;        // kImportance; a multiple of 8 below N
    float share;          // K/N, of a draw in each pair: kNegative, kNce
    const float* offset;  // (V) added to the score of a drawn word, -log(K q), -log(N q); nullptr: nothing
    Near near;            // kImportance, kSampled: half of the draws come from here
    float* mass;          // (V) kImportance: what the model gave to each draw is added, P w; nullptr: nothing
    int32_t included;  // true words have no offset; kSampled: they are in the sum always, and draws of them are masked
    // kHierarchical: 2 node + side of each step of a word's path, side 1 is left.
    const int64_t* begins;  // (V + 1)
    const int32_t* steps;   // (begins[V])
    int32_t longest;        // steps of the longest path
    int32_t nodes;          // V - 1
    // kSoftmax, kAdaptive: words below ends[0] are the short list, below ends[k] those of cluster k.
    const int64_t* ends;  // (levels), the last is V; behind the words stand the clusters' rows
    int32_t levels;
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
    int64_t raw;       // tokens read (those of the sentences that were trained on, or evaluated)
    int64_t trained;   // tokens that survived subsampling
    double pairs;      // weights of the true pairs, summed
    double loss;       // weighted sum over the pairs, nats
    double effective;  // kImportance: effective sample sizes, weighted and summed over the pairs
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
    // places on each side; for a single step, count = 0.
    size_t (*scratch)(const Head&, Encoder, int32_t stride, int32_t window, int32_t block, int64_t count);
    // Trains on the shard's sentences that are not held out; or takes the loss of those that are, and changes nothing.
    void (*run)(const Tables&, const Head&, Encoder, const Shard&, bool update, void* scratch, Totals*);
    // One step on a block with the given draws (N, and -1 up to a multiple of 16): updates the tables, adds to the totals.
    void (*step)(const Tables&, const Head&, Encoder, const Block&, const int32_t* draws, uint64_t key, float lr,
                 int32_t window, void* scratch, Totals*);
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
