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

// A part of a row in registers: kVectors vectors, and half a vector more where kHalf is 1.
template <int kVectors, int kHalf>
struct Piece {
    vfloat full[kVectors + 1];  // the last is never touched: there are no arrays of no elements
    vhalf half;

    SKIPGRAD_INLINE void clear() {
        for (int v = 0; v < kVectors; v++) full[v] = vfloat{};
        half = vhalf{};
    }
    SKIPGRAD_INLINE void read(const float* p) {
        for (int v = 0; v < kVectors; v++) full[v] = load(p + v * kLanes);
        if constexpr (kHalf) half = load_half(p + kVectors * kLanes);
    }
    SKIPGRAD_INLINE void add(float scale, const Piece& x) {
        for (int v = 0; v < kVectors; v++) full[v] += set(scale) * x.full[v];
        if constexpr (kHalf) half += (scale - vhalf{}) * x.half;
    }
    SKIPGRAD_INLINE void add(float scale, const float* p) {
        for (int v = 0; v < kVectors; v++) full[v] += set(scale) * load(p + v * kLanes);
        if constexpr (kHalf) half += (scale - vhalf{}) * load_half(p + kVectors * kLanes);
    }
    SKIPGRAD_INLINE void add_to(float* p) const {
        for (int v = 0; v < kVectors; v++) store(p + v * kLanes, load(p + v * kLanes) + full[v]);
        if constexpr (kHalf) store_half(p + kVectors * kLanes, load_half(p + kVectors * kLanes) + half);
    }
    // `so_far` plus the products with p, lane by lane.
    SKIPGRAD_INLINE vfloat products(const float* p, vfloat so_far) const {
        vfloat odd = {};
        for (int v = 0; v < kVectors; v += 2) so_far += full[v] * load(p + v * kLanes);
        for (int v = 1; v < kVectors; v += 2) odd += full[v] * load(p + v * kLanes);
        if constexpr (kHalf) odd += widen(half * load_half(p + kVectors * kLanes));
        return so_far + odd;
    }
};

// Calls body(a Piece, column) for pieces of at most kPanel vectors that cover `width` floats of a row evenly.
template <typename Body>
SKIPGRAD_INLINE void for_pieces(int32_t width, Body body) {
    const int32_t vectors = width / kLanes, half = width % kLanes != 0;
    const int32_t pieces = vectors ? (vectors + kPanel - 1) / kPanel : 1;
    for (int32_t p = 0, done = 0; p < pieces; p++) {
        const int32_t size = (vectors - done) / (pieces - p), column = done * kLanes;
        done += size;
        const int32_t kind = 2 * size + (half && p + 1 == pieces);
        if (kind == 1) body(Piece<0, 1>{}, column);
        if (kind == 2) body(Piece<1, 0>{}, column);
        if (kind == 3) body(Piece<1, 1>{}, column);
        if (kind == 4) body(Piece<2, 0>{}, column);
        if (kind == 5) body(Piece<2, 1>{}, column);
        if (kind == 6) body(Piece<3, 0>{}, column);
        if (kind == 7) body(Piece<3, 1>{}, column);
        if (kind == 8) body(Piece<4, 0>{}, column);
        if (kind == 9) body(Piece<4, 1>{}, column);
        if constexpr (kPanel > 4) {
            if (kind == 10) body(Piece<5, 0>{}, column);
            if (kind == 11) body(Piece<5, 1>{}, column);
            if (kind == 12) body(Piece<6, 0>{}, column);
            if (kind == 13) body(Piece<6, 1>{}, column);
            if (kind == 14) body(Piece<7, 0>{}, column);
            if (kind == 15) body(Piece<7, 1>{}, column);
            if (kind == 16) body(Piece<8, 0>{}, column);
            if (kind == 17) body(Piece<8, 1>{}, column);
        }
    }
}

// to[r] += sum_k g[r * row_step + k * step] * from[k], r < kRows, for a piece of each row.
template <int kRows, typename Part>
SKIPGRAD_INLINE void add_dense_piece(float* const* to, const float* g, int64_t row_step, int64_t step,
                                     const float* const* from, int32_t n, int32_t column) {
    Part sum[kRows];
    for (int r = 0; r < kRows; r++) sum[r].clear();
    for (int32_t k = 0; k < n; k++) {
        Part x;
        x.read(from[k] + column);
        for (int r = 0; r < kRows; r++) sum[r].add(g[r * row_step + k * step], x);
    }
    // One row after the other: two of them may be the same word.
    for (int r = 0; r < kRows; r++) sum[r].add_to(to[r] + column);
}

// to[r] += sum_k g[r * row_step + k * step] * from[k] for all rows r < rows: 2 rows n width flop.
SKIPGRAD_STAGE void add_dense(float* const* to, int32_t rows, const float* g, int64_t row_step, int64_t step,
                              const float* const* from, int32_t n, int32_t width, Fetch& fetch) {
    for_pieces(width, [&](auto part, int32_t column) {
        int32_t r = 0;
        for (; r + 2 <= rows; r += 2) {
            fetch.some(2);
            add_dense_piece<2, decltype(part)>(to + r, g + r * row_step, row_step, step, from, n, column);
        }
        if (r < rows) add_dense_piece<1, decltype(part)>(to + r, g + r * row_step, row_step, step, from, n, column);
    });
}

