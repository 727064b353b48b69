// Negative sampling with noise words that a block shares.
//
// For token i of a block with contexts c of weights a_ic, which sum to P_i, and N noise words n drawn from q:
//     loss_i = sum_c -a_ic log sigmoid(v_i . u_c)  +  K/N sum_n (P_i - m_in) -log sigmoid(-v_i . u_n)
// m_in sums the weights of the contexts that are n: such a word is no negative of that pair. Over the draws, the expected
// gradient is that of K independent negatives a pair (Mikolov et al. 2013), for P + N instead of P (K + 1) rows.
// Scores are taken at the start of the step, but those of the true pairs see what earlier groups added to the output
// table. The slow twin is src/skipgrad/heads/negative.py.
#pragma once
#include "../band.h"
#include "../kernels.h"
#include "../sampling.h"
#include "../scratch.h"
#include "../tiles.h"

namespace skipgrad {
namespace {

// n rounded up to whole vectors.
inline int32_t padded(int32_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

struct NegativeScratch {
    float** noise;    // (N) rows of the noise words
    float** inputs;   // (T') rows of a; those beyond the tokens repeat the first
    float** to;       // (T) rows of the input table
    float** outputs;  // (S) rows of the output table
    float* a;         // (T, stride) the input rows as they were at the start of the step
    float* packed;    // (stride, T') the same, transposed: lane = token
    float* weight;    // (T') of a noise word for the token: K/N P_i
    float* masked;    // (T') the same for a noise word that is a context of a token
    int32_t* hit;     // (N') not 0: the noise word stands at a place of the block
    float* g;         // (N, T') scores, then residuals times -lr
    BandScratch band;

    void lay_out(Carver& carver, const Negative& head, int32_t stride, int32_t window, int32_t block) {
        const int64_t tokens = (block + 15) / 16 * 16;
        carver.take(&noise, head.draws);
        carver.take(&inputs, tokens);
        carver.take(&to, tokens);
        carver.take(&outputs, int64_t{block} * (2 * window + 1));
        carver.take(&a, tokens * stride);
        carver.take(&packed, stride * tokens + kGroup);
        carver.take(&weight, tokens);
        carver.take(&masked, tokens);
        carver.take(&hit, padded(head.draws));
        carver.take(&g, head.draws * tokens);
        band.lay_out(carver, window);
    }
};

SKIPGRAD_STAGE void gather_rows(const Tables& tables, const Block& block, const int32_t* noise, int32_t draws,
                                const NegativeScratch& s) {
    for (int32_t i = 0; i < block.tokens; i++) {
        s.to[i] = row(tables.input, block.input[i], tables.stride);
        s.inputs[i] = row(s.a, i, tables.stride);
        for (int32_t k = 0; k < tables.stride; k += kLanes) store(s.inputs[i] + k, load(s.to[i] + k));
    }
    for (int32_t i = block.tokens; i < padded(block.tokens); i++) s.inputs[i] = s.inputs[0];
    for (int32_t j = 0; j < block.places; j++) s.outputs[j] = row(tables.output, block.output[j], tables.stride);
    for (int32_t n = 0; n < draws; n++) s.noise[n] = row(tables.output, noise[n], tables.stride);
}

// hit[n] = whether noise word n stands at a place of the block.
SKIPGRAD_STAGE void find_hits(const Block& block, const int32_t* noise, int32_t draws, int32_t* hit) {
    for (int32_t n = 0; n < draws; n += kLanes) {
        const vint words = load_int(noise + n);
        vint equal = {};
        for (int32_t j = 0; j < block.places; j++) equal |= words == set_int(block.output[j]);
        store_int(hit + n, equal);
    }
}

// The weights of a noise word that stands at a place: it counts for no pair with that place.
SKIPGRAD_STAGE void mask(const Block& block, int32_t word, float share, const NegativeScratch& s) {
    for (int32_t i = 0; i < padded(block.tokens); i++) s.masked[i] = s.weight[i];
    for_groups(block, [&](const Group& group, int32_t token, int32_t place) {
        const float* weights = s.band.weights_of(group);
        for (int32_t j = 0; j < group.places; j++) {
            if (block.output[place + j] != word) continue;
            for (int32_t i = 0; i < group.tokens; i++) s.masked[token + i] -= share * weights[j * kGroup + i];
        }
    });
}

// Turns the scores of noise words into residuals, times -lr; returns the loss.
SKIPGRAD_STAGE vfloat noise_residuals(const Block& block, const Negative& head, const int32_t* noise, float lr,
                                      const NegativeScratch& s, Fetch& fetch) {
    const int32_t width = padded(block.tokens);
    const float share = static_cast<float>(head.negatives) / static_cast<float>(head.draws);
    for (int32_t i = 0; i < width; i++) s.weight[i] = i < block.tokens ? block.pairs[i] * share : 0.0f;
    find_hits(block, noise, head.draws, s.hit);
    vfloat loss = {};
    for (int32_t n = 0; n < head.draws; n++) {
        fetch.some(2);
        if (s.hit[n]) mask(block, noise[n], share, s);
        const float* weights = s.hit[n] ? s.masked : s.weight;
        float* g = s.g + static_cast<int64_t>(n) * width;
        for (int32_t i = 0; i < width; i += kLanes) {
            vfloat softplus;
            const vfloat weight = load(weights + i), residual = sigmoid(load(g + i), &softplus);
            loss += weight * softplus;
            store(g + i, weight * residual * -lr);
        }
    }
    return loss;
}

// Adds to each noise word's row what all tokens give it.
SKIPGRAD_STAGE void add_to_noise(const NegativeScratch& s, int32_t draws, int32_t tokens, int32_t width, Fetch& fetch) {
    const int32_t lanes = padded(tokens);
    for_pieces(width, [&](auto part, int32_t column) {
        by_two(draws, [&](auto rows, int32_t n) {
            fetch.some(2);
            add_terms<decltype(rows)::value, decltype(part)>(
                s.noise + n, column, Terms{s.g + static_cast<int64_t>(n) * lanes, lanes, 1, s.inputs, tokens});
        });
    });
}

// The true pairs of one group after the other: its rows stay in the nearest cache for all three products.
template <bool kUpdate>
vfloat positives(const Block& block, int32_t draws, int32_t dim, int32_t width, float lr, const NegativeScratch& s,
                 Fetch& fetch) {
    const int32_t lanes = padded(block.tokens);
    vfloat loss = {};
    for_groups(block, [&](const Group& group, int32_t token, int32_t place) {
        float** const outputs = s.outputs + place;
        score_group(outputs, group.places, dim, s.packed + token, lanes, s.band.tile, fetch);
        loss += band_residuals(group, lr, s.band);
        if constexpr (kUpdate) {
            const auto from_noise = [&](int32_t i) { return Terms{s.g + token + i, 1, lanes, s.noise, draws}; };
            add_to_tokens(group, s.band, s.to + token, outputs, from_noise, width, fetch);
            add_to_places(group, s.band, outputs, s.inputs + token, width, fetch);
        }
    });
    return loss;
}

template <bool kUpdate>
double negative_block(const Tables& tables, const Block& block, const Negative& head, const int32_t* noise, float lr,
                      const NegativeScratch& s, Fetch& fetch) {
    const int32_t draws = head.draws, tokens = block.tokens, lanes = padded(tokens);
    const int32_t width = (tables.dim + kStep - 1) / kStep * kStep;
    gather_rows(tables, block, noise, draws, s);
    pack(s.inputs, lanes, tables.dim, s.packed);
    score_packed(s.noise, draws, tables.dim, s.packed, lanes, s.g, fetch);
    vfloat loss = noise_residuals(block, head, noise, lr, s, fetch);
    loss += positives<kUpdate>(block, draws, tables.dim, width, lr, s, fetch);
    if constexpr (kUpdate) add_to_noise(s, draws, tokens, width, fetch);
    return static_cast<double>(sum(loss));
}

}  // namespace
}  // namespace skipgrad
