// The softmax of one level (exact) or of two (adaptive), learned from a block of tokens at a time.
//
//     loss_i = sum over levels k of [P_ik log Z_ik - sum_c a_ic s_i,f(c)],  P_ik = sum of a_ic over the c in level k
// Level 0 is the short list with a row for each cluster, which stands for its words; level k holds the words of cluster k,
// and only the tokens that predict one of them are scored. With no cutoffs, level 0 is the whole vocabulary.
// Scores are never stored but for a tile (softmax.h). The slow twins are src/skipgrad/heads/softmax.py and adaptive.py.
#pragma once
#include "../encoder.h"
#include "../kernels.h"
#include "../scratch.h"
#include "softmax.h"

namespace skipgrad {
namespace {

struct AdaptiveScratch {
    float* hidden;        // (kHiddenTile, stride) of the tokens that a level scores
    float* packed;        // (dim, kHiddenTile)
    float* change;        // (kHiddenTile, stride)
    float* weight;        // (kHiddenTile) P_ik
    float* peaks;         // (kHiddenTile)
    float* totals;        // (kHiddenTile) then the logarithm of the sums
    int32_t* rows;        // (kHiddenTile, 2 window) true rows of each token, ascending
    float* weights;       // (kHiddenTile, 2 window)
    int64_t *next, *end;  // (kHiddenTile)
    int32_t* token;       // (kHiddenTile) which token of the block it is
    int32_t most;         // 2 window
    EncoderScratch encoder;