// to[r] += sum_e g[e] * from[index[e]] for the entries e = first[r] .. first[r + 1] - 1 of every row r < rows.
SKIPGRAD_STAGE void add_sparse(float* const* to, int32_t rows, const int32_t* first, const int32_t* index,
                               const float* g, const float* const* from, int32_t width) {
    for_pieces(width, [&](auto sum, int32_t column) {
        for (int32_t r = 0; r < rows; r++) {
            sum.clear();
            for (int32_t e = first[r]; e < first[r + 1]; e++) sum.add(g[e], from[index[e]] + column);
            sum.add_to(to[r] + column);
        }
    });
}

// scores[e] = a[r] . b[index[e]] for the entries e = first[r] .. first[r + 1] - 1 of every row r < rows. `products` holds
// kLanes floats an entry; the entries of scores up to the next multiple of kLanes are written too.
SKIPGRAD_STAGE void score_sparse(const float* const* a, int32_t rows, const int32_t* first, const int32_t* index,
                                 const float* const* b, int32_t width, float* products, float* scores) {
    for_pieces(width, [&](auto x, int32_t column) {
        for (int32_t r = 0; r < rows; r++) {
            x.read(a[r] + column);
            for (int32_t e = first[r]; e < first[r + 1]; e++) {
                const vfloat so_far = column ? load(products + e * kLanes) : vfloat{};
                store(products + e * kLanes, x.products(b[index[e]] + column, so_far));
            }
        }
    });
    for (int32_t e = 0; e < first[rows]; e += kLanes) store(scores + e, sums(products + e * kLanes));
}

// packed[k * n + j] = rows[j][k]: n is a multiple of kLanes, k < dim rounded up to kLanes.
SKIPGRAD_STAGE void pack(const float* const* rows, int32_t n, int32_t dim, float* packed) {
    for (int32_t j = 0; j < n; j += kLanes)
        for (int32_t k = 0; k < dim; k += kLanes) {
            vfloat square[kLanes];
            for (int i = 0; i < kLanes; i++) square[i] = load(rows[j + i] + k);
            transpose(square);
            for (int i = 0; i < kLanes; i++) store(packed + static_cast<int64_t>(k + i) * n + j, square[i]);
        }
}

// A tile of scores: kVectors vectors of packed rows, and half a vector more where kHalf is 1, with 0 in its other half.
template <int kRows, int kVectors, int kHalf>
SKIPGRAD_INLINE void score_tile(const float* a, int32_t stride, int32_t dim, const float* packed, int32_t n,
                                float* scores) {
    vfloat sum[kRows][kVectors] = {};
    vhalf rest[kRows] = {};
    for (int32_t k = 0; k < dim; k++) {
        const float* from = packed + static_cast<int64_t>(k) * n;
        vfloat x[kVectors];
        vhalf y = {};
        for (int v = 0; v < kVectors; v++) x[v] = load(from + v * kLanes);
        if constexpr (kHalf) y = load_half(from + kVectors * kLanes);
        for (int r = 0; r < kRows; r++) {
            const float scale = a[r * stride + k];
            for (int v = 0; v < kVectors; v++) sum[r][v] += set(scale) * x[v];
            if constexpr (kHalf) rest[r] += (scale - vhalf{}) * y;
        }
    }
    for (int r = 0; r < kRows; r++) {
        for (int v = 0; v < kVectors; v++) store(scores + r * n + v * kLanes, sum[r][v]);
        if constexpr (kHalf) store(scores + r * n + kVectors * kLanes, widen(rest[r]));
    }
}

template <int kVectors, int kHalf>
SKIPGRAD_INLINE void score_columns(const float* a, int32_t rows, int32_t stride, int32_t dim, const float* packed,
                                   int32_t n, float* scores, Fetch& fetch) {
    for (int32_t i = 0; i < rows; i += kScoreRows) {
        fetch.some(2);
        score_tile<kScoreRows, kVectors, kHalf>(a + static_cast<int64_t>(i) * stride, stride, dim, packed, n,
                                                scores + static_cast<int64_t>(i) * n);
    }
}

// scores[i * n + j] = a_i . row_j, j < used, for contiguous rows a and n packed ones; `used` is a multiple of 8, and `rows`
// is rounded up to kScoreRows.
SKIPGRAD_STAGE void score_packed(const float* a, int32_t rows, int32_t stride, int32_t dim, const float* packed,
                                 int32_t n, int32_t used, float* scores, Fetch& fetch) {
    int32_t j = 0;
    for (; j + 2 * kLanes <= used; j += 2 * kLanes)
        score_columns<2, 0>(a, rows, stride, dim, packed + j, n, scores + j, fetch);
    if (used - j > kLanes)
        score_columns<1, 1>(a, rows, stride, dim, packed + j, n, scores + j, fetch);
    else if (used > j)
        score_columns<1, 0>(a, rows, stride, dim, packed + j, n, scores + j, fetch);
}

}  // namespace
}  // namespace skipgrad
