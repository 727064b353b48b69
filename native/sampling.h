// Draws of words: the noise distribution by exact inversion of its cumulative table, and subsampling.
#pragma once
#include "kernels.h"
#include "rng.h"

namespace skipgrad {
namespace {

// The word w with cumulative[w-1] <= u < cumulative[w]; the guide says where to start, about one step is left.
inline int32_t invert(const Noise& noise, uint64_t u) {
    uint32_t w = noise.guide[u >> (64 - noise.guide_bits)];
    w += u >= noise.cumulative[w];  // without branches, which could not be predicted
    w += u >= noise.cumulative[w];
    while (u >= noise.cumulative[w]) w++;
    return static_cast<int32_t>(w);
}

// n draws, one from each n-th of the distribution: the mean of any function over them has the law's expectation, and
// less variance than independent draws have.
inline void draw_stratified(const Noise& noise, Random& random, int32_t* words, int32_t n) {
    const uint64_t width = ~uint64_t{0} / static_cast<uint64_t>(n);
    for (int32_t k = 0; k < n; k++) {
        const uint64_t within = static_cast<uint64_t>((static_cast<unsigned __int128>(random.next()) * width) >> 64);
        words[k] = invert(noise, width * static_cast<uint64_t>(k) + within);
    }
}

}  // namespace
}  // namespace skipgrad
