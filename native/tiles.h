// Small matrix products on rows that lie where they are: the shapes that all heads share.
#pragma once
#include "simd.h"

namespace skipgrad {
namespace {

SKIPGRAD_INLINE float* row(float* table, int64_t index, int32_t stride) { return table + index * stride; }

// Rows that are needed soon, and are fetched a few at a time, spread over the work: the processor tracks only so many
// outstanding misses, and stalls on a burst.
struct Fetch {
    const float** rows;
    int32_t count;
    int32_t next;
    int32_t stride;

    SKIPGRAD_INLINE void add(const float* row) { rows[count++] = row; }
    SKIPGRAD_INLINE void some(int32_t n) {
        for (; n > 0 && next < count; n--, next++)
            for (int32_t k = 0; k < stride; k += 16) __builtin_prefetch(rows[next] + k, 1, 3);
    }
};

// Calls body(constant vectors, column) for panels of at most kPanel vectors that cover a row evenly.
template <typename Body>
SKIPGRAD_INLINE void for_panels(int32_t stride, Body body) {
    const int32_t vectors = stride / kLanes;
    const int32_t panels = (vectors + kPanel - 1) / kPanel;
    for (int32_t p = 0, done = 0; p < panels; p++) {
        const int32_t size = (vectors - done) / (panels - p), column = done * kLanes;
        done += size;
        if (size == 1) body(Constant<1>{}, column);
        if (size == 2) body(Constant<2>{}, column);
        if (size == 3) body(Constant<3>{}, column);
        if (size == 4) body(Constant<4>{}, column);
        if constexpr (kPanel > 4) {
            if (size == 5) body(Constant<5>{}, column);
            if (size == 6) body(Constant<6>{}, column);
            if (size == 7) body(Constant<7>{}, column);
            if (size == 8) body(Constant<8>{}, column);
        }
    }
}

template <int kVectors>
SKIPGRAD_INLINE void add_to_row(float* to, const vfloat* sum) {
    for (int v = 0; v < kVectors; v++) store(to + v * kLanes, load(to + v * kLanes) + sum[v]);
}

// to[r] += sum_k g[r * row_step + k * step] * from[k], r < kRows, for kVectors vectors of each row.
template <int kRows, int kVectors>
SKIPGRAD_INLINE void add_dense_panel(float* const* to, const float* g, int64_t row_step, int64_t step,
                                     const float* const* from, int32_t n, int32_t column) {
    vfloat sum[kRows][kVectors] = {};
    for (int32_t k = 0; k < n; k++) {
        vfloat x[kVectors];
        for (int v = 0; v < kVectors; v++) x[v] = load(from[k] + column + v * kLanes);
        for (int r = 0; r < kRows; r++) {
            const vfloat scale = set(g[r * row_step + k * step]);
            for (int v = 0; v < kVectors; v++) sum[r][v] += scale * x[v];
        }
    }
    // One row after the other: two of them may be the same word.
    for (int r = 0; r < kRows; r++) add_to_row<kVectors>(to[r] + column, sum[r]);
}

// to[r] += sum_k g[r * row_step + k * step] * from[k] for all rows r < rows: 2 rows n stride flop.
SKIPGRAD_STAGE void add_dense(float* const* to, int32_t rows, const float* g, int64_t row_step, int64_t step,
                              const float* const* from, int32_t n, int32_t stride, Fetch& fetch) {
    for_panels(stride, [&](auto vectors, int32_t column) {
        int32_t r = 0;
        for (; r + 2 <= rows; r += 2) {
            fetch.some(2);
            add_dense_panel<2, vectors.value>(to + r, g + r * row_step, row_step, step, from, n, column);
        }
        if (r < rows) add_dense_panel<1, vectors.value>(to + r, g + r * row_step, row_step, step, from, n, column);
    });
}

// to[r] += sum_e g[e] * from[index[e]] for the entries e = first[r] .. first[r + 1] - 1 of every row r < rows.
SKIPGRAD_STAGE void add_sparse(float* const* to, int32_t rows, const int32_t* first, const int32_t* index,
                               const float* g, const float* const* from, int32_t stride) {
    for_panels(stride, [&](auto vectors, int32_t column) {
        for (int32_t r = 0; r < rows; r++) {
            vfloat sum[vectors.value] = {};
            for (int32_t e = first[r]; e < first[r + 1]; e++) {
                const float* x = from[index[e]] + column;
                const vfloat scale = set(g[e]);
                for (int v = 0; v < vectors.value; v++) sum[v] += scale * load(x + v * kLanes);
            }
            add_to_row<vectors.value>(to[r] + column, sum);
        }
    });
}

// scores[e] = a[r] . b[index[e]] for the entries e = first[r] .. first[r + 1] - 1 of every row r < rows. `products` holds
// kLanes floats an entry; the entries of scores up to the next multiple of kLanes are written too.
SKIPGRAD_STAGE void score_sparse(const float* const* a, int32_t rows, const int32_t* first, const int32_t* index,
                                 const float* const* b, int32_t stride, float* products, float* scores) {
    for_panels(stride, [&](auto vectors, int32_t column) {
        for (int32_t r = 0; r < rows; r++) {
            vfloat x[vectors.value];
            for (int v = 0; v < vectors.value; v++) x[v] = load(a[r] + column + v * kLanes);
            for (int32_t e = first[r]; e < first[r + 1]; e++) {
                const float* y = b[index[e]] + column;
                vfloat even = column ? load(products + e * kLanes) : vfloat{}, odd = {};
                for (int v = 0; v < vectors.value; v += 2) even += x[v] * load(y + v * kLanes);
                for (int v = 1; v < vectors.value; v += 2) odd += x[v] * load(y + v * kLanes);
                store(products + e * kLanes, even + odd);
            }
        }
    });
    for (int32_t e = 0; e < first[rows]; e += kLanes) store(scores + e, sums(products + e * kLanes));
}

// packed[k * n + j] = rows[j][k]: n is a multiple of 16, k < dim rounded up to kLanes.
SKIPGRAD_STAGE void pack(const float* const* rows, int32_t n, int32_t dim, float* packed) {
    for (int32_t j = 0; j < n; j += kLanes)
        for (int32_t k = 0; k < dim; k += kLanes) {
            vfloat square[kLanes];
            for (int i = 0; i < kLanes; i++) square[i] = load(rows[j + i] + k);
            transpose(square);
            for (int i = 0; i < kLanes; i++) store(packed + static_cast<int64_t>(k + i) * n + j, square[i]);
        }
}

template <int kRows, int kVectors>
SKIPGRAD_INLINE void score_tile(const float* a, int32_t stride, int32_t dim, const float* packed, int32_t n,
                                float* scores) {
    vfloat sum[kRows][kVectors] = {};
    for (int32_t k = 0; k < dim; k++) {
        vfloat x[kVectors];
        for (int v = 0; v < kVectors; v++) x[v] = load(packed + static_cast<int64_t>(k) * n + v * kLanes);
        for (int r = 0; r < kRows; r++) {
            const vfloat scale = set(a[r * stride + k]);
            for (int v = 0; v < kVectors; v++) sum[r][v] += scale * x[v];
        }
    }
    for (int r = 0; r < kRows; r++)
        for (int v = 0; v < kVectors; v++) store(scores + r * n + v * kLanes, sum[r][v]);
}

// scores[i * n + j] = a_i . row_j for contiguous rows a and n packed ones; `rows` is rounded up to kScoreRows.
SKIPGRAD_STAGE void score_packed(const float* a, int32_t rows, int32_t stride, int32_t dim, const float* packed,
                                 int32_t n, float* scores, Fetch& fetch) {
    for (int32_t j = 0; j < n;) {
        const bool two = j + 2 * kLanes <= n;
        for (int32_t i = 0; i < rows; i += kScoreRows) {
            fetch.some(2);
            const float* x = a + static_cast<int64_t>(i) * stride;
            float* to = scores + static_cast<int64_t>(i) * n + j;
            if (two)
                score_tile<kScoreRows, 2>(x, stride, dim, packed + j, n, to);
            else
                score_tile<kScoreRows, 1>(x, stride, dim, packed + j, n, to);
        }
        j += two ? 2 * kLanes : kLanes;
    }
}

}  // namespace
}  // namespace skipgrad
