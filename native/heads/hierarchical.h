// Hierarchical softmax: the inputs of an output word share the nodes on its path.
//
//     loss = sum_p sum_j -log sigmoid(d_j s_pj),  s_pj = h_p . u_j,  d_j = 1 where the path goes left at node j, else -1
// d loss / d s_pj = sigmoid(s_pj) - [left at j]. Skip-gram: a token is the output of the places within a reach of it that
// is drawn from 1 .. window; all of them are one tile of inputs by nodes. CBOW: its hidden vector is the one input.
// Hidden vectors are those at the start of a group of tokens. The slow twin is src/skipgrad/heads/hierarchical.py.
#pragma once
#include "../encoder.h"
#include "../kernels.h"
#include "../rng.h"
#include "../scratch.h"
#include "../tiles.h"

namespace skipgrad {
namespace {

// The nodes next to the root are on the paths of all words, and threads that write to the same rows wait for each other's
// cache lines. So a call works on copies of them, and adds their changes to the table now and then.
constexpr int32_t kHotNodes = 64;

struct HierarchicalScratch {
    float* hot;      // (kHotNodes, stride) copies of the first nodes
    float* before;   // (kHotNodes, stride) the same as they were when they were copied
    float** nodes;   // (L') rows of the path; those beyond it repeat the last
    float* left;     // (L') 1 where the path goes left, else 0
    float* weight;   // (L') lr on the path, 0 beyond it
    float* g;        // (2 window + 2, L') scores, then residuals times -lr
    float* a;        // (kGroup + 2 window, stride) skip-gram: input rows of the places as they were
    float** inputs;  // (kGroup + 2 window + 1) rows of a
    float** to;      // (kGroup + 2 window + 1) their rows in the input table
    EncoderScratch encoder;

