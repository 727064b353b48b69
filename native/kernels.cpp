// Compiled once for each instruction set. Only <cstdint> and <cstddef> may be included from here: an inline
// std:: function built for AVX-512 becomes a weak symbol that the linker may keep for every caller.
#include "kernels.h"

#include "adam.h"
#include "heads/negative.h"
#include "heads/softmax.h"
#include "skipgram.h"

#define SKIPGRAD_STRING2(x) #x
#define SKIPGRAD_STRING(x) SKIPGRAD_STRING2(x)
#define SKIPGRAD_JOIN2(a, b) a##b
#define SKIPGRAD_JOIN(a, b) SKIPGRAD_JOIN2(a, b)

namespace skipgrad {
namespace {

template <bool kUpdate>
struct NegativeHead {
    const Tables& tables;
    const Noise& noise;
    const Negative& options;
    NegativeScratch scratch;
    Fetch fetch;
    int32_t* words;  // (blocks, N') noise words of all blocks: drawn in one go, their cache misses overlap

    void lay_out(Carver& carver, int32_t window, int32_t block, int64_t count) {
        scratch.lay_out(carver, options, tables.stride, window, block);
        carver.take(&words, (count / block + 2) * padded(options.draws));
        carver.take(&fetch.rows, options.draws + 2 * kGroup * kStreams);
        fetch.stride = tables.stride;
    }

    // Draws the noise of so many blocks, and of one more, whose rows the last one fetches.
    void start(uint64_t key, int64_t blocks) {
        scratch.band.fill_weights();
        Random random{mix(key)};
        const int32_t width = padded(options.draws);
        for (int32_t* w = words; w <= words + blocks * width; w += width) {
            draw_stratified(noise, random, w, options.draws);
            for (int32_t n = options.draws; n < width; n++) w[n] = -1;
        }
    }

    double step(const Block& block, float lr, const Ahead& ahead) {
        const int32_t* now = words;
        words += padded(options.draws);
        fetch.count = fetch.next = 0;
        for (int32_t k = 0; k < options.draws; k++) fetch.add(row(tables.output, words[k], tables.stride));
        for (int32_t k = 0; k < ahead.inputs; k++) fetch.add(row(tables.input, ahead.input[k], tables.stride));
        for (int32_t k = 0; k < ahead.outputs; k++) fetch.add(row(tables.output, ahead.output[k], tables.stride));
        const double loss = negative_block<kUpdate>(tables, block, options, now, lr, scratch, fetch);
        fetch.some(fetch.count);
        return loss;
    }
};

template <bool kUpdate>
void negative_shard(const Tables& tables, const Noise& noise, const Negative& options, const Shard& shard,
                    void* scratch, Totals* totals) {
    Carver carver{reinterpret_cast<uintptr_t>(scratch)};
    NegativeHead<kUpdate> head{tables, noise, options, {}, {}, {}};
    head.lay_out(carver, shard.window, shard.block, shard.count);
    SkipGramScratch loop;
    loop.lay_out(carver, shard.window, shard.block, shard.count);
    skipgram(shard, !kUpdate, loop, head, totals);
}

double negative_step(const Tables& tables, const Block& block, const Negative& options, const int32_t* noise, float lr,
                     int32_t window, void* scratch) {
    Carver carver{reinterpret_cast<uintptr_t>(scratch)};
    NegativeScratch s;
    s.lay_out(carver, options, tables.stride, window, block.tokens);
    s.band.fill_weights();
    Fetch nothing{nullptr, 0, 0, tables.stride};
    return negative_block<true>(tables, block, options, noise, lr, s, nothing);
}

size_t negative_scratch(const Negative& options, int32_t stride, int32_t window, int32_t block, int64_t count) {
    Carver carver{0};
    const Tables tables{nullptr, nullptr, 0, stride};
    const Noise noise{nullptr, nullptr, 0};
    NegativeHead<true> head{tables, noise, options, {}, {}, {}};
    head.lay_out(carver, window, block, count);
    SkipGramScratch loop;
    loop.lay_out(carver, window, block, count);
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
    &negative_scratch,
    &negative_shard<true>,
    &negative_shard<false>,
    &negative_step,
    &fma_loop,
    &pack_hidden,
    &softmax_forward,
    &softmax_backward,
    &logistic_backward,
    &adam_step,
};

}  // namespace skipgrad
