// The skip-gram loop over a shard: subsampling, windows, blocks. It knows nothing of the head that it feeds.
#pragma once
#include "kernels.h"
#include "rng.h"
#include "scratch.h"

namespace skipgrad {
namespace {

// Tokens that share one draw of the window's reach: the law of a pair is the same, and the loops over the contexts of
// neighbors have the same length, which the processor then predicts.
constexpr int32_t kGroup = 8;

struct SkipGramScratch {
    int32_t* kept;  // (count) tokens that survived subsampling; sentences still end with -1
    int32_t *input, *output, *token_first, *pair_place, *place_first, *entry_token, *entry_pair;  // as in Block

    void lay_out(Carver& carver, int32_t window, int32_t block, int64_t count) {
        const int64_t pairs = int64_t{2} * window * block, places = pairs + block;
        carver.take(&kept, count);
        carver.take(&input, block);
        carver.take(&output, places);
        carver.take(&token_first, block + 1);
        carver.take(&pair_place, pairs);
        carver.take(&place_first, places + 1);
        carver.take(&entry_token, pairs);
        carver.take(&entry_pair, pairs);
    }
    Block block() const {
        return {0, 0, 0, input, output, token_first, pair_place, place_first, entry_token, entry_pair};
    }
};

// Copies the tokens that survive subsampling in the sentences that are (not) held out; returns how many ids it wrote.
inline int64_t subsample(const Shard& shard, bool heldout, Random& random, int32_t* kept, Totals* totals) {
    int64_t n = 0;
    const int32_t* const end = shard.ids + shard.count;
    for (const int32_t* p = shard.ids; p < end;) {
        const uint64_t place = static_cast<uint64_t>(shard.position + (p - shard.ids));
        const bool is_heldout = (mix(shard.heldout_key + place) >> 32) < shard.heldout;
        const int32_t* const start = p;
        if (is_heldout != heldout) {
            while (p < end && *p >= 0) p++;
        } else {
            for (; p < end && *p >= 0; p++) {
                kept[n] = *p;
                n += random.next32() <= shard.keep[*p];
            }
            totals->raw += p - start;
            kept[n++] = -1;
        }
        p++;
    }
    return n;
}

// Appends tokens from .. to-1 of the sentence start .. end-1, each with the contexts that `reach` gives it.
inline void add_group(const SkipGramScratch& s, int64_t start, int64_t end, int64_t from, int64_t to, int64_t reach,
                      Block* block) {
    const int64_t low = from - reach < start ? start : from - reach;
    const int64_t high = to + reach > end ? end : to + reach;
    const int32_t token = block->tokens, place = block->places;
    for (int64_t t = from; t < to; t++) {
        s.input[block->tokens++] = s.kept[t];
        const int64_t left = t - reach < start ? start : t - reach;
        const int64_t right = t + reach >= end ? end - 1 : t + reach;
        for (int64_t c = left; c <= right; c++) {
            s.pair_place[block->pairs] = place + static_cast<int32_t>(c - low);
            block->pairs += c != t;
        }
        s.token_first[block->tokens] = block->pairs;
    }
    int32_t entry = s.token_first[token];
    for (int64_t c = low; c < high; c++) {
        s.output[block->places++] = s.kept[c];
        const int64_t first = c - reach < from ? from : c - reach;
        const int64_t last = c + reach >= to ? to - 1 : c + reach;
        for (int64_t t = first; t <= last; t++) {
            const int64_t left = t - reach < start ? start : t - reach;
            const int32_t i = token + static_cast<int32_t>(t - from);
            s.entry_token[entry] = i;
            s.entry_pair[entry] = s.token_first[i] + static_cast<int32_t>(c - left - (c > t));
            entry += c != t;
        }
        s.place_first[block->places] = entry;
    }
}

// Feeds head.step(block, lr, random, ahead, n) with blocks of up to T tokens from as many sentences as fill one;
// ahead[0 .. n-1] are the ids that come next, for the head to fetch their rows.
template <typename Head>
inline void skipgram(const Shard& shard, bool heldout, const SkipGramScratch& s, Head& head, Totals* totals) {
    Random random{shard.key};
    const int64_t n = subsample(shard, heldout, random, s.kept, totals);
    const float slope = (shard.lr_end - shard.lr_begin) / static_cast<float>(n + 1);
    Block block = s.block();
    s.token_first[0] = s.place_first[0] = 0;
    auto flush = [&](int64_t next) {
        totals->loss += head.step(block, shard.lr_begin + slope * static_cast<float>(next), random, s.kept + next,
                                  n - next);
        totals->pairs += block.pairs;
        block.tokens = block.places = block.pairs = 0;
    };
    for (int64_t start = 0, end; start < n; start = end + 1) {
        for (end = start; s.kept[end] >= 0;) end++;
        totals->trained += end - start;
        if (end - start < 2) continue;
        for (int64_t t = start; t < end;) {
            const int64_t room = shard.block - block.tokens, group = room < kGroup ? room : kGroup;
            const int64_t to = t + group > end ? end : t + group;
            const int64_t reach = 1 + random.below(static_cast<uint32_t>(shard.window));
            add_group(s, start, end, t, to, reach, &block);
            t = to;
            if (block.tokens == shard.block) flush(t);
        }
    }
    if (block.tokens) flush(n);
}

}  // namespace
}  // namespace skipgrad
