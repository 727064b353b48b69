// Heads that score a hidden vector against every row of a table: the exact softmax, and negative sampling without noise.
//
// For hidden vectors h_i of weight w_i, rows u_o with a bias b_o, and true pairs of weight N_io, at s_io = u_o . h_i + b_o:
//     softmax    loss = sum_i w_i log sum_o exp(s_io) - sum_io N_io s_io           r_io = w_i exp(s_io - lse_i) - N_io
//     logistic   loss = sum_io (w_i q_o + N_io) log(1 + exp(s_io)) - N_io s_io     r_io = (w_i q_o + N_io) sigmoid(s_io) - N_io
// and d loss / d h_i = sum_o r_io u_o, d loss / d u_o = sum_i r_io h_i, d loss / d b_o = sum_i r_io.
//
// Scores are never stored but for a tile of kRowTile x kHiddenTile: the forward pass keeps a running maximum and sum for
// each hidden vector (Milakov and Gimelshein 2018, arXiv:1805.02867), the backward pass makes the scores again. So memory
// is O(V D), and a step of n hidden vectors costs 8 n V D flop, 2 n V D of them for the second scores.
// The slow twin is src/skipgrad/heads/softmax.py.
#pragma once
#include "../kernels.h"
#include "../tiles.h"

namespace skipgrad {
namespace {

constexpr int kRowTile = 32;      // rows: with the residuals and a panel of hidden vectors they fit the nearest cache
constexpr int kDenseVectors = 3;  // of columns, in registers
constexpr int kDenseRows = kLanes == 16 ? 8 : 4;
constexpr int kColumns = kDenseVectors * kLanes;
static_assert(kHiddenTile % kColumns == 0, "a panel of hidden vectors is made of whole tiles");

// packed[tile][k][j] = rows[tile * kHiddenTile + j][k].
inline void pack_hidden(const float* rows, int32_t n, int32_t dim, int32_t stride, float* packed) {
    for (int32_t tile = 0; tile < n; tile += kHiddenTile, packed += int64_t{dim} * kHiddenTile)
        for (int32_t j = 0; j < kHiddenTile; j++)
            for (int32_t k = 0; k < dim; k++) packed[k * kHiddenTile + j] = rows[int64_t{tile + j} * stride + k];
}

// Hands use(row, scores) the scores of kRows rows and kColumns hidden vectors, in registers.
template <int kRows, typename Use>
SKIPGRAD_INLINE void score_rows(const Rows& rows, int64_t begin, const float* packed, Use use) {
    const float* u = rows.u + begin * rows.stride;
    vfloat s[kRows][kDenseVectors];
    for (int r = 0; r < kRows; r++)
        for (int v = 0; v < kDenseVectors; v++) s[r][v] = set(rows.bias ? rows.bias[begin + r] : 0.0f);
    for (int32_t k = 0; k < rows.dim; k++, packed += kHiddenTile) {
        vfloat h[kDenseVectors];
        for (int v = 0; v < kDenseVectors; v++) h[v] = load(packed + v * kLanes);
        for (int r = 0; r < kRows; r++) {
            const vfloat x = set(u[int64_t{r} * rows.stride + k]);
            for (int v = 0; v < kDenseVectors; v++) s[r][v] += x * h[v];
        }
    }
    use(begin, s);
}

// The same for rows begin .. end-1.
template <typename Use>
SKIPGRAD_INLINE void score_all(const Rows& rows, int64_t begin, int64_t end, const float* packed, Use use) {
    for (; begin + kDenseRows <= end; begin += kDenseRows) score_rows<kDenseRows>(rows, begin, packed, use);
    for (; begin < end; begin++) score_rows<1>(rows, begin, packed, use);
}

// A tile of residuals in the making: kRowTile rows, kHiddenTile hidden vectors.
struct DenseTile {
    const Rows& rows;
    const Hidden& hidden;
    int64_t row;  // the first
    int32_t count, column;