    void lay_out(Carver& carver, Encoder which, int32_t stride, int32_t window, int32_t block) {
        most = 2 * window;
        carver.take(&hidden, kHiddenTile * stride);
        carver.take(&packed, kHiddenTile * stride);
        carver.take(&change, kHiddenTile * stride);
        carver.take(&weight, kHiddenTile);
        carver.take(&peaks, kHiddenTile);
        carver.take(&totals, kHiddenTile);
        carver.take(&rows, kHiddenTile * most);
        carver.take(&weights, kHiddenTile * most);
        carver.take(&next, kHiddenTile);
        carver.take(&end, kHiddenTile);
        carver.take(&token, kHiddenTile);
        encoder.lay_out(carver, which, stride, window, block);
    }
};

// The row of a word in a level, or -1.
inline int32_t row_in_level(const Head& head, int32_t level, int32_t word) {
    int32_t of = 0;
    while (word >= head.ends[of]) of++;
    if (level) return of == level ? word : -1;
    return of ? head.ends[head.levels - 1] + of - 1 : word;
}

// Adds a true row to those of a slot, which stay ascending.
inline void add_true_row(const AdaptiveScratch& s, int32_t slot, int32_t row, float weight) {
    int64_t at = s.end[slot]++;
    for (; at > s.next[slot] && s.rows[at - 1] > row; at--) {
        s.rows[at] = s.rows[at - 1];
        s.weights[at] = s.weights[at - 1];
    }
    s.rows[at] = row;
    s.weights[at] = weight;
    s.weight[slot] += weight;
}

// Finds the tokens that a level scores, and their true rows; returns how many there are.
SKIPGRAD_STAGE int32_t find_truth(const Head& head, const Block& block, int32_t level, const AdaptiveScratch& s) {
    int32_t slot = 0;
    const auto open = [&] {
        s.next[slot] = s.end[slot] = int64_t{slot} * s.most;
        s.weight[slot] = 0;
    };
    const auto close = [&](int32_t token) {
        s.token[slot] = token;
        slot += s.end[slot] > s.next[slot];
    };
    for_groups(block, [&](const Group& group, int32_t token, int32_t place) {
        const float* weights = s.encoder.band.weights_of(group);
        for (int32_t i = 0; i < group.tokens; i++) {
            open();
            if (s.encoder.encoder == kSkipGram) {
                for (int32_t j = 0; j < group.places; j++) {
                    const int32_t row = row_in_level(head, level, block.place[place + j]);
                    if (row >= 0 && weights[j * kGroup + i] > 0) add_true_row(s, slot, row, weights[j * kGroup + i]);
                }
            } else {
                const int32_t row = row_in_level(head, level, block.token[token + i]);
                if (row >= 0) add_true_row(s, slot, row, 1.0f);
            }
            close(token + i);
        }
    });
    return slot;
}

// The slots' hidden vectors; what is left of the tile is 0 and weighs 0.
SKIPGRAD_STAGE void fill_tile(const Tables& tables, int32_t slots, const AdaptiveScratch& s) {
    for (int32_t j = 0; j < kHiddenTile; j++) {
        float* to = row(s.hidden, j, tables.stride);
        const float* from = j < slots ? s.encoder.hidden[s.token[j]] : nullptr;
        for (int32_t k = 0; k < tables.stride; k += kLanes) {
            store(to + k, from ? load(from + k) : vfloat{});
            store(row(s.change, j, tables.stride) + k, vfloat{});
        }
        s.peaks[j] = -1e30f;
        s.totals[j] = 0;
        if (j < slots) continue;
        s.weight[j] = 0;
        s.next[j] = s.end[j] = 0;
    }
    pack_hidden(s.hidden, kHiddenTile, tables.dim, tables.stride, s.packed);
}

// Rows begin .. end-1 of the output table.
inline Rows rows_of(const Tables& tables, int64_t begin, int64_t end) {
    return {row(tables.output, begin, tables.stride), tables.bias ? tables.bias + begin : nullptr, end - begin,
            tables.dim, tables.stride};
}

// The true pairs' scores, weighted and summed.
inline double true_scores(const Tables& tables, int32_t slots, const AdaptiveScratch& s) {
    double total = 0;
    for (int32_t j = 0; j < slots; j++)
        for (int64_t at = s.next[j]; at < s.end[j]; at++) {
            const float* u = row(tables.output, s.rows[at], tables.stride);
            float score = tables.bias ? tables.bias[s.rows[at]] : 0.0f;
            const float* h = row(s.hidden, j, tables.stride);
            vfloat sums = {};
            for (int32_t k = 0; k < tables.stride; k += kLanes) sums += load(u + k) * load(h + k);
            total += static_cast<double>(s.weights[at]) * static_cast<double>(score + sum(sums));
        }
    return total;
}

// One level of a block: its loss; the tables are updated.
inline double learn_level(const Tables& tables, const Head& head, const Block& block, int32_t level, float lr,
                          bool update, const AdaptiveScratch& s) {
    const int32_t slots = find_truth(head, block, level, s);
    if (!slots) return 0;
    fill_tile(tables, slots, s);
    const Hidden hidden{s.hidden, s.packed, s.weight, kHiddenTile};
    const int64_t words = head.ends[head.levels - 1];
    const Rows list = rows_of(tables, level ? head.ends[level - 1] : 0, head.ends[level]);
    const Rows clusters = rows_of(tables, words, words + (level ? 0 : head.levels - 1));
    softmax_forward(list, hidden, s.peaks, s.totals);
    softmax_forward(clusters, hidden, s.peaks, s.totals);
    vfloat loss = {};
    for (int32_t j = 0; j < kHiddenTile; j += kLanes) {
        const vfloat lse = load(s.peaks + j) + log_positive(load(s.totals + j));
        store(s.totals + j, lse);
        loss += load(s.weight + j) * lse;
    }
    const double sums = static_cast<double>(sum(loss));
    if (!update) return sums - true_scores(tables, slots, s);
    Truth truth{s.rows, s.weights, s.next, s.end, level ? head.ends[level - 1] : 0};
    float* bias = tables.bias ? tables.bias + truth.first : nullptr;
    double rest = softmax_backward(list, hidden, s.totals, truth,
                                   {s.change, row(tables.output, truth.first, tables.stride), bias, -lr});
    if (clusters.count) {
        truth.first = words;
        rest += softmax_backward(
            clusters, hidden, s.totals, truth,
            {s.change, row(tables.output, words, tables.stride), tables.bias ? tables.bias + words : nullptr, -lr});
    }
    for (int32_t j = 0; j < slots; j++) {
        float* to = s.encoder.to[s.token[j]];
        for (int32_t k = 0; k < tables.stride; k += kLanes)
            store(to + k, load(to + k) + load(row(s.change, j, tables.stride) + k));
    }
    return sums + rest;
}

inline void adaptive_block(const Tables& tables, const Head& head, const Block& block, float lr, bool update,
                           const AdaptiveScratch& s, Totals* totals) {
    const int32_t width = (tables.dim + kStep - 1) / kStep * kStep;
    Fetch nothing{nullptr, 0, 0, tables.stride};
    encode(tables, block, width, s.encoder, nothing);
    for (int32_t level = 0; level < head.levels; level++)
        totals->loss += learn_level(tables, head, block, level, lr, update, s);
    for (int32_t i = 0; i < block.tokens; i++)
        totals->pairs += s.encoder.encoder == kSkipGram ? static_cast<double>(block.pairs[i]) : 1.0;
    if (update) decode(block, width, s.encoder, nothing);
}

}  // namespace
}  // namespace skipgrad
