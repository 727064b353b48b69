// What tokens and places see of each other: a band for each group (kernels.h), worked on two rows at a time.
#pragma once
#include "kernels.h"
#include "scratch.h"
#include "tiles.h"

namespace skipgrad {
namespace {

constexpr float kNone = 80.0f;  // a score that stands for no pair: its loss is below 1e-34, its residual is set to 0

inline int32_t lower_of(int32_t a, int32_t b) { return a < b ? a : b; }
inline int32_t upper_of(int32_t a, int32_t b) { return a > b ? a : b; }

// Floats between the rows of a group's tile: room behind its places, since rows are copied in whole vectors.
inline int32_t tile_width(int32_t places) { return places + kLanes; }

// The places that tokens i .. i + rows - 1 of a group see, and a few between them that not all of them see: first .. end-1.
struct Span {
    int32_t first, end;
};
inline Span seen_by_tokens(const Group& group, int32_t i, int32_t rows) {
    return {upper_of(0, i + group.lead - group.reach),
            lower_of(group.places, i + rows + group.lead + group.reach)};
}
inline Span seen_by_places(const Group& group, int32_t j, int32_t rows) {
    return {upper_of(0, j - group.lead - group.reach),
            lower_of(group.tokens, j + rows - group.lead + group.reach)};
}

// Calls body(group, its first token, its first place, its tile) for every group of a block.
template <typename Body>
SKIPGRAD_INLINE void for_groups(const Block& block, float* tiles, Body body) {
    for (int32_t g = 0, token = 0, place = 0; g < block.groups; g++) {
        const Group& group = block.group[g];
        body(group, token, place, tiles);
        token += group.tokens;
        place += group.places;
        tiles += static_cast<int64_t>(group.tokens) * tile_width(group.places);
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

struct BandScratch {
    float* products;  // (entries, kLanes): of each token with what its pair of tokens sees, before they are summed
    float* scores;    // (entries) then residuals, in the same order
    float* tiles;     // (tokens, tile_width(places)) for each group: residuals, 0 where there is no pair

    void lay_out(Carver& carver, int32_t window, int32_t block) {
        const int64_t entries = int64_t{2} * (window + 1) * block + 2 * kLanes;
        carver.take(&products, entries * kLanes);
        carver.take(&scores, entries);
        carver.take(&tiles, int64_t{block} * tile_width(kGroup + 2 * window) + kLanes);
    }
};

// Scores all pairs of the block: s.scores, kNone where there is no pair. Returns how many entries there are.
SKIPGRAD_STAGE int32_t score_band(const Block& block, const float* const* inputs, const float* const* outputs,
                                  int32_t width, const BandScratch& s, Fetch& fetch) {
    int32_t entries = 0;
    for_pieces(width, [&](auto part, int32_t column) {
        entries = 0;
        for_groups(block, s.tiles, [&](const Group& group, int32_t token, int32_t place, float*) {
            by_two(group.tokens, [&](auto rows, int32_t i) {
                constexpr int kRows = decltype(rows)::value;
                const Span seen = seen_by_tokens(group, i, kRows);
                const int32_t n = seen.end - seen.first;
                fetch.some(1);
                multiply_rows<kRows, decltype(part)>(inputs + token + i, outputs + place + seen.first, n, column,
                                                     s.products + static_cast<int64_t>(entries) * kLanes);
                entries += kRows * n;
            });
        });
    });
    for (int32_t e = 0; e < entries; e += kLanes) store(s.scores + e, sums(s.products + static_cast<int64_t>(e) * kLanes));
    float* score = s.scores;
    for_groups(block, s.tiles, [&](const Group& group, int32_t, int32_t, float*) {
        by_two(group.tokens, [&](auto rows, int32_t i) {
            const Span seen = seen_by_tokens(group, i, rows.value);
            for (int32_t r = 0; r < rows.value; r++, score += seen.end - seen.first) {
                const int32_t self = i + r + group.lead;
                score[self - seen.first] = kNone;
                if (self - group.reach > seen.first) score[0] = kNone;
                if (self + group.reach < seen.end - 1) score[seen.end - 1 - seen.first] = kNone;
            }
        });
    });
    for (int32_t e = entries; e < (entries + kLanes - 1) / kLanes * kLanes; e++) s.scores[e] = kNone;
    return entries;
}

// Copies the residuals to the tiles, 0 where there is no pair.
SKIPGRAD_STAGE void spread_band(const Block& block, const BandScratch& s) {
    const float* from = s.scores;
    for_groups(block, s.tiles, [&](const Group& group, int32_t, int32_t, float* tile) {
        const int32_t width = tile_width(group.places);
        for (int32_t k = 0; k < group.tokens * width; k += kLanes) store_any(tile + k, vfloat{});
        by_two(group.tokens, [&](auto rows, int32_t i) {
            const Span seen = seen_by_tokens(group, i, rows.value);
            const int32_t n = seen.end - seen.first;
            for (int32_t r = 0; r < rows.value; r++, from += n) {
                float* const to = tile + (i + r) * width + seen.first;
                for (int32_t k = 0; k < n; k += kLanes) store_any(to + k, load_any(from + k));
                store_any(to + n, vfloat{});  // what the last vector wrote too much
            }
        });
    });
}

// Adds to each token's row what its contexts give it, and `more(token)` besides.
template <typename More>
SKIPGRAD_STAGE void add_to_tokens(const Block& block, const BandScratch& s, float* const* to,
                                  const float* const* outputs, const More& more, int32_t width, Fetch& fetch) {
    for_pieces(width, [&](auto part, int32_t column) {
        for_groups(block, s.tiles, [&](const Group& group, int32_t token, int32_t place, const float* tile) {
            const int32_t row = tile_width(group.places);
            by_two(group.tokens, [&](auto rows, int32_t i) {
                constexpr int kRows = decltype(rows)::value;
                const Span seen = seen_by_tokens(group, i, kRows);
                fetch.some(1);
                add_terms<kRows, decltype(part)>(to + token + i, column, more(token + i),
                                                 Terms{tile + i * row + seen.first, row, 1,
                                                       outputs + place + seen.first, seen.end - seen.first});
            });
        });
    });
}

// Adds to each place's row what the tokens that see it give it.
SKIPGRAD_STAGE void add_to_places(const Block& block, const BandScratch& s, float* const* to,
                                  const float* const* inputs, int32_t width, Fetch& fetch) {
    for_pieces(width, [&](auto part, int32_t column) {
        for_groups(block, s.tiles, [&](const Group& group, int32_t token, int32_t place, const float* tile) {
            const int32_t row = tile_width(group.places);
            fetch.some(2);
            by_two(group.places, [&](auto rows, int32_t j) {
                constexpr int kRows = decltype(rows)::value;
                const Span seen = seen_by_places(group, j, kRows);
                add_terms<kRows, decltype(part)>(to + place + j, column,
                                                 Terms{tile + seen.first * row + j, 1, row,
                                                       inputs + token + seen.first, seen.end - seen.first});
            });
        });
    });
}

}  // namespace
}  // namespace skipgrad
