// Heads that score the true words and draws that a block of tokens shares: what they have in common.
//
// For hidden vector h_i with true words c of weights a_ic, which sum to P_i, and N draws n, a head gives residuals r for
// the scores s_ic = h_i . u_c + b_c and s_in = h_i . u_n + b_n. Then h_i gets -lr sum r u, u gets -lr sum r h_i.
// Scores are taken at the start of the step, but those of the true words see what earlier groups added to their rows.
// The slow twin is `step` in src/skipgrad/heads/head.py.
#pragma once
#include "../encoder.h"
#include "../kernels.h"
#include "../near.h"
#include "../scratch.h"
#include "../tiles.h"

namespace skipgrad {
namespace {

struct DrawnScratch {
    float** rows;     // (N) output rows of the draws
    float** outputs;  // (S or T) output rows of the true words
    float* packed;    // (stride, T') hidden vectors, transposed: lane = token
    float* shift;     // (N') added to the scores of draws: bias and offset
    int32_t* given;   // (T) the word of each token that draws from near words depend on
    float* pull;      // (T') weights of a token's true words, summed: P_i
    float* masked;    // (T') a token's weight for a draw that is a true word of a token
    int32_t* hit;     // (N') not 0: the draw is a true word of the block
    float* g;         // (N, T') scores of draws, then residuals times -lr
    float* most;      // (T') kSampled: the largest score of a draw, m
    float* mass;      // (T') kSampled: sum_n exp(t_n - m)
    float* inverse;   // (places, kGroup) kSampled: a_c / Z_c of the group's true words, times exp(m)
    float* minus;     // (places, kGroup) kSampled: the part of `mass` that is masked
    float* diagonal;  // (2 kGroup) CBOW: the weights of the true words, 1
    EncoderScratch encoder;

    void lay_out(Carver& carver, const Head& head, Encoder which, int32_t stride, int32_t window, int32_t block) {
        const int64_t tokens = (block + 15) / 16 * 16, tile = (kGroup + 2 * window + 1) * kGroup;
        const bool sampled = head.kind == kSampled;
        carver.take(&rows, head.draws);
        carver.take(&outputs, which == kSkipGram ? int64_t{block} * (2 * window + 1) : block);
        carver.take(&packed, stride * tokens + kGroup);
        carver.take(&shift, padded(head.draws));
        carver.take(&given, head.near.words ? tokens : 0);
        carver.take(&pull, tokens);
        carver.take(&masked, tokens);
        carver.take(&hit, padded(head.draws));
        carver.take(&g, head.draws * tokens);
        carver.take(&most, sampled ? tokens : 0);
        carver.take(&mass, sampled ? tokens : 0);
        carver.take(&inverse, sampled ? tile : 0);
        carver.take(&minus, sampled ? tile : 0);
        carver.take(&diagonal, 2 * kGroup);
        encoder.lay_out(carver, which, stride, window, block);
    }
    void fill_constants() const {
        encoder.band.fill_weights();
        for (int32_t i = 0; i < 2 * kGroup; i++) diagonal[i] = i < kGroup ? 1.0f : 0.0f;
    }
};

// The true words of a group: a tile of `count` words by kGroup tokens, or, on the diagonal, one word for each token.
struct Own {
    const int32_t* words;
    float** rows;
    int32_t count;         // rows of the tile
    const float* weights;  // (count, kGroup)
    bool diagonal;
    int32_t tokens, first;  // of the group; its first token

