// Draws that depend on the tokens of a block: a mixture of the noise and of words that are near to the tokens' words.
//
//     q_n = (p_n + 1/T sum_i near(n | c_i)) / 2
// c_i is the token's word (skip-gram), or the word beside it (CBOW): never the word that is to be predicted. Half of the N
// draws are of each part, so that the mixture is what they are weighted with: exp(shift_n) = 1 / (N q_n).
#pragma once
#include "band.h"
#include "kernels.h"
#include "rng.h"

namespace skipgrad {
namespace {

inline void find_given(const Block& block, Encoder encoder, int32_t* given) {
    for_groups(block, [&](const Group& group, int32_t token, int32_t place) {
        for (int32_t i = 0; i < group.tokens; i++) {
            const int32_t at = group.lead + i, beside = at > 0 ? at - 1 : at + 1;
            given[token + i] = encoder == kSkipGram ? block.token[token + i] : block.place[place + beside];
        }
    });
}

// near(n | c)
inline float near_probability(const Near& near, int32_t given, int32_t word) {
    const int32_t* words = near.words + int64_t{given} * near.count;
    int32_t low = 0, high = near.count;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (words[middle] < word)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == near.count || words[low] != word) return 0;
    const float* cumulative = near.cumulative + int64_t{given} * near.count;
    return cumulative[low] - (low ? cumulative[low - 1] : 0.0f);
}

// Replaces the second half of the draws by near words of the tokens in turn.
inline void draw_near(const Head& head, int32_t tokens, const int32_t* given, Random& random, int32_t* draws) {
    const Near& near = head.near;
    for (int32_t n = head.exact + (head.draws - head.exact) / 2; n < head.draws; n++) {
        const int64_t list = int64_t{given[n % tokens]} * near.count;
        const float u = static_cast<float>(random.next32() >> 8) * 0x1p-24f;
        int32_t low = 0, high = near.count - 1;
        while (low < high) {
            const int32_t middle = (low + high) / 2;
            if (u >= near.cumulative[list + middle])
                low = middle + 1;
            else
                high = middle;
        }
        draws[n] = near.words[list + low];
    }
}

// Adds -log(N q) to the shifts of the draws.
SKIPGRAD_STAGE void shift_near(const Head& head, int32_t tokens, const int32_t* given, const int32_t* draws,
                               float* shift) {
    const float number = static_cast<float>(head.draws - head.exact), share = 1.0f / static_cast<float>(tokens);
    for (int32_t n = 0; n < head.draws; n += kLanes) {
        vfloat q = set(1.0f);
        for (int32_t k = 0; k < kLanes; k++) {
            if (n + k < head.exact || n + k >= head.draws) continue;
            float near = 0;
            for (int32_t i = 0; i < tokens; i++) near += near_probability(head.near, given[i], draws[n + k]);
            q[k] = number * 0.5f * (head.near.probability[draws[n + k]] + share * near);
        }
        store(shift + n, load(shift + n) - log_positive(q));
    }
}

}  // namespace
}  // namespace skipgrad
