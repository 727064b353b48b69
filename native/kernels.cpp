// Compiled once for each instruction set. Only <cstdint> and <cstddef> may be included from here: an inline
// std:: function built for AVX-512 becomes a weak symbol that the linker may keep for every caller.
#include "kernels.h"

#include "adam.h"
#include "heads/adaptive.h"
#include "heads/hierarchical.h"
#include "heads/importance.h"
#include "heads/negative.h"
#include "heads/sampled.h"
#include "heads/softmax.h"
#include "loop.h"
#include "sampling.h"

#define SKIPGRAD_STRING2(x) #x
#define SKIPGRAD_STRING(x) SKIPGRAD_STRING2(x)
#define SKIPGRAD_JOIN2(a, b) a##b
#define SKIPGRAD_JOIN(a, b) SKIPGRAD_JOIN2(a, b)

namespace skipgrad {
namespace {

// Heads that draw: a step takes the next block's draws while it works on this one.
struct DrawnHead {
    const Tables& tables;
    const Head& head;
    bool update;
    DrawnScratch scratch;
    Fetch fetch;
    int32_t* words;  // (blocks, N') draws of all blocks: drawn in one go, their cache misses overlap
    Random near;     // for the draws that depend on a block's tokens

    void lay_out(Carver& carver, Encoder encoder, int32_t window, int32_t block, int64_t count) {
        scratch.lay_out(carver, head, encoder, tables.stride, window, block);
        carver.take(&words, (count / block + 2) * padded(head.draws));
        carver.take(&fetch.rows, head.draws + 2 * kGroup * kStreams);
        fetch.count = fetch.next = 0;
        fetch.stride = tables.stride;
    }

    // Draws for so many blocks, and for one more, whose rows the last one fetches.
    void start(uint64_t key, int64_t blocks) {
        scratch.fill_constants();
        Random random{mix(key)};
        near = Random{mix(key + 1)};
        const int32_t width = padded(head.draws), exact = head.exact;
        for (int32_t* w = words; w <= words + blocks * width; w += width) {
            for (int32_t n = 0; n < exact; n++) w[n] = n;
            draw_stratified(head.noise, random, w + exact, head.draws - exact);
            for (int32_t n = head.draws; n < width; n++) w[n] = -1;
        }
    }

    void finish() {}

    void step(const Block& block, float lr, const Ahead& ahead, Totals* totals) {
        int32_t* now = words;
        words += padded(head.draws);
        if (head.near.words) {
            find_given(block, scratch.encoder.encoder, scratch.given);
            draw_near(head, block.tokens, scratch.given, near, now);
        }
        fetch.count = fetch.next = 0;
        const bool skip = scratch.encoder.encoder == kSkipGram;
        float *const of_token = skip ? tables.input : tables.output, *const of_place =
                                                                         skip ? tables.output : tables.input;
        for (int32_t k = head.exact; k < head.draws; k++) fetch.add(row(tables.output, words[k], tables.stride));
        for (int32_t k = 0; k < ahead.tokens; k++) fetch.add(row(of_token, ahead.token[k], tables.stride));
        for (int32_t k = 0; k < ahead.places; k++) fetch.add(row(of_place, ahead.place[k], tables.stride));
        one_step(block, now, lr, totals);
        fetch.some(fetch.count);
    }

    void one_step(const Block& block, const int32_t* draws, float lr, Totals* totals) {
        const auto run = [&](auto rule) {
            drawn_block<decltype(rule)>(tables, head, block, draws, lr, update, scratch, fetch, totals);
        };
        if (head.kind == kNegative) run(LogisticRule<true>{});
        if (head.kind == kNce) run(LogisticRule<false>{});
        if (head.kind == kImportance) run(ImportanceRule{});
        if (head.kind == kSampled) run(SampledRule{});
    }
};

struct HierarchicalHead {
    const Tables& tables;
    const Head& head;
    bool update;
    HierarchicalScratch scratch;
    Fetch fetch;
    uint64_t key;   // of the next block
    int32_t since;  // tokens since the first nodes were copied

    void lay_out(Carver& carver, Encoder encoder, int32_t window, int32_t block, int64_t) {
        scratch.lay_out(carver, head, encoder, tables.stride, window, block);
        carver.take(&fetch.rows, (head.longest + 2) * kGroup * kStreams);
        fetch.count = fetch.next = 0;
        fetch.stride = tables.stride;
    }

    void start(uint64_t shard_key, int64_t) {
        scratch.encoder.band.fill_weights();
        key = shard_key;
        since = 0;
        take_hot(tables, head, scratch);
    }
    void finish() {
        if (update) give_hot(tables, head, scratch);
    }

