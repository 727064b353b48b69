// Which of the compiled kernel tables this machine can run.
#include <cstring>

#include "kernels.h"

namespace skipgrad {

#ifdef SKIPGRAD_HAS_v2
extern const Kernels kernels_v2;
extern const Kernels kernels_v3;
extern const Kernels kernels_v4;
#endif
#ifdef SKIPGRAD_HAS_neon
extern const Kernels kernels_neon;
#endif
#ifdef SKIPGRAD_HAS_plain
extern const Kernels kernels_plain;
#endif

namespace {

struct Entry {
    const Kernels* kernels;
    bool runs;
};

// Slowest first: the last one that runs is the best.
#ifdef SKIPGRAD_HAS_v2
const Entry* entries(size_t* n) {
    __builtin_cpu_init();
    static const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    static const bool v3 =
        v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    static const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                           __builtin_cpu_supports("avx512vl");
    static const Entry table[] = {{&kernels_v2, v2}, {&kernels_v3, v3}, {&kernels_v4, v4}};
    *n = 3;
    return table;
}
#elif defined(SKIPGRAD_HAS_neon)
const Entry* entries(size_t* n) {
    static const Entry table[] = {{&kernels_neon, true}};
    *n = 1;
    return table;
}
#else
const Entry* entries(size_t* n) {
    static const Entry table[] = {{&kernels_plain, true}};
    *n = 1;
    return table;
}
#endif

}  // namespace

const Kernels* find_kernels(const char* isa) {
    size_t n = 0;
    const Entry* table = entries(&n);
    for (size_t i = 0; i < n; i++)
        if (table[i].runs && std::strcmp(table[i].kernels->isa, isa) == 0) return table[i].kernels;
    return nullptr;
}

const Kernels* best_kernels() {
    size_t n = 0;
    const Entry* table = entries(&n);
    const Kernels* best = nullptr;
    for (size_t i = 0; i < n; i++)
        if (table[i].runs) best = table[i].kernels;
    return best;
}

}  // namespace skipgrad