    int32_t word(int32_t r, int32_t i) const { return words[diagonal ? i : r]; }
};

inline Own own_of(const Block& block, const Group& group, int32_t token, int32_t place, const DrawnScratch& s) {
    if (s.encoder.encoder == kSkipGram)
        return {block.place + place,
                s.outputs + place,
                group.places,
                s.encoder.band.weights_of(group),
                false,
                group.tokens,
                token};
    return {block.token + token, s.outputs + token, 1, s.diagonal, true, group.tokens, token};
}

SKIPGRAD_STAGE void find_rows(const Tables& tables, const Head& head, const Block& block, const int32_t* draws,
                              const DrawnScratch& s) {
    const bool skip = s.encoder.encoder == kSkipGram;
    const int32_t* own = skip ? block.place : block.token;
    for (int32_t j = 0; j < (skip ? block.places : block.tokens); j++)
        s.outputs[j] = row(tables.output, own[j], tables.stride);
    for (int32_t n = 0; n < head.draws; n++) {
        s.rows[n] = row(tables.output, draws[n], tables.stride);
        s.shift[n] = tables.bias ? tables.bias[draws[n]] : 0.0f;
        if (head.offset && n >= head.exact) s.shift[n] += head.offset[draws[n]];
    }
    if (head.near.words) {
        find_given(block, s.encoder.encoder, s.given);
        shift_near(head, block.tokens, s.given, draws, s.shift);
    }
    for (int32_t i = 0; i < padded(block.tokens); i++)
        s.pull[i] = i >= block.tokens ? 0.0f : skip ? block.pairs[i] : 1.0f;
}

// hit[n] = whether draw n is a true word of the block.
SKIPGRAD_STAGE void find_hits(const Block& block, const int32_t* draws, int32_t n_draws, const DrawnScratch& s) {
    const bool skip = s.encoder.encoder == kSkipGram;
    const int32_t* own = skip ? block.place : block.token;
    const int32_t count = skip ? block.places : block.tokens;
    for (int32_t n = 0; n < n_draws; n += kLanes) {
        const vint words = load_int(draws + n);
        vint equal = {};
        for (int32_t j = 0; j < count; j++) equal |= words == set_int(own[j]);
        store_int(s.hit + n, equal);
    }
}

SKIPGRAD_INLINE float dot(const float* a, const float* b, int32_t stride) {
    vfloat total = {};
    for (int32_t k = 0; k < stride; k += kLanes) total += load(a + k) * load(b + k);
    return sum(total);
}

// The scores of a group's true words, in the band's tile.
SKIPGRAD_STAGE void score_own(const Own& own, const Tables& tables, const Head& head, int32_t lanes,
                              const DrawnScratch& s, Fetch& fetch) {
    float* tile = s.encoder.band.tile;
    if (own.diagonal) {
        for (int32_t i = 0; i < kGroup; i++)
            tile[i] = i < own.tokens ? dot(own.rows[i], s.encoder.hidden[own.first + i], tables.stride) : 0.0f;
    } else {
        score_group(own.rows, own.count, tables.dim, s.packed + own.first, lanes, tile, fetch);
    }
    const float* offset = head.included ? nullptr : head.offset;
    if (!tables.bias && !offset) return;
    for (int32_t r = 0; r < own.count; r++)
        for (int32_t i = 0; i < own.tokens; i++) {
            const int32_t word = own.word(r, i);
            tile[r * kGroup + i] += (tables.bias ? tables.bias[word] : 0.0f) + (offset ? offset[word] : 0.0f);
        }
}

// Adds to the tokens what their true words and the draws give them, and to the true words what the tokens give them.
SKIPGRAD_STAGE void add_own(const Own& own, const Group& group, const Tables& tables, int32_t draws, int32_t lanes,
                            int32_t width, const DrawnScratch& s, Fetch& fetch) {
    const BandScratch& band = s.encoder.band;
    float** const to = s.encoder.to + own.first;
    float** const hidden = s.encoder.hidden + own.first;
    const auto from_draws = [&](int32_t i) { return Terms{s.g + own.first + i, 1, lanes, s.rows, draws}; };
    if (tables.bias)
        for (int32_t r = 0; r < own.count; r++)
            for (int32_t i = 0; i < own.tokens; i++) tables.bias[own.word(r, i)] += band.tile[r * kGroup + i];
    if (!own.diagonal) {
        add_to_tokens(group, band, to, own.rows, width, fetch, from_draws);
        add_to_places(group, band, own.rows, hidden, width, fetch);
        return;
    }
    for_pieces(width, [&](auto part, int32_t column) {
        using Part = decltype(part);
        by_two(own.tokens, [&](auto rows, int32_t i) {
            fetch.some(2);
            add_terms<decltype(rows)::value, Part>(to + i, column, from_draws(i));
        });
        for (int32_t i = 0; i < own.tokens; i++)
            add_terms<1, Part>(to + i, column, Terms{band.tile + i, 0, 0, own.rows + i, 1});
        for (int32_t i = 0; i < own.tokens; i++)
            add_terms<1, Part>(own.rows + i, column, Terms{band.tile + i, 0, 0, hidden + i, 1});
    });
}

// Adds to each draw's row what all tokens give it.
SKIPGRAD_STAGE void add_to_draws(const Tables& tables, const int32_t* draws, int32_t n_draws, int32_t tokens,
                                 int32_t width, const DrawnScratch& s, Fetch& fetch) {
    const int32_t lanes = padded(tokens);
    for_pieces(width, [&](auto part, int32_t column) {
        by_two(n_draws, [&](auto rows, int32_t n) {
            fetch.some(2);
            add_terms<decltype(rows)::value, decltype(part)>(
                s.rows + n, column, Terms{s.g + static_cast<int64_t>(n) * lanes, lanes, 1, s.encoder.hidden, tokens});
        });
    });
    if (!tables.bias) return;
    for (int32_t n = 0; n < n_draws; n++)
        for (int32_t i = 0; i < tokens; i++) tables.bias[draws[n]] += s.g[static_cast<int64_t>(n) * lanes + i];
}

// One step of a head, whose Rule turns scores into residuals: `draws` for all draws at the start, `own` for the true words
// of one group after the other.
template <typename Rule>
void drawn_block(const Tables& tables, const Head& head, const Block& block, const int32_t* draws, float lr,
                 bool update, const DrawnScratch& s, Fetch& fetch, Totals* totals) {
    const int32_t lanes = padded(block.tokens), width = (tables.dim + kStep - 1) / kStep * kStep;
    encode(tables, block, width, s.encoder, fetch);
    find_rows(tables, head, block, draws, s);
    pack(s.encoder.hidden, lanes, tables.dim, s.packed);
    score_packed(s.rows, head.draws, tables.dim, s.packed, lanes, s.g, fetch);
    vfloat loss = Rule::draws(head, block, draws, lr, s, fetch, totals);
    for_groups(block, [&](const Group& group, int32_t token, int32_t place) {
        const Own own = own_of(block, group, token, place, s);
        score_own(own, tables, head, lanes, s, fetch);
        loss += Rule::own(head, own, draws, lr, lanes, s);
        if (update) add_own(own, group, tables, head.draws, lanes, width, s, fetch);
    });
    if (update) {
        add_to_draws(tables, draws, head.draws, block.tokens, width, s, fetch);
        decode(block, width, s.encoder, fetch);
    }
    totals->loss += static_cast<double>(sum(loss));
    for (int32_t i = 0; i < block.tokens; i++) totals->pairs += static_cast<double>(s.pull[i]);
}

}  // namespace
}  // namespace skipgrad