    void lay_out(Carver& carver, const Head& head, Encoder which, int32_t stride, int32_t window, int32_t block) {
        carver.take(&hot, kHotNodes * stride);
        carver.take(&before, kHotNodes * stride);
        const int64_t nodes_room = head.longest + 2 * kLanes, places = kGroup + 2 * window + 1;
        carver.take(&nodes, nodes_room);
        carver.take(&left, nodes_room);
        carver.take(&weight, nodes_room);
        carver.take(&g, (2 * window + 2) * (nodes_room + kLanes));
        carver.take(&a, which == kSkipGram ? places * stride : 0);
        carver.take(&inputs, places);
        carver.take(&to, places);
        encoder.lay_out(carver, which, stride, window, block);
    }
};

inline int64_t hot_floats(const Tables& tables, const Head& head) {
    return int64_t{head.nodes < kHotNodes ? head.nodes : kHotNodes} * tables.stride;
}

// Copies the first nodes out of the table.
inline void take_hot(const Tables& tables, const Head& head, const HierarchicalScratch& s) {
    for (int64_t k = 0; k < hot_floats(tables, head); k += kLanes) {
        store(s.hot + k, load(tables.output + k));
        store(s.before + k, load(s.hot + k));
    }
}

// Adds the changes of the first nodes to the table.
inline void give_hot(const Tables& tables, const Head& head, const HierarchicalScratch& s) {
    for (int64_t k = 0; k < hot_floats(tables, head); k += kLanes)
        store(tables.output + k, load(tables.output + k) + (load(s.hot + k) - load(s.before + k)));
}

// The path to a word: its length, and that rounded up to whole tiles.
struct Path {
    int32_t length, padded;
};

inline Path find_path(const Tables& tables, const Head& head, int32_t word, float lr, const HierarchicalScratch& s) {
    const int32_t* steps = head.steps + head.begins[word];
    const int32_t length = static_cast<int32_t>(head.begins[word + 1] - head.begins[word]);
    const Path path{length, padded(length)};
    for (int32_t j = 0; j < path.padded; j++) {
        const int32_t step = steps[j < length ? j : length - 1];
        s.nodes[j] = row(step >> 1 < kHotNodes ? s.hot : tables.output, step >> 1, tables.stride);
        s.left[j] = static_cast<float>(step & 1);
        s.weight[j] = j < length ? lr : 0.0f;
    }
    return path;
}

// g[p, j] = inputs[p] . nodes[j]: tiles of two inputs by half a register's lanes of nodes, or of one by all.
template <int kInputs>
SKIPGRAD_INLINE void score_path(float* const* inputs, const Path& path, int32_t width, const HierarchicalScratch& s,
                                float* g) {
    constexpr int32_t kTile = kLanes / kInputs;
    for (int32_t j = 0; j < path.length; j += kTile) {
        vfloat total[kLanes] = {};
        for (int32_t k = 0; k < width; k += kLanes) {
            vfloat x[kInputs];
            for (int p = 0; p < kInputs; p++) x[p] = load(inputs[p] + k);
            for (int n = 0; n < kTile; n++) {
                const vfloat u = load(s.nodes[j + n] + k);
                for (int p = 0; p < kInputs; p++) total[p * kTile + n] += x[p] * u;
            }
        }
        const vfloat all = sums(total);
        if constexpr (kInputs == 1) {
            store(g + j, all);
        } else {
            store_half(g + j, lower(all));
            store_half(g + path.padded + j, upper(all));
        }
    }
}

// Scores to residuals, times -lr; returns the loss.
SKIPGRAD_INLINE vfloat path_residuals(const Path& path, int32_t inputs, const HierarchicalScratch& s) {
    vfloat loss = {};
    for (int32_t j = 0; j < path.padded; j += kLanes) {
        const vfloat left = load(s.left + j), lr = load(s.weight + j);
        for (int32_t p = 0; p < inputs; p++) {
            float* g = s.g + p * path.padded + j;
            vfloat softplus;
            const vfloat score = load(g), residual = sigmoid(score, &softplus) - left;
            const vfloat nats = softplus - left * score;  // -log sigmoid(s) = softplus(s) - s
            loss += lr > 0.0f ? nats : vfloat{};
            store(g, residual * -lr);
        }
    }
    return loss;
}

// Inputs that predict one word, and where their changes go.
struct Inputs {
    float* const* rows;
    float* const* to;
    int32_t count;
};

SKIPGRAD_STAGE vfloat predict_word(const Tables& tables, const Head& head, int32_t word, const Inputs& inputs, float lr,
                                   bool update, const HierarchicalScratch& s, Fetch& fetch) {
    if (head.begins[word + 1] == head.begins[word]) return vfloat{};
    const int32_t width = (tables.dim + kStep - 1) / kStep * kStep;
    const Path path = find_path(tables, head, word, update ? lr : 1.0f, s);
    int32_t p = 0;
    for (; p + 2 <= inputs.count; p += 2) {
        fetch.some(4);
        score_path<2>(inputs.rows + p, path, tables.stride, s, s.g + p * path.padded);
    }
    if (p < inputs.count) score_path<1>(inputs.rows + p, path, tables.stride, s, s.g + p * path.padded);
    const vfloat loss = path_residuals(path, inputs.count, s);
    if (!update) return loss;
    for_pieces(width, [&](auto part, int32_t column) {
        by_two(inputs.count, [&](auto rows, int32_t i) {
            fetch.some(1);
            add_terms<decltype(rows)::value, decltype(part)>(
                inputs.to + i, column, Terms{s.g + i * path.padded, path.padded, 1, s.nodes, path.length});
        });
        by_two(path.length, [&](auto rows, int32_t j) {
            fetch.some(1);
            add_terms<decltype(rows)::value, decltype(part)>(s.nodes + j, column,
                                                             Terms{s.g + j, 1, path.padded, inputs.rows, inputs.count});
        });
    });
    return loss;
}

// Copies the input rows of a group's places.
SKIPGRAD_STAGE void gather_places(const Tables& tables, const Block& block, const Group& group, int32_t place,
                                  const HierarchicalScratch& s) {
    for (int32_t j = 0; j < group.places; j++) {
        s.to[j] = row(tables.input, block.place[place + j], tables.stride);
        s.inputs[j] = row(s.a, j, tables.stride);
        for (int32_t k = 0; k < tables.stride; k += kLanes) store(s.inputs[j] + k, load(s.to[j] + k));
    }
}

// The places within the reach of token i, but for the token itself.
inline Inputs inputs_of(const Group& group, int32_t i, int32_t reach, const HierarchicalScratch& s, float** rows,
                        float** to) {
    const int32_t at = group.lead + i, first = upper_of(0, at - reach), last = lower_of(group.places - 1, at + reach);
    int32_t n = 0;
    for (int32_t j = first; j <= last; j++) {
        if (j == at) continue;
        rows[n] = s.inputs[j];
        to[n++] = s.to[j];
    }
    return {rows, to, n};
}

void hierarchical_block(const Tables& tables, const Head& head, const Block& block, uint64_t key, float lr, bool update,
                        const HierarchicalScratch& s, Fetch& fetch, Totals* totals) {
    const bool skip = s.encoder.encoder == kSkipGram;
    const int32_t width = (tables.dim + kStep - 1) / kStep * kStep, window = s.encoder.band.window;
    Random random{mix(key)};
    if (!skip) encode(tables, block, width, s.encoder, fetch);
    vfloat loss = {};
    for_groups(block, [&](const Group& group, int32_t token, int32_t place) {
        if (skip) gather_places(tables, block, group, place, s);
        for (int32_t i = 0; i < group.tokens; i++) {
            float *rows[2 * kMaxWindow], *to[2 * kMaxWindow];
            Inputs inputs{s.encoder.hidden + token + i, s.encoder.to + token + i, 1};
            if (skip) {
                const int32_t reach = 1 + static_cast<int32_t>(random.below(static_cast<uint32_t>(window)));
                inputs = inputs_of(group, i, reach, s, rows, to);
            }
            loss += predict_word(tables, head, block.token[token + i], inputs, lr, update, s, fetch);
            totals->pairs += inputs.count;
        }
    });
    if (update) decode(block, width, s.encoder, fetch);
    totals->loss += static_cast<double>(sum(loss));
}

}  // namespace
}  // namespace skipgrad
