// Random numbers by counter: draw i of a stream is a function of (key, i) alone, whatever thread asks for it.
#pragma once
#include <cstdint>

namespace skipgrad {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64 bits that passes BigCrush on consecutive counters.
inline uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct Random {
    uint64_t state;

    uint64_t next() {
        const uint64_t draw = mix(state);
        state += 0x9e3779b97f4a7c15u;
        return draw;
    }
    uint32_t next32() { return static_cast<uint32_t>(next() >> 32); }
    // Uniform in [0, n).
    uint32_t below(uint32_t n) { return static_cast<uint32_t>((static_cast<uint64_t>(next32()) * n) >> 32); }
};

}  // namespace
}  // namespace skipgrad
