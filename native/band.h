// What the tokens and places of a group see of each other: a tile of places by kGroup tokens (kernels.h).
#pragma once
#include "kernels.h"
#include "scratch.h"
#include "tiles.h"

namespace skipgrad {
namespace {

// The weight of a pair at a distance: the chance that a reach drawn from 1 .. window covers it.
inline float weight_of(int32_t distance, int32_t window) {
    return static_cast<float>(window + 1 - distance) / static_cast<float>(window);
}

template <typename T>
inline T lower_of(T a, T b) {
    return a < b ? a : b;
}
template <typename T>
inline T upper_of(T a, T b) {
    return a > b ? a : b;
}

// The places that tokens i .. i + rows - 1 of a group see, and a few between them that not all of them see: first .. end-1.
struct Span {
    int32_t first, end;
};
inline Span seen_by_tokens(const Group& group, int32_t window, int32_t i, int32_t rows) {
    return {upper_of(0, i + group.lead - window), lower_of(group.places, i + rows + group.lead + window)};
}
inline Span seen_by_places(const Group& group, int32_t window, int32_t j, int32_t rows) {
    return {upper_of(0, j - group.lead - window), lower_of(group.tokens, j + rows - group.lead + window)};
}

struct BandScratch {
    int32_t window;
    float* weights;  // (kGroup + 2 window + 1, kGroup): of place r - window + lead and token i, 0: no pair
    float* tile;     // (kGroup + 2 window + 1, kGroup): of places and tokens, scores, then residuals

    void lay_out(Carver& carver, int32_t window_size) {
        window = window_size;
        carver.take(&weights, (kGroup + 2 * window + 1) * kGroup);
        carver.take(&tile, (kGroup + 2 * window + 1) * kGroup);
    }
    void fill_weights() const {
        for (int32_t r = 0; r <= kGroup + 2 * window; r++)
            for (int32_t i = 0; i < kGroup; i++) {
                const int32_t distance = upper_of(r - window - i, i - r + window);
                weights[r * kGroup + i] = distance == 0 || distance > window ? 0 : weight_of(distance, window);
            }
    }
    const float* weights_of(const Group& group) const { return weights + (window - group.lead) * kGroup; }
};

// Calls body(group, its first token, its first place) for every group of a block.
template <typename Body>
SKIPGRAD_INLINE void for_groups(const Block& block, Body body) {
    for (int32_t g = 0, token = 0, place = 0; g < block.groups; g++) {
        body(block.group[g], token, place);
        token += block.group[g].tokens;
        place += block.group[g].places;
    }
}

// Calls body(rows, i) for i = 0 .. n-1 two rows at a time; `rows` is a type, so that it is known to the compiler.
template <int kValue>
struct Constant {
    static constexpr int value = kValue;
};
template <typename Body>
SKIPGRAD_INLINE void by_two(int32_t n, Body body) {
    int32_t i = 0;
    for (; i + 2 <= n; i += 2) body(Constant<2>{}, i);
    if (i < n) body(Constant<1>{}, i);
}

// Adds to each token's row what the places that it sees give it, by the tile, and `more(token)` besides.
template <typename... More>
SKIPGRAD_STAGE void add_to_tokens(const Group& group, const BandScratch& s, float* const* to, const float* const* from,
                                  int32_t width, Fetch& fetch, const More&... more) {
    for_pieces(width, [&](auto part, int32_t column) {
        by_two(group.tokens, [&](auto rows, int32_t i) {
            constexpr int kRows = decltype(rows)::value;
            const Span seen = seen_by_tokens(group, s.window, i, kRows);
            fetch.some(1);
            add_terms<kRows, decltype(part)>(
                to + i, column, more(i)...,
                Terms{s.tile + seen.first * kGroup + i, 1, kGroup, from + seen.first, seen.end - seen.first});
        });
    });
}

// Adds to each place's row what the tokens that see it give it, by the tile.
SKIPGRAD_STAGE void add_to_places(const Group& group, const BandScratch& s, float* const* to,
                                  const float* const* inputs, int32_t width, Fetch& fetch) {
    for_pieces(width, [&](auto part, int32_t column) {
        fetch.some(2);
        by_two(group.places, [&](auto rows, int32_t j) {
            constexpr int kRows = decltype(rows)::value;
            const Span seen = seen_by_places(group, s.window, j, kRows);
            add_terms<kRows, decltype(part)>(
                to + j, column,
                Terms{s.tile + j * kGroup + seen.first, kGroup, 1, inputs + seen.first, seen.end - seen.first});
        });
    });
}

}  // namespace
}  // namespace skipgrad