    const float* packed(int32_t c) const { return hidden.packed + int64_t{column} * rows.dim + c; }
};

template <int kRows>
SKIPGRAD_INLINE void grow(vfloat (&s)[kRows][kDenseVectors], float* peaks, float* totals) {
    for (int v = 0; v < kDenseVectors; v++) {
        const vfloat before = load(peaks + v * kLanes);
        vfloat peak = before;
        for (int r = 0; r < kRows; r++) peak = s[r][v] > peak ? s[r][v] : peak;
        vfloat total = load(totals + v * kLanes) * exp_negative(before - peak);
        for (int r = 0; r < kRows; r++) total += exp_negative(s[r][v] - peak);
        store(peaks + v * kLanes, peak);
        store(totals + v * kLanes, total);
    }
}

// Adds rows to the running maximum and the running sum of exp(score - maximum) of each hidden vector.
inline void softmax_forward(const Rows& rows, const Hidden& hidden, float* peaks, float* totals) {
    for (int64_t row = 0; row < rows.count; row += kRowTile) {
        const int64_t end = row + kRowTile < rows.count ? row + kRowTile : rows.count;
        for (int32_t column = 0; column < hidden.n; column += kHiddenTile)
            for (int32_t c = 0; c < kHiddenTile; c += kColumns) {
                const float* packed = hidden.packed + int64_t{column} * rows.dim + c;
                score_all(rows, row, end, packed,
                          [&](int64_t, auto& s) { grow(s, peaks + column + c, totals + column + c); });
            }
    }
}

// Calls use(place in the tile, weight) for the true pairs of a tile.
template <typename Use>
SKIPGRAD_INLINE void for_truth(const Truth& truth, const DenseTile& tile, bool leave, Use use) {
    const int64_t end = truth.first + tile.row + tile.count;
    for (int32_t j = 0; j < kHiddenTile; j++) {
        int64_t at = truth.next[tile.column + j];
        for (; at < truth.end[tile.column + j] && truth.row[at] < end; at++)
            use((truth.row[at] - truth.first - tile.row) * kHiddenTile + j, truth.weight[at]);
        if (leave) truth.next[tile.column + j] = at;
    }
}

// Scores to residuals; returns the part of the loss that a tile knows: all but w_i lse_i.
struct SoftmaxResidual {
    const float* lse;  // (n)

    SKIPGRAD_INLINE double operator()(const DenseTile& tile, const Truth& truth, float* g) const {
        double loss = 0;
        for_truth(truth, tile, false, [&](int64_t place, float weight) { loss -= double{weight} * double{g[place]}; });
        for (int32_t r = 0; r < tile.count; r++)
            for (int32_t j = 0; j < kHiddenTile; j += kLanes) {
                float* to = g + r * kHiddenTile + j;
                const vfloat weight = load(tile.hidden.weight + tile.column + j);
                const vfloat x = load(to) - load(lse + tile.column + j);
                store(to, weight * exp_negative(x > 0.0f ? vfloat{} : x));  // rounding may leave it just above 0
            }
        for_truth(truth, tile, true, [&](int64_t place, float weight) { g[place] -= weight; });
        return loss;
    }
};

struct LogisticResidual {
    const float* noise;  // (count) K q of each row

