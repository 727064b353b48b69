// Negative sampling and noise-contrastive estimation, with draws that a block shares.
//
//     loss_i = sum_c -a_ic log sigmoid(t_ic)  +  K/N sum_n (P_i - m_in) -log sigmoid(-t_in)
// t = s, or for NCE t = s - log(K q) - log Z. m_in sums the weights of the true words that are n: for negative sampling
// such a word is no negative of that pair, and for NCE it is, so m = 0. Over the draws, the expected gradient is that of K
// independent ones a pair, for P + N instead of P (K + 1) rows.
// The slow twins are src/skipgrad/heads/negative.py and nce.py.
#pragma once
#include "drawn.h"

namespace skipgrad {
namespace {

// The weights of a draw that is a true word: it counts for no pair with that word.
SKIPGRAD_STAGE void mask(const Block& block, int32_t word, float share, const DrawnScratch& s) {
    for (int32_t i = 0; i < padded(block.tokens); i++) s.masked[i] = share * s.pull[i];
    for_groups(block, [&](const Group& group, int32_t token, int32_t place) {
        const Own own = own_of(block, group, token, place, s);
        for (int32_t r = 0; r < own.count; r++)
            for (int32_t i = 0; i < own.tokens; i++)
                if (own.word(r, i) == word) s.masked[token + i] -= share * own.weights[r * kGroup + i];
    });
}

template <bool kMasks>
struct LogisticRule {
    static SKIPGRAD_STAGE vfloat draws(const Head& head, const Block& block, const int32_t* draws, float lr,
                                       const DrawnScratch& s, Fetch& fetch, Totals*) {
        const int32_t width = padded(block.tokens);
        if (kMasks) find_hits(block, draws, head.draws, s);
        vfloat loss = {};
        for (int32_t n = 0; n < head.draws; n++) {
            fetch.some(2);
            const bool masked = kMasks && s.hit[n];
            if (masked) mask(block, draws[n], head.share, s);
            const float share = masked ? 1.0f : head.share, shift = s.shift[n];
            const float* weights = masked ? s.masked : s.pull;
            float* g = s.g + static_cast<int64_t>(n) * width;
            for (int32_t i = 0; i < width; i += kLanes) {
                vfloat softplus;
                const vfloat weight = load(weights + i) * share, residual = sigmoid(load(g + i) + shift, &softplus);
                loss += weight * softplus;
                store(g + i, weight * residual * -lr);
            }
        }
        return loss;
    }

    // Turns the tile's scores into residuals of true pairs, lr weight (1 - sigmoid(t)); returns the loss.
    static SKIPGRAD_STAGE vfloat own(const Head&, const Own& own, const int32_t*, float lr, int32_t,
                                     const DrawnScratch& s) {
        float* tile = s.encoder.band.tile;
        const int32_t n = own.count * kGroup;
        for (int32_t k = n; k % kLanes; k++) tile[k] = 0;
        vfloat loss = {};
        for (int32_t k = 0; k < n; k += kLanes) {
            const vint lanes = lane_numbers() + k, is_pair = (lanes % kGroup < own.tokens) & (lanes < n);
            const vfloat weight = is_pair ? load_any(own.weights + k) : vfloat{};
            vfloat softplus;
            const vfloat residual = sigmoid(-load(tile + k), &softplus);
            store(tile + k, weight * lr * residual);
            loss += weight * softplus;
        }
        return loss;
    }
};

}  // namespace
}  // namespace skipgrad
