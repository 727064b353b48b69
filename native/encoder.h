// The hidden vectors of a block's tokens, and the way back: what a head adds to a hidden vector reaches the input table.
//
// Skip-gram: h_i = v_i, the token's own row. CBOW: h_i = sum_j share_ij v_j over its places, share_ij = a_ij / sum_j a_ij
// (mean) or a_ij (sum), and dL/dv_j = sum_i share_ij dL/dh_i.
#pragma once
#include "band.h"
#include "kernels.h"
#include "scratch.h"
#include "tiles.h"

namespace skipgrad {
namespace {

// n rounded up to whole vectors.
inline int32_t padded(int32_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

struct EncoderScratch {
    Encoder encoder;
    float* a;        // (T', stride) hidden vectors as they were at the start of the step
    float** hidden;  // (T') rows of a; those beyond the tokens repeat the first
    float** to;      // (T) where a change of a hidden vector is added: rows of the input table, or of `change`
    float* change;   // (T, stride) CBOW: sums of changes
    float** places;  // (S) CBOW: rows of the input table
    BandScratch band;

    void lay_out(Carver& carver, Encoder which, int32_t stride, int32_t window, int32_t block) {
        encoder = which;
        const int64_t tokens = (block + 15) / 16 * 16;
        carver.take(&a, tokens * stride);
        carver.take(&hidden, tokens);
        carver.take(&to, tokens);
        carver.take(&change, which == kSkipGram ? 0 : tokens * stride);
        carver.take(&places, which == kSkipGram ? 0 : int64_t{block} * (2 * window + 1));
        band.lay_out(carver, window);
    }
};

// Fills the tile with the shares of the places in the hidden vectors of a group.
inline void fill_shares(const Group& group, const float* pairs, const EncoderScratch& s) {
    const float* weights = s.band.weights_of(group);
    for (int32_t i = 0; i < group.tokens; i++) {
        const float scale = s.encoder == kMean ? 1.0f / pairs[i] : 1.0f;
        for (int32_t j = 0; j < group.places; j++) s.band.tile[j * kGroup + i] = weights[j * kGroup + i] * scale;
    }
}

SKIPGRAD_STAGE void encode(const Tables& tables, const Block& block, int32_t width, const EncoderScratch& s,
                           Fetch& fetch) {
    const int32_t stride = tables.stride;
    for (int32_t i = 0; i < padded(block.tokens); i++) s.hidden[i] = row(s.a, i < block.tokens ? i : 0, stride);
    if (s.encoder == kSkipGram) {
        for (int32_t i = 0; i < block.tokens; i++) {
            s.to[i] = row(tables.input, block.token[i], stride);
            for (int32_t k = 0; k < stride; k += kLanes) store(s.hidden[i] + k, load(s.to[i] + k));
        }
        return;
    }
    for (int32_t i = 0; i < block.tokens; i++) s.to[i] = row(s.change, i, stride);
    for (int32_t k = 0; k < block.tokens * stride; k += kLanes) {
        store(s.a + k, vfloat{});
        store(s.change + k, vfloat{});
    }
    for (int32_t j = 0; j < block.places; j++) s.places[j] = row(tables.input, block.place[j], stride);
    for_groups(block, [&](const Group& group, int32_t token, int32_t place) {
        fill_shares(group, block.pairs + token, s);
        add_to_tokens(group, s.band, s.hidden + token, s.places + place, width, fetch);
    });
}

// CBOW: adds the changes of the hidden vectors to the rows that they were made of.
SKIPGRAD_STAGE void decode(const Block& block, int32_t width, const EncoderScratch& s, Fetch& fetch) {
    if (s.encoder == kSkipGram) return;
    for_groups(block, [&](const Group& group, int32_t token, int32_t place) {
        fill_shares(group, block.pairs + token, s);
        add_to_places(group, s.band, s.places + place, s.to + token, width, fetch);
    });
}

}  // namespace
}  // namespace skipgrad