    SKIPGRAD_INLINE double operator()(const DenseTile& tile, const Truth& truth, float* g) const {
        alignas(64) float weights[kRowTile * kHiddenTile];
        for (int32_t r = 0; r < tile.count; r++)
            for (int32_t j = 0; j < kHiddenTile; j += kLanes)
                store(weights + r * kHiddenTile + j, load(tile.hidden.weight + tile.column + j) * noise[tile.row + r]);
        double loss = 0;
        for_truth(truth, tile, false, [&](int64_t place, float weight) {
            weights[place] += weight;
            loss -= double{weight} * double{g[place]};
        });
        vfloat dense = {};
        for (int32_t k = 0; k < tile.count * kHiddenTile; k += kLanes) {
            vfloat softplus;
            const vfloat weight = load(weights + k), residual = sigmoid(load(g + k), &softplus);
            dense += weight * softplus;
            store(g + k, weight * residual);
        }
        for_truth(truth, tile, true, [&](int64_t place, float weight) { g[place] -= weight; });
        return loss + static_cast<double>(sum(dense));
    }
};

// Adds to row i of `to` the sum over k of g[i * step + k * from_step] times row k of `from`.
SKIPGRAD_STAGE void add_product(float* const* to, int32_t n, const float* g, int64_t step, const float* const* from,
                                int32_t terms, int64_t from_step, int32_t width) {
    for_pieces(width, [&](auto part, int32_t column) {
        by_two(n, [&](auto rows, int32_t i) {
            add_terms<decltype(rows)::value, decltype(part)>(to + i, column,
                                                             Terms{g + i * step, step, from_step, from, terms});
        });
    });
}

// What the residuals of a tile give to hidden vectors, rows and biases; rows last: they may be updated in place.
SKIPGRAD_STAGE void add_gradients(const DenseTile& tile, const Gradients& to, const float* g) {
    const int32_t width = (tile.rows.dim + kStep - 1) / kStep * kStep, stride = tile.rows.stride;
    const float *u[kRowTile], *h[kHiddenTile];
    float *du[kRowTile], *dh[kHiddenTile];
    for (int32_t r = 0; r < tile.count; r++) {
        u[r] = tile.rows.u + (tile.row + r) * stride;
        du[r] = to.rows + (tile.row + r) * stride;
    }
    for (int32_t j = 0; j < kHiddenTile; j++) {
        h[j] = tile.hidden.rows + int64_t{tile.column + j} * stride;
        dh[j] = to.hidden + int64_t{tile.column + j} * stride;
    }
    add_product(dh, kHiddenTile, g, 1, u, tile.count, kHiddenTile, width);
    add_product(du, tile.count, g, kHiddenTile, h, kHiddenTile, 1, width);
    if (!to.bias) return;
    for (int32_t r = 0; r < tile.count; r++) {
        vfloat all = {};
        for (int32_t j = 0; j < kHiddenTile; j += kLanes) all += load(g + r * kHiddenTile + j);
        to.bias[tile.row + r] += sum(all);
    }
}

template <typename Residual>
double dense_backward(const Rows& rows, const Hidden& hidden, const Truth& truth, const Residual& residual,
                      const Gradients& to) {
    alignas(64) float g[kRowTile * kHiddenTile];
    double loss = 0;
    for (int64_t row = 0; row < rows.count; row += kRowTile) {
        const int64_t count = row + kRowTile < rows.count ? kRowTile : rows.count - row;
        for (int32_t column = 0; column < hidden.n; column += kHiddenTile) {
            const DenseTile tile{rows, hidden, row, static_cast<int32_t>(count), column};
            for (int32_t c = 0; c < kHiddenTile; c += kColumns)
                score_all(rows, row, row + count, tile.packed(c), [&](int64_t at, auto& s) {
                    for (size_t r = 0; r < sizeof(s) / sizeof(s[0]); r++)
                        for (int v = 0; v < kDenseVectors; v++)
                            store(g + (at - row + static_cast<int64_t>(r)) * kHiddenTile + c + v * kLanes, s[r][v]);
                });
            loss += residual(tile, truth, g);
            if (to.scale != 1.0f)
                for (int32_t k = 0; k < tile.count * kHiddenTile; k += kLanes) store(g + k, load(g + k) * to.scale);
            add_gradients(tile, to, g);
        }
    }
    return loss;
}

inline double softmax_backward(const Rows& rows, const Hidden& hidden, const float* lse, const Truth& truth,
                               const Gradients& to) {
    return dense_backward(rows, hidden, truth, SoftmaxResidual{lse}, to);
}

inline double logistic_backward(const Rows& rows, const Hidden& hidden, const float* noise, const Truth& truth,
                                const Gradients& to) {
    return dense_backward(rows, hidden, truth, LogisticResidual{noise}, to);
}

}  // namespace
}  // namespace skipgrad
