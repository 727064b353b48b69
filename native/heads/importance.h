// The softmax with its negative phase estimated by biased importance sampling.
//
//     loss_i = sum_c -a_ic s_ic  +  P_i log Z_i,  Z_i = sum_n exp(t_in),  t_n = s_n - log(N q_n), or s_n where it is exact
// The residual of a draw is P_i w_in, w_in = exp(t_in) / Z_i: its share of the weights. The true words' is -a_ic.
// The slow twin is src/skipgrad/heads/importance.py.
#pragma once
#include "drawn.h"

namespace skipgrad {
namespace {

struct Mass {
    vfloat most, sum, squares;  // m = max t, sum exp(t - m), sum exp(t - m)^2
};

// Turns the scores of draws into exp(t - m), for the tokens in the lanes at i.
SKIPGRAD_INLINE Mass exponentials(const DrawnScratch& s, int32_t draws, int32_t width, int32_t i) {
    Mass mass{load(s.g + i) + s.shift[0], {}, {}};
    for (int32_t n = 1; n < draws; n++) {
        const vfloat t = load(s.g + static_cast<int64_t>(n) * width + i) + s.shift[n];
        mass.most = t > mass.most ? t : mass.most;
    }
    for (int32_t n = 0; n < draws; n++) {
        float* g = s.g + static_cast<int64_t>(n) * width + i;
        const vfloat e = exp_negative(load(g) + s.shift[n] - mass.most);
        mass.sum += e;
        mass.squares += e * e;
        store(g, e);
    }
    return mass;
}

struct ImportanceRule {
    static SKIPGRAD_STAGE vfloat draws(const Head& head, const Block& block, const int32_t* draws, float lr,
                                       const DrawnScratch& s, Fetch& fetch, Totals* totals) {
        const int32_t width = padded(block.tokens);
        vfloat loss = {}, effective = {};
        for (int32_t i = 0; i < width; i += kLanes) {
            fetch.some(8);
            const vfloat pull = load(s.pull + i);
            const Mass mass = exponentials(s, head.draws, width, i);
            loss += pull * (mass.most + log_positive(mass.sum));
            effective += pull * mass.sum * mass.sum / mass.squares;
            const vfloat share = pull / mass.sum;
            for (int32_t n = 0; n < head.draws; n++) {
                float* g = s.g + static_cast<int64_t>(n) * width + i;
                const vfloat given = load(g) * share;
                if (head.mass) head.mass[draws[n]] += sum(given);
                store(g, given * -lr);
            }
        }
        totals->effective += static_cast<double>(sum(effective));
        return loss;
    }

    static SKIPGRAD_STAGE vfloat own(const Head&, const Own& own, const int32_t*, float lr, int32_t,
                                     const DrawnScratch& s) {
        float* tile = s.encoder.band.tile;
        const int32_t n = own.count * kGroup;
        for (int32_t k = n; k % kLanes; k++) tile[k] = 0;
        vfloat loss = {};
        for (int32_t k = 0; k < n; k += kLanes) {
            const vint lanes = lane_numbers() + k, is_pair = (lanes % kGroup < own.tokens) & (lanes < n);
            const vfloat weight = is_pair ? load_any(own.weights + k) : vfloat{};
            loss -= weight * load(tile + k);
            store(tile + k, weight * lr);
        }
        return loss;
    }
};

}  // namespace
}  // namespace skipgrad
