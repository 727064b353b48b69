// Sampled softmax, with draws that a block shares.
//
//     loss_i = sum_c a_ic (log Z_ic - t_ic),  Z_ic = exp(t_ic) + sum_n exp(t_in),  t_n = s_n - log(N q_n)
// Where the true word is included, t_ic = s_ic and the sum leaves out draws that are c; else t_ic = s_ic - log(N q_c).
// Residuals: a_ic (exp(t_ic) / Z_ic - 1) for a true word, and exp(t_in) sum_c a_ic / Z_ic for a draw.
// All sums are kept relative to exp(m_i), m_i the largest t_in. The slow twin is src/skipgrad/heads/sampled.py.
#pragma once
#include "importance.h"

namespace skipgrad {
namespace {

struct SampledRule {
    static SKIPGRAD_STAGE vfloat draws(const Head& head, const Block& block, const int32_t* draws, float,
                                       const DrawnScratch& s, Fetch& fetch, Totals*) {
        const int32_t width = padded(block.tokens);
        if (head.included) find_hits(block, draws, head.draws, s);
        for (int32_t i = 0; i < width; i += kLanes) {
            fetch.some(8);
            const Mass mass = exponentials(s, head.draws, width, i);
            store(s.most + i, mass.most);
            store(s.mass + i, mass.sum);
        }
        return vfloat{};
    }

    static SKIPGRAD_STAGE vfloat own(const Head& head, const Own& own, const int32_t* draws, float lr, int32_t lanes,
                                     const DrawnScratch& s) {
        fill_minus(head, own, draws, lanes, s);
        float* tile = s.encoder.band.tile;
        const int32_t n = own.count * kGroup;
        for (int32_t k = n; k % kLanes; k++) tile[k] = 0;
        alignas(64) float most[2 * kGroup], mass[2 * kGroup], drawn[2 * kGroup] = {};
        for (int32_t i = 0; i < 2 * kGroup; i++) {
            const bool is_token = i % kGroup < own.tokens;
            most[i] = is_token ? s.most[own.first + i % kGroup] : 0.0f;
            mass[i] = is_token ? s.mass[own.first + i % kGroup] : 1.0f;
        }
        vfloat loss = {};
        for (int32_t k = 0; k < n; k += kLanes) {
            const int32_t half = k % kGroup;  // lanes narrower than a group see one half of it after the other
            const vint numbers = lane_numbers() + k, is_pair = (numbers % kGroup < own.tokens) & (numbers < n);
            const vfloat weight = is_pair ? load_any(own.weights + k) : vfloat{};
            const vfloat x = load(tile + k) - load(most + half);
            const vfloat left = load(mass + half) - load(s.minus + k), others = left > 0.0f ? left : left * 0.0f;
            const vfloat e = exp_negative(x > 0.0f ? -x : x);
            const vfloat mine = x > 0.0f ? set(1.0f) : e, theirs = x > 0.0f ? others * e : others;
            const vfloat inverse = 1.0f / (mine + theirs), over_z = weight * (x > 0.0f ? e : set(1.0f)) * inverse;
            loss += weight * (log_positive(mine + theirs) - (x > 0.0f ? vfloat{} : x));
            store(tile + k, weight * lr * theirs * inverse);
            store(s.inverse + k, over_z);
            store(drawn + half, load(drawn + half) + over_z);
        }
        for (int32_t i = 0; kLanes > kGroup && i < kGroup; i++) drawn[i] += drawn[i + kGroup];
        fill_draws(head, own, draws, drawn, lr, lanes, s);
        return loss;
    }

  private:
    // minus[r, i] = the draws that are true word r of token i, summed as `mass` is.
    static void fill_minus(const Head& head, const Own& own, const int32_t* draws, int32_t lanes,
                           const DrawnScratch& s) {
        for (int32_t k = 0; k < (own.count + 1) * kGroup; k++) s.minus[k] = 0;
        for (int32_t n = 0; head.included && n < head.draws; n++)
            for (int32_t r = 0; s.hit[n] && r < own.count; r++)
                for (int32_t i = 0; i < own.tokens; i++)
                    if (own.word(r, i) == draws[n])
                        s.minus[r * kGroup + i] += s.g[static_cast<int64_t>(n) * lanes + own.first + i];
    }

    // The residuals of draws for the tokens of a group, times -lr: -lr exp(t_n) sum_c a_c / Z_c, without the c that are n.
    static void fill_draws(const Head& head, const Own& own, const int32_t* draws, const float* drawn, float lr,
                           int32_t lanes, const DrawnScratch& s) {
        for (int32_t n = 0; n < head.draws; n++) {
            float* g = s.g + static_cast<int64_t>(n) * lanes + own.first;
            alignas(32) float kept[kGroup];
            for (int32_t i = 0; i < kGroup; i++) kept[i] = drawn[i];
            if (head.included && s.hit[n])
                for (int32_t r = 0; r < own.count; r++)
                    for (int32_t i = 0; i < own.tokens; i++)
                        if (own.word(r, i) == draws[n]) kept[i] -= s.inverse[r * kGroup + i];
            for (int32_t i = 0; i < own.tokens; i++) g[i] *= -lr * kept[i];
        }
    }
};

}  // namespace
}  // namespace skipgrad