    void step(const Block& block, float lr, const Ahead& ahead, Totals* totals) {
        constexpr int32_t kAlone = 1024;  // tokens that may pass before other threads see what the first nodes learned
        fetch.count = fetch.next = 0;
        for (int32_t k = 0; k < ahead.places; k++) fetch.add(row(tables.input, ahead.place[k], tables.stride));
        for (int32_t k = 0; k < ahead.tokens; k++) {
            const int32_t word = ahead.token[k];
            for (int64_t j = head.begins[word]; j < head.begins[word + 1]; j++)
                if (head.steps[j] >> 1 >= kHotNodes) fetch.add(row(tables.output, head.steps[j] >> 1, tables.stride));
        }
        hierarchical_block(tables, head, block, mix(++key), lr, update, scratch, fetch, totals);
        fetch.some(fetch.count);
        since += block.tokens;
        if (since < kAlone) return;
        finish();
        take_hot(tables, head, scratch);
        since = 0;
    }
};

struct AdaptiveHead {
    const Tables& tables;
    const Head& head;
    bool update;
    AdaptiveScratch scratch;

    void lay_out(Carver& carver, Encoder encoder, int32_t window, int32_t block, int64_t) {
        scratch.lay_out(carver, encoder, tables.stride, window, block);
    }
    void start(uint64_t, int64_t) { scratch.encoder.band.fill_weights(); }
    void finish() {}
    void step(const Block& block, float lr, const Ahead&, Totals* totals) {
        adaptive_block(tables, head, block, lr, update, scratch, totals);
    }
};

// Calls body(the head), laid out in the scratch memory that begins at carver.end.
template <typename Body>
void with_head(const Tables& tables, const Head& head, Encoder encoder, bool update, int32_t window, int32_t block,
               int64_t count, Carver& carver, Body body) {
    const auto run = [&](auto one) {
        one.lay_out(carver, encoder, window, block, count);
        body(one);
    };
    if (head.kind == kHierarchical)
        run(HierarchicalHead{tables, head, update, {}, {}, 0, 0});
    else if (head.kind == kSoftmax || head.kind == kAdaptive)
        run(AdaptiveHead{tables, head, update, {}});
    else
        run(DrawnHead{tables, head, update, {}, {}, nullptr, {0}});
}

void run(const Tables& tables, const Head& head, Encoder encoder, const Shard& shard, bool update, void* scratch,
         Totals* totals) {
    Carver carver{reinterpret_cast<uintptr_t>(scratch)};
    with_head(tables, head, encoder, update, shard.window, shard.block, shard.count, carver, [&](auto& one) {
        LoopScratch memory;
        memory.lay_out(carver, shard.window, shard.block, shard.count);
        loop(shard, !update, memory, one, totals);
        one.finish();
    });
}

void step(const Tables& tables, const Head& head, Encoder encoder, const Block& block, const int32_t* draws,
          uint64_t key, float lr, int32_t window, void* scratch, Totals* totals) {
    Carver carver{reinterpret_cast<uintptr_t>(scratch)};
    if (head.kind == kHierarchical) {
        HierarchicalHead one{tables, head, true, {}, {}, 0, 0};
        one.lay_out(carver, encoder, window, block.tokens, 0);
        one.start(key, 0);
        hierarchical_block(tables, head, block, key, lr, true, one.scratch, one.fetch, totals);
        one.finish();
    } else if (head.kind == kSoftmax || head.kind == kAdaptive) {
        AdaptiveHead one{tables, head, true, {}};
        one.lay_out(carver, encoder, window, block.tokens, 0);
        one.start(key, 0);
        adaptive_block(tables, head, block, lr, true, one.scratch, totals);
    } else {
        DrawnHead one{tables, head, true, {}, {}, nullptr, {0}};
        one.lay_out(carver, encoder, window, block.tokens, 0);
        one.scratch.fill_constants();
        one.one_step(block, draws, lr, totals);
    }
}

size_t scratch(const Head& head, Encoder encoder, int32_t stride, int32_t window, int32_t block, int64_t count) {
    Carver carver{0};
    const Tables tables{nullptr, nullptr, nullptr, 0, stride};
    with_head(tables, head, encoder, true, window, block, count, carver, [&](auto&) {
        LoopScratch memory;
        memory.lay_out(carver, window, block, count);
    });
    return carver.end;
}

double fma_loop(int64_t rounds) {
    constexpr int kChains = 12;  // enough to hide the latency, few enough for 16 registers
    vfloat chain[kChains];
    for (int i = 0; i < kChains; i++) chain[i] = set(static_cast<float>(i) * 1e-3f);
    const vfloat x = set(0.999f), y = set(1e-6f);
    for (int64_t n = 0; n < rounds; n++)
        for (int i = 0; i < kChains; i++) chain[i] = chain[i] * x + y;
    for (int i = 1; i < kChains; i++) chain[0] += chain[i];
    volatile float keep = sum(chain[0]);
    (void)keep;
    return static_cast<double>(rounds) * kChains * kLanes * 2;
}

}  // namespace

extern const Kernels SKIPGRAD_JOIN(kernels_, SKIPGRAD_ISA);
const Kernels SKIPGRAD_JOIN(kernels_, SKIPGRAD_ISA) = {
    SKIPGRAD_STRING(SKIPGRAD_ISA),
    &scratch,
    &run,
    &step,
    &fma_loop,
    &pack_hidden,
    &softmax_forward,
    &softmax_backward,
    &logistic_backward,
    &adam_step,
};

}  // namespace skipgrad
