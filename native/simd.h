// Vectors of floats by the compiler's vector extensions: one source for every instruction set.
// Everything has internal linkage, so that no function built for one instruction set can be linked to another.
#pragma once
#include <cstddef>
#include <cstdint>

#define SKIPGRAD_INLINE inline __attribute__((always_inline))
#define SKIPGRAD_STAGE inline __attribute__((noinline))  // a stage of a step: calls are rare, and profiles can be read

namespace skipgrad {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;      // floats in a register
constexpr int kPanel = 8;       // vectors of a row that are kept in registers at a time
constexpr int kStep = 8;        // floats: rows are worked on up to their dimension rounded up to this
constexpr int kScoreRows = 8;   // rows in a tile of scores: it has two vectors of columns
constexpr int kPlaceRows = 12;  // the same for a tile of eight columns
#elif defined(__AVX__)
constexpr int kLanes = 8;
constexpr int kPanel = 4;
constexpr int kStep = 8;
constexpr int kScoreRows = 4;
constexpr int kPlaceRows = 10;
#else
constexpr int kLanes = 4;
constexpr int kPanel = 4;
constexpr int kStep = 4;
constexpr int kScoreRows = 4;
constexpr int kPlaceRows = 5;
#endif

typedef float vfloat __attribute__((vector_size(kLanes * 4), may_alias));
typedef float vhalf __attribute__((vector_size(kLanes * 2), may_alias));
typedef int32_t vint __attribute__((vector_size(kLanes * 4), may_alias));
typedef float veight __attribute__((vector_size(32), may_alias));
typedef float veight_any __attribute__((vector_size(32), may_alias, aligned(4)));
typedef float vfloat_any __attribute__((vector_size(kLanes * 4), may_alias, aligned(4)));  // wherever it lies

SKIPGRAD_INLINE vfloat load(const float* p) { return *reinterpret_cast<const vfloat*>(p); }
SKIPGRAD_INLINE void store(float* p, vfloat x) { *reinterpret_cast<vfloat*>(p) = x; }
SKIPGRAD_INLINE vhalf load_half(const float* p) { return *reinterpret_cast<const vhalf*>(p); }
SKIPGRAD_INLINE void store_half(float* p, vhalf x) { *reinterpret_cast<vhalf*>(p) = x; }
SKIPGRAD_INLINE vint load_int(const int32_t* p) { return *reinterpret_cast<const vint*>(p); }
SKIPGRAD_INLINE void store_int(int32_t* p, vint x) { *reinterpret_cast<vint*>(p) = x; }
SKIPGRAD_INLINE vfloat load_any(const float* p) { return *reinterpret_cast<const vfloat_any*>(p); }
SKIPGRAD_INLINE void store_any(float* p, vfloat x) { *reinterpret_cast<vfloat_any*>(p) = x; }
SKIPGRAD_INLINE veight load_eight_any(const float* p) { return *reinterpret_cast<const veight_any*>(p); }
SKIPGRAD_INLINE void store_eight(float* p, veight x) { *reinterpret_cast<veight*>(p) = x; }
SKIPGRAD_INLINE vfloat set(float x) { return x - vfloat{}; }
SKIPGRAD_INLINE vint set_int(int32_t x) { return x - vint{}; }

SKIPGRAD_INLINE float sum(vfloat x) {
    float s = 0;
    for (int i = 0; i < kLanes; i++) s += x[i];
    return s;
}

// exp(x) for x <= 0, relative error below 2e-7; at most 2^-126 below -87. NaN stays NaN.
SKIPGRAD_INLINE vfloat exp_negative(vfloat x) {
    vfloat t = x * 1.44269504f;
    t = -126.0f > t ? set(-126.0f) : t;
    const vint whole = __builtin_convertvector(t - 0.5f, vint);   // t <= 0: truncation rounds to nearest
    const vfloat f = t - __builtin_convertvector(whole, vfloat);  // in [-0.5, 0.5]
    vfloat p = f * 1.326697039e-3f + 9.675459746e-3f;
    p = p * f + 5.550742616e-2f;
    p = p * f + 2.402212175e-1f;
    p = p * f + 6.931469492e-1f;
    p = p * f + 1.0f;
    const vint bits = (whole + 127) << 23;
    return p * reinterpret_cast<const vfloat&>(bits);
}

// log(1 + e) for e in [0, 1], absolute error below 2e-7.
SKIPGRAD_INLINE vfloat log1p_unit(vfloat e) {
    vfloat p = e * -8.574676205e-3f + 4.421419234e-2f;
    p = p * e - 1.078536792e-1f;
    p = p * e + 1.775702399e-1f;
    p = p * e - 2.449961172e-1f;
    p = p * e + 3.327617657e-1f;
    p = p * e - 4.999744938e-1f;
    p = p * e + 9.999998102e-1f;
    return p * e;
}

// log(x) for normal x > 0, absolute error below 4e-7.
SKIPGRAD_INLINE vfloat log_positive(vfloat x) {
    const vint bits = reinterpret_cast<const vint&>(x);
    const vint one_to_two = (bits & 0x7fffff) | 0x3f800000;
    const vfloat exponent = __builtin_convertvector((bits >> 23) - 127, vfloat);
    const vfloat log = exponent * 0.693147181f + log1p_unit(reinterpret_cast<const vfloat&>(one_to_two) - 1.0f);
    return x < __builtin_inff() ? log : x;  // infinity and NaN stay what they are
}

// sigmoid(x), and softplus(x) = log(1 + exp(x)) = -log sigmoid(-x).
SKIPGRAD_INLINE vfloat sigmoid(vfloat x, vfloat* softplus) {
    const vfloat e = exp_negative(x > 0.0f ? -x : x);
    const vfloat r = 1.0f / (1.0f + e);
    *softplus = (x < 0.0f ? vfloat{} : x) + log1p_unit(e);
    return x < 0.0f ? e * r : r;
}

template <int... I>
struct Lanes {};
template <int kCount, int... I>
struct MakeLanes : MakeLanes<kCount - 1, kCount - 1, I...> {};
template <int... I>
struct MakeLanes<0, I...> {
    typedef Lanes<I...> type;
};
typedef MakeLanes<kLanes>::type AllLanes;

template <int... I>
SKIPGRAD_INLINE vint lane_numbers(Lanes<I...>) {
    return vint{I...};
}
SKIPGRAD_INLINE vint lane_numbers() { return lane_numbers(AllLanes{}); }

template <int... I>
SKIPGRAD_INLINE vfloat widen(vhalf x, Lanes<I...>) {
    return __builtin_shufflevector(x, vhalf{}, I...);
}
// x in the lower half, 0 in the upper.
SKIPGRAD_INLINE vfloat widen(vhalf x) { return widen(x, AllLanes{}); }

template <int... I>
SKIPGRAD_INLINE vhalf lower(vfloat x, Lanes<I...>) {
    return __builtin_shufflevector(x, x, I...);
}
SKIPGRAD_INLINE vhalf lower(vfloat x) { return lower(x, MakeLanes<kLanes / 2>::type{}); }

template <int... I>
SKIPGRAD_INLINE vhalf upper(vfloat x, Lanes<I...>) {
    return __builtin_shufflevector(x, x, (I + kLanes / 2)...);
}
SKIPGRAD_INLINE vhalf upper(vfloat x) { return upper(x, MakeLanes<kLanes / 2>::type{}); }

template <int kHalf, int... I>
SKIPGRAD_INLINE void exchange(vfloat* a, vfloat* b, Lanes<I...>) {
    const vfloat low = __builtin_shufflevector(*a, *b, (I % (2 * kHalf) < kHalf ? I : I - kHalf + kLanes)...);
    const vfloat high = __builtin_shufflevector(*a, *b, (I % (2 * kHalf) < kHalf ? I + kHalf : I + kLanes)...);
    *a = low;
    *b = high;
}

// Transposes the square of kLanes vectors in registers.
template <int kHalf = kLanes / 2>
SKIPGRAD_INLINE void transpose(vfloat* rows) {
    for (int i = 0; i < kLanes; i++)
        if (!(i & kHalf)) exchange<kHalf>(&rows[i], &rows[i + kHalf], AllLanes{});
    if constexpr (kHalf > 1) transpose<kHalf / 2>(rows);
}

// The sums of kLanes vectors, one in each lane.
template <int kHalf = kLanes / 2>
SKIPGRAD_INLINE vfloat sums(vfloat* rows) {
    for (int i = 0; i < kHalf; i++) {
        exchange<kHalf>(&rows[i], &rows[i + kHalf], AllLanes{});
        rows[i] += rows[i + kHalf];
    }
    if constexpr (kHalf > 1) return sums<kHalf / 2>(rows);
    return rows[0];
}

}  // namespace
}  // namespace skipgrad
