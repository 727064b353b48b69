// Negative sampling with noise words that a block shares.
//
// For token i of a block with P_i contexts c, and N noise words n drawn from q:
//     loss_i = sum_c -log sigmoid(v_i . u_c)  +  K/N sum_n (P_i - m_in) -log sigmoid(-v_i . u_n)
// m_in counts how often n is a context of i: such a word is no negative of that pair. Over the draws, the expected
// gradient is that of K independent negatives a pair (Mikolov et al. 2013), for P + N instead of P (K + 1) rows.
// All scores are taken at the start of the step. The slow twin is src/skipgrad/heads/negative.py.
#pragma once
#include "../kernels.h"
#include "../sampling.h"
#include "../scratch.h"
#include "../tiles.h"

namespace skipgrad {
namespace {

// N rounded up to whole vectors: noise words beyond N are -1, and have no weight.
inline int32_t padded(int32_t draws) { return (draws + kLanes - 1) / kLanes * kLanes; }

struct NegativeScratch {
    float* share;           // (N') weight of a noise word for each pair: K/N
    const float** from;     // (max(T, N')) rows that are read
    float** to;             // (max(T, N')) rows that are written
    const float** inputs;   // (T) rows of a
    float** outputs;        // (S) rows of the output table
    float* a;               // (T, stride) the input rows as they were at the start of the step
    float* packed;          // (stride, N') the noise rows, transposed
    float* g;               // (T, N') scores, then residuals times -lr
    float* products;        // (P, kLanes) of positive pairs, before they are summed
    float* positive;        // (P) scores of positive pairs, then residuals times -lr
    float* positive_place;  // (P) the same, by place
    uint8_t* hit;           // (T) whether a noise word is a context of the token

