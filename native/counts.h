// Expected co-occurrence counts of a corpus, with subsampling and window weights taken exactly. Plain C++: no Python.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace skipgrad {

// Sentences, each ended by -1, and what decides which pairs of their tokens are seen.
struct Sentences {
    const int32_t* ids;
    int64_t count;
    const float* keep;     // (V) probability to keep a token
    int32_t words;         // V
    int32_t window;        // W
    uint64_t heldout_key;  // a sentence is held out by its place, as in skipgram.h
    uint64_t heldout;      // share of the sentences, times 2^32
};

// The part of a symmetric sparse matrix on and under the diagonal, row after row; columns ascend.
struct Triangle {
    std::vector<int64_t> sizes;
    std::vector<int32_t> columns;
    std::vector<float> values;
    double dropped = 0;  // sum of the values that were too small to be stored
};

// Counts pairs (c, o) of kept tokens at a distance d of at most W, with the weight a_d = 1 - (d - 1) / W.
//
// Token t is kept with probability k_t, and a window spans kept tokens only: the distance of tokens i < j is 1 + m, where m
// of those between them are kept. So the pair counts k_i k_j E[a_{1+m}]. Let A_n be the expectation of a_{1+n+m}; a token
// with probability k that joins those between changes it to (1 - k) A_n + k A_{n+1}, where A_W = 0: W multiplications
// for each pair, and no draw. A walk ends where A_0 < kFaint; what is beyond is left out.
//
// Rows are independent: row c visits all places of word c. So threads share nothing, no pair is ever stored twice, and the
// memory is that of the places and of the result.
class Cooccurrence {
  public:
    static constexpr float kFaint = 1e-3f;

    explicit Cooccurrence(const Sentences& sentences) : text_(sentences) {}

    // Finds the places of words begin .. end-1: 8 bytes each.
    void find(int32_t begin, int32_t end);

    // Rows begin .. end-1, among those that were found; values below `least` are left out. Threads may call it at once.
    Triangle rows(int32_t begin, int32_t end, bool heldout, float least) const;

  private:
    Sentences text_;
    int32_t begin_ = 0;
    std::vector<int64_t> starts_;  // of word w: places_[starts_[2 (w - begin_) + held out] ..]
    std::vector<int64_t> places_;
};

// The whole of a symmetric matrix: offsets (V + 1) of its rows, columns and values, from offsets of its triangle.
void mirror(int32_t words, const int64_t* triangle_offsets, const int32_t* triangle_columns,
            const float* triangle_values, int64_t* offsets, int32_t* columns, float* values);

}  // namespace skipgrad
