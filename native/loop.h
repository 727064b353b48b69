// The loop over a shard: subsampling, windows, blocks. It knows nothing of the head that it feeds.
#pragma once
#include "band.h"
#include "kernels.h"
#include "rng.h"
#include "scratch.h"

namespace skipgrad {
namespace {

constexpr int kStreams = 4;

struct LoopScratch {
    int32_t* kept;                       // (count) tokens that survived subsampling; sentences still end with -1
    int32_t *token, *place;              // as in Block
    float* pairs;                        // as in Block
    Group* group;                        // (block)
    float* seen;                         // (window + 1) the weights of the n nearest places to one side, summed
    int32_t *ahead_token, *ahead_place;  // (kGroup kStreams)

    void lay_out(Carver& carver, int32_t window, int32_t block, int64_t count) {
        carver.take(&kept, count);
        carver.take(&token, block);
        carver.take(&place, int64_t{block} * (2 * window + 1));
        carver.take(&pairs, block);
        carver.take(&group, block);
        carver.take(&seen, window + 1);
        carver.take(&ahead_token, kGroup * kStreams);
        carver.take(&ahead_place, kGroup * kStreams);
    }
    Block block() const { return {0, 0, 0, token, place, pairs, group}; }
};

// Copies the tokens that survive subsampling in the sentences that are (not) held out; returns how many ids it wrote.
inline int64_t subsample(const Shard& shard, bool heldout, Random& random, int32_t* kept, Totals* totals) {
    int64_t n = 0;
    const int32_t* const end = shard.ids + shard.count;
    for (const int32_t* p = shard.ids; p < end;) {
        const uint64_t place = static_cast<uint64_t>(shard.position + (p - shard.ids));
        const bool is_heldout = (mix(shard.heldout_key + place) >> 32) < shard.heldout;
        const int32_t* const start = p;
        const int64_t begin = n;
        if (is_heldout != heldout) {
            while (p < end && *p >= 0) p++;
        } else {
            for (; p < end && *p >= 0; p++) {
                kept[n] = *p;
                n += random.next32() <= shard.keep[*p];
            }
            totals->raw += p - start;
            totals->trained += n - begin;
            kept[n++] = -1;
        }
        p++;
    }
    return n;
}

inline void fill_seen(int32_t window, float* seen) {
    seen[0] = 0;
    for (int32_t d = 1; d <= window; d++) seen[d] = seen[d - 1] + weight_of(d, window);
}

// Appends tokens from .. to-1 of the sentence start .. end-1.
inline void add_group(const LoopScratch& s, int64_t start, int64_t end, int64_t from, int64_t to, int64_t window,
                      Block* block) {
    const int64_t low = from - lower_of(from - start, window), high = to + lower_of(end - to, window);
    for (int64_t t = from; t < to; t++) {
        s.token[block->tokens] = s.kept[t];
        s.pairs[block->tokens++] = s.seen[lower_of(t - start, window)] + s.seen[lower_of(end - 1 - t, window)];
    }
    for (int64_t c = low; c < high; c++) s.place[block->places++] = s.kept[c];
    s.group[block->groups++] = {static_cast<int32_t>(to - from), static_cast<int32_t>(high - low),
                                static_cast<int32_t>(from - low)};
}

// Part of a shard that is read group by group.
struct Stream {
    int64_t next;   // token to read
    int64_t start;  // of its sentence
    int64_t end;    // of its sentence; there stands -1
    int64_t limit;  // end of the part

    // Steps over sentences of less than two tokens; returns whether there is a token to read.
    bool ready(const int32_t* kept) {
        while (next == end && end + 1 < limit) {
            next = start = end + 1;
            for (end = start; kept[end] >= 0;) end++;
            if (end - start < 2) next = end;
        }
        return next < end;
    }
};

// Words whose rows the next block is likely to need.
struct Ahead {
    const int32_t *token, *place;
    int32_t tokens, places;
};

// The next block takes its groups from the streams k, k + 1, ...
inline Ahead look_ahead(const LoopScratch& s, const Stream* streams, int k, int64_t groups, int64_t window) {
    Ahead ahead{s.ahead_token, s.ahead_place, 0, 0};
    for (int g = 0; g < kStreams && g < groups; g++) {
        const Stream& stream = streams[(k + g) % kStreams];
        const int64_t next = stream.next, limit = stream.limit;
        for (int64_t t = next; t < next + kGroup && t < limit; t++)
            if (s.kept[t] >= 0) s.ahead_token[ahead.tokens++] = s.kept[t];
        for (int64_t t = next + window; t < next + window + kGroup && t < limit; t++)
            if (s.kept[t] >= 0) s.ahead_place[ahead.places++] = s.kept[t];
    }
    return ahead;
}

// Cuts kept[0 .. n-1] into kStreams parts at ends of sentences.
inline void cut(const int32_t* kept, int64_t n, Stream* streams) {
    int64_t start = 0;
    for (int k = 0; k < kStreams; k++) {
        int64_t limit = n * (k + 1) / kStreams;
        if (limit < start) limit = start;
        while (limit < n && limit > start && kept[limit - 1] >= 0) limit++;
        streams[k] = {start - 1, start - 1, start - 1, limit};  // before its first sentence
        start = limit;
    }
}

// Feeds head.step(block, lr, ahead, totals) with blocks of up to T tokens. They take groups of neighbors in turn from
// distant parts of the shard: what all tokens of a block share is then not pushed by one topic at a time.
template <typename Head>
inline void loop(const Shard& shard, bool heldout, const LoopScratch& s, Head& head, Totals* totals) {
    Random random{shard.key};
    const int64_t n = subsample(shard, heldout, random, s.kept, totals);
    const float slope = (shard.lr_end - shard.lr_begin) / static_cast<float>(totals->trained + 1);
    head.start(shard.key, (totals->trained + shard.block - 1) / shard.block);
    Stream streams[kStreams];
    cut(s.kept, n, streams);
    fill_seen(shard.window, s.seen);
    Block block = s.block();
    int64_t read = 0;
    for (int idle = 0, k = 0; idle < kStreams; k = (k + 1) % kStreams) {
        Stream& stream = streams[k];
        const bool ready = stream.ready(s.kept);
        idle = ready ? 0 : idle + 1;
        if (ready) {
            const int64_t room = shard.block - block.tokens, group = room < kGroup ? room : kGroup;
            const int64_t to = lower_of(stream.next + group, stream.end);
            add_group(s, stream.start, stream.end, stream.next, to, shard.window, &block);
            read += to - stream.next;
            stream.next = to;
        }
        if (block.tokens < shard.block && (idle < kStreams || !block.tokens)) continue;
        const Ahead ahead = look_ahead(s, streams, k + 1, (shard.block + kGroup - 1) / kGroup, shard.window);
        head.step(block, shard.lr_begin + slope * static_cast<float>(read), ahead, totals);
        block.tokens = block.places = block.groups = 0;
    }
}

}  // namespace
}  // namespace skipgrad