    void lay_out(Carver& carver, const Negative& head, int32_t stride, int32_t window, int32_t block) {
        const int64_t tokens = (block + 15) / 16 * 16, pairs = int64_t{2} * window * block + 16;
        const int64_t width = padded(head.draws), most = tokens > width ? tokens : width;
        carver.take(&share, width);
        carver.take(&from, most);
        carver.take(&to, most);
        carver.take(&inputs, tokens);
        carver.take(&outputs, pairs + block);
        carver.take(&a, tokens * stride);
        carver.take(&packed, stride * width);
        carver.take(&g, tokens * width);
        carver.take(&products, pairs * kLanes);
        carver.take(&positive, pairs);
        carver.take(&positive_place, pairs);
        carver.take(&hit, tokens);
    }
};

// hit[i] = whether a noise word stands at a place that token i sees.
SKIPGRAD_STAGE void find_hits(const Block& block, const int32_t* noise, int32_t width, uint8_t* hit) {
    for (int32_t i = 0; i < block.tokens; i++) hit[i] = 0;
    constexpr int32_t kMany = 8;  // places that are compared before one look at the result
    for (int32_t j = 0; j < block.places; j += kMany) {
        const int32_t end = j + kMany < block.places ? j + kMany : block.places;
        vint equal = {};
        for (int32_t p = j; p < end; p++)
            for (int32_t n = 0; n < width; n += kLanes) equal |= load_int(noise + n) == set_int(block.output[p]);
        if (!any(equal)) continue;
        for (int32_t e = block.place_first[j]; e < block.place_first[end]; e++) hit[block.entry_token[e]] = 1;
    }
}

// Turns the scores of token i against the noise words into residuals, times -lr; returns the loss.
SKIPGRAD_INLINE vfloat noise_residuals(const Block& block, int32_t i, const float* share, const int32_t* noise,
                                       int32_t width, bool hit, float lr, float* g) {
    vfloat loss = {};
    const int32_t first = block.token_first[i], end = block.token_first[i + 1];
    for (int32_t n = 0; n < width; n += kLanes) {
        vfloat weight = static_cast<float>(end - first) * load(share + n);
        if (hit) {
            vint pairs = set_int(end - first);
            for (int32_t p = first; p < end; p++)  // equal is -1
                pairs += load_int(noise + n) == set_int(block.output[block.pair_place[p]]);
            weight = __builtin_convertvector(pairs, vfloat) * load(share + n);
        }
        vfloat softplus;
        const vfloat residual = sigmoid(load(g + n), &softplus);
        loss += weight * softplus;
        store(g + n, weight * residual * -lr);
    }
    return loss;
}

SKIPGRAD_STAGE vfloat all_noise_residuals(const Block& block, const Negative& head, const int32_t* noise, float lr,
                                          const NegativeScratch& s, Fetch& fetch) {
    vfloat loss = {};
    const int32_t width = padded(head.draws);
    for (int32_t n = 0; n < width; n++)
        s.share[n] = n < head.draws ? static_cast<float>(head.negatives) / static_cast<float>(head.draws) : 0.0f;
    find_hits(block, noise, width, s.hit);
    for (int32_t i = 0; i < block.tokens; i++) {
        fetch.some(1);
        loss += noise_residuals(block, i, s.share, noise, width, s.hit[i], lr, s.g + static_cast<int64_t>(i) * width);
    }
    return loss;
}

// Turns the scores of the positive pairs into lr (1 - sigmoid(score)); returns the loss.
SKIPGRAD_STAGE vfloat positive_residuals(const Block& block, float lr, const NegativeScratch& s) {
    vfloat loss = {};
    for (int32_t p = 0; p < block.pairs; p += kLanes) {
        vfloat softplus;
        const vfloat residual = sigmoid(-load(s.positive + p), &softplus);
        store(s.positive + p, residual * lr);
        if (p + kLanes <= block.pairs)
            loss += softplus;
        else
            for (int i = 0; p + i < block.pairs; i++) loss[i] += softplus[i];
    }
    for (int32_t e = 0; e < block.pairs; e++) s.positive_place[e] = s.positive[block.entry_pair[e]];
    return loss;
}

SKIPGRAD_STAGE void gather_rows(const Tables& tables, const Block& block, const int32_t* noise, int32_t draws,
                                const NegativeScratch& s) {
    for (int32_t i = 0; i < block.tokens; i++) {
        const float* v = row(tables.input, block.input[i], tables.stride);
        float* a = row(s.a, i, tables.stride);
        for (int32_t k = 0; k < tables.stride; k += kLanes) store(a + k, load(v + k));
        s.inputs[i] = a;
    }
    for (int32_t j = 0; j < block.places; j++) s.outputs[j] = row(tables.output, block.output[j], tables.stride);
    for (int32_t n = 0; n < draws; n++) s.from[n] = row(tables.output, noise[n], tables.stride);
    for (int32_t n = draws; n < padded(draws); n++) s.from[n] = s.from[0];
}

template <bool kUpdate>
double negative_block(const Tables& tables, const Block& block, const Negative& head, const int32_t* noise, float lr,
                      const NegativeScratch& s, Fetch& fetch) {
    const int32_t stride = tables.stride, draws = head.draws, padded_draws = padded(draws), tokens = block.tokens;
    const int32_t width = (tables.dim + kStep - 1) / kStep * kStep;
    gather_rows(tables, block, noise, draws, s);
    pack(s.from, padded_draws, tables.dim, s.packed);
    score_packed(s.a, tokens, stride, tables.dim, s.packed, padded_draws, draws, s.g, fetch);
    score_sparse(s.inputs, tokens, block.token_first, block.pair_place, s.outputs, width, s.products, s.positive);
    vfloat loss = all_noise_residuals(block, head, noise, lr, s, fetch);
    loss += positive_residuals(block, lr, s);
    if constexpr (kUpdate) {
        for (int32_t i = 0; i < tokens; i++) s.to[i] = row(tables.input, block.input[i], stride);
        add_dense(s.to, tokens, s.g, padded_draws, 1, s.from, draws, width, fetch);
        add_sparse(s.to, tokens, block.token_first, block.pair_place, s.positive, s.outputs, width);
        add_sparse(s.outputs, block.places, block.place_first, block.entry_token, s.positive_place, s.inputs, width);
        for (int32_t n = 0; n < draws; n++) s.to[n] = row(tables.output, noise[n], stride);
        add_dense(s.to, draws, s.g, 1, padded_draws, s.inputs, tokens, width, fetch);
    }
    return static_cast<double>(sum(loss));
}

}  // namespace
}  // namespace skipgrad
