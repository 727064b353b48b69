#include "counts.h"

#include <algorithm>
#include <numeric>

#include "rng.h"

namespace skipgrad {

namespace {

// A row as it grows: a dense array of sums, and which of them are not 0 as bits in two levels, so that the columns
// come out in order and without a sort.
class Row {
  public:
    explicit Row(int32_t words) : sums_(words), used_(words / 64 + 1), blocks_(words / 4096 + 1) {}

    void add(int32_t column, double value) {
        if (sums_[column] == 0) {
            used_[column >> 6] |= uint64_t{1} << (column & 63);
            blocks_[column >> 12] |= uint64_t{1} << (column >> 6 & 63);
        }
        sums_[column] += value;
    }

    // Appends what is at least `least`, and clears the row.
    void move_to(Triangle* to, double scale, float least) {
        const size_t before = to->columns.size();
        for (size_t block = 0; block < blocks_.size(); block++) {
            for (; blocks_[block]; blocks_[block] &= blocks_[block] - 1) {
                const size_t word = block * 64 + static_cast<size_t>(__builtin_ctzll(blocks_[block]));
                for (; used_[word]; used_[word] &= used_[word] - 1) {
                    const size_t column = word * 64 + static_cast<size_t>(__builtin_ctzll(used_[word]));
                    put(to, static_cast<int32_t>(column), static_cast<float>(sums_[column] * scale), least);
                    sums_[column] = 0;
                }
            }
        }
        to->sizes.push_back(static_cast<int64_t>(to->columns.size() - before));
    }

  private:
    static void put(Triangle* to, int32_t column, float value, float least) {
        if (!(value >= least)) {
            to->dropped += value;
            return;
        }
        to->columns.push_back(column);
        to->values.push_back(value);
    }

    std::vector<double> sums_;
    std::vector<uint64_t> used_, blocks_;
};

// Walks from the token at `place` in steps of `step` to the end of its sentence, or until pairs are too faint. kWindow:
// the window where it is known when this is compiled, so that `seen` stays in registers; or 0.
template <int kWindow>
void walk(const Sentences& text, int64_t place, int64_t step, const float* weights, float* memory, Row* row) {
    const int32_t word = text.ids[place], window = kWindow ? kWindow : text.window;
    float registers[kWindow + 1];
    float* seen = kWindow ? registers : memory;  // (W + 1) A_n
    std::copy(weights, weights + window + 1, seen);
    for (int64_t at = place + step; at >= 0 && at < text.count && text.ids[at] >= 0; at += step) {
        const int32_t other = text.ids[at];
        const float keep = text.keep[other];
        if (other <= word) row->add(other, static_cast<double>(keep * seen[0]));
        for (int32_t n = 0; n < window; n++) seen[n] += keep * (seen[n + 1] - seen[n]);
        if (seen[0] < Cooccurrence::kFaint) break;
    }
}

}  // namespace

void Cooccurrence::find(int32_t begin, int32_t end) {
    begin_ = begin;
    const auto for_places = [&](auto use) {
        bool heldout = false, starts = true;
        for (int64_t i = 0; i < text_.count; i++) {
            if (starts) heldout = (mix(text_.heldout_key + static_cast<uint64_t>(i)) >> 32) < text_.heldout;
            const int32_t word = text_.ids[i];
            starts = word < 0;
            if (word >= begin && word < end) use(2 * (word - begin) + heldout, i);
        }
    };
    starts_.assign(2 * static_cast<size_t>(end - begin) + 2, 0);
    for_places([&](int32_t list, int64_t) { starts_[static_cast<size_t>(list) + 2]++; });
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    places_.resize(static_cast<size_t>(starts_.back()));
    // starts_[list + 1] is where the list begins, and moves to where the next one does.
    for_places([&](int32_t list, int64_t place) {
        places_[static_cast<size_t>(starts_[static_cast<size_t>(list) + 1]++)] = place;
    });
}

Triangle Cooccurrence::rows(int32_t begin, int32_t end, bool heldout, float least) const {
    Triangle result;
    Row row(end);
    std::vector<float> weights(static_cast<size_t>(text_.window) + 1), memory(weights.size());
    for (int32_t n = 0; n < text_.window; n++)
        weights[static_cast<size_t>(n)] = 1.0f - static_cast<float>(n) / static_cast<float>(text_.window);
    const auto walker = text_.window == 5 ? walk<5> : text_.window == 10 ? walk<10> : walk<0>;
    for (int32_t word = begin; word < end; word++) {
        const size_t list = 2 * static_cast<size_t>(word - begin_) + heldout;
        for (int64_t p = starts_[list]; p < starts_[list + 1]; p++) {
            // Places of a word lie far apart: the next ones are fetched while this one is walked around.
            if (p + 4 < starts_[list + 1]) __builtin_prefetch(text_.ids + places_[static_cast<size_t>(p) + 4]);
            walker(text_, places_[static_cast<size_t>(p)], -1, weights.data(), memory.data(), &row);
            walker(text_, places_[static_cast<size_t>(p)], 1, weights.data(), memory.data(), &row);
        }
        row.move_to(&result, static_cast<double>(text_.keep[word]), least);
    }
    return result;
}

void mirror(int32_t words, const int64_t* triangle_offsets, const int32_t* triangle_columns,
            const float* triangle_values, int64_t* offsets, int32_t* columns, float* values) {
    std::fill(offsets, offsets + words + 1, 0);
    const auto for_entries = [&](auto use) {
        for (int32_t row = 0; row < words; row++)
            for (int64_t k = triangle_offsets[row]; k < triangle_offsets[row + 1]; k++) use(row, k);
    };
    for_entries([&](int32_t row, int64_t k) {
        offsets[row + 1]++;
        if (triangle_columns[k] != row) offsets[triangle_columns[k] + 1]++;
    });
    std::partial_sum(offsets, offsets + words + 1, offsets);
    std::vector<int64_t> next(offsets, offsets + words);
    // A row gets its own columns first, and then, from later rows, those behind the diagonal: in order.
    const auto put = [&](int32_t row, int32_t column, float value) {
        const int64_t at = next[static_cast<size_t>(row)]++;
        columns[at] = column;
        values[at] = value;
    };
    for_entries([&](int32_t row, int64_t k) {
        put(row, triangle_columns[k], triangle_values[k]);
        if (triangle_columns[k] != row) put(triangle_columns[k], row, triangle_values[k]);
    });
}

}  // namespace skipgrad
