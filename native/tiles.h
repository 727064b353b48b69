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
    // One broadcast, from memory, serves the whole and the half vectors: between registers it would take the place of a
    // multiplication.
    SKIPGRAD_INLINE void add(float scale, const Piece& x) {
        const vfloat s = set(scale);
        for (int v = 0; v < kVectors; v++) full[v] += s * x.full[v];
        if constexpr (kHalf) half += lower(s) * x.half;
    }
    SKIPGRAD_INLINE void add_to(float* p) const {
        for (int v = 0; v < kVectors; v++) store(p + v * kLanes, load(p + v * kLanes) + full[v]);
        if constexpr (kHalf) store_half(p + kVectors * kLanes, load_half(p + kVectors * kLanes) + half);
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

// What is added to neighboring rows: row r gets sum_k g[r * row_step + k * step] * from[k], k < n.
struct Terms {
    const float* g;
    int64_t row_step, step;
    const float* const* from;
    int32_t n;
};

template <int kRows, typename Part>
SKIPGRAD_INLINE void accumulate(Part* sum, const Terms& terms, int32_t column) {
    const float* g = terms.g;
    for (int32_t k = 0; k < terms.n; k++, g += terms.step) {
        Part x;
        x.read(terms.from[k] + column);
        for (int r = 0; r < kRows; r++) sum[r].add(g[r * terms.row_step], x);
    }
}

// Adds the terms to a piece of kRows rows: what is read serves all of them, and the rows are written once.
template <int kRows, typename Part, typename... More>
SKIPGRAD_INLINE void add_terms(float* const* to, int32_t column, const More&... terms) {
    Part sum[kRows];
    for (int r = 0; r < kRows; r++) sum[r].clear();
    (accumulate<kRows>(sum, terms, column), ...);
    // One row after the other: two of them may be the same word.
    for (int r = 0; r < kRows; r++) sum[r].add_to(to[r] + column);
}

// packed[k * n + j] = rows[j][k]: n is a multiple of kLanes, k < dim rounded up to kLanes. Eight zeros stand behind.
SKIPGRAD_STAGE void pack(const float* const* rows, int32_t n, int32_t dim, float* packed) {
    for (int32_t j = 0; j < n; j += kLanes)
        for (int32_t k = 0; k < dim; k += kLanes) {
            vfloat square[kLanes];
            for (int i = 0; i < kLanes; i++) square[i] = load(rows[j + i] + k);
            transpose(square);
            for (int i = 0; i < kLanes; i++) store(packed + static_cast<int64_t>(k + i) * n + j, square[i]);
        }
    store_eight(packed + static_cast<int64_t>(dim + kLanes - 1) / kLanes * kLanes * n, veight{});
}

template <int kVectors>
SKIPGRAD_INLINE void score_tile(const float* const* rows, int32_t dim, const float* packed, int32_t n, float* scores) {
    vfloat sum[kScoreRows][kVectors] = {};
    for (int32_t k = 0; k < dim; k++) {
        const float* from = packed + static_cast<int64_t>(k) * n;
        vfloat x[kVectors];
        for (int v = 0; v < kVectors; v++) x[v] = load(from + v * kLanes);
        for (int r = 0; r < kScoreRows; r++) {
            const vfloat scale = set(rows[r][k]);
            for (int v = 0; v < kVectors; v++) sum[r][v] += scale * x[v];
        }
    }
    for (int r = 0; r < kScoreRows; r++)
        for (int v = 0; v < kVectors; v++) store(scores + r * n + v * kLanes, sum[r][v]);
}

// scores[r * n + j] = rows[r] . packed row j, for n packed rows, a multiple of kLanes; `count` rows are a multiple of 8.
SKIPGRAD_STAGE void score_packed(const float* const* rows, int32_t count, int32_t dim, const float* packed, int32_t n,
                                 float* scores, Fetch& fetch) {
    for (int32_t r = 0; r < count; r += kScoreRows) {
        float* to = scores + static_cast<int64_t>(r) * n;
        int32_t j = 0;
        for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
            fetch.some(4);
            score_tile<2>(rows + r, dim, packed + j, n, to + j);
        }
        if (j < n) score_tile<1>(rows + r, dim, packed + j, n, to + j);
    }
}

template <int kRows>
SKIPGRAD_INLINE void score_eight(const float* const* rows, int32_t count, int32_t dim, const float* packed, int32_t n,
                                 float* scores) {
    if constexpr (kRows > 1)
        if (count < kRows) return score_eight<kRows - 1>(rows, count, dim, packed, n, scores);
    veight sum[kRows] = {};
    for (int32_t k = 0; k < dim; k++) {
        const veight x = load_eight_any(packed + static_cast<int64_t>(k) * n);
        for (int r = 0; r < kRows; r++) sum[r] += rows[r][k] * x;
    }
    for (int r = 0; r < kRows; r++) store_eight(scores + r * 8, sum[r]);
}

// scores[r * 8 + j] = rows[r] . packed row j, for `count` rows and the eight packed rows that begin at `packed`.
SKIPGRAD_STAGE void score_group(const float* const* rows, int32_t count, int32_t dim, const float* packed, int32_t n,
                                float* scores, Fetch& fetch) {
    const int32_t parts = (count + kPlaceRows - 1) / kPlaceRows;
    for (int32_t p = 0, done = 0; p < parts; p++) {
        const int32_t size = (count - done) / (parts - p);
        fetch.some(4);
        score_eight<kPlaceRows>(rows + done, size, dim, packed, n, scores + done * 8);
        done += size;
    }
}

}  // namespace
}  // namespace skipgrad
