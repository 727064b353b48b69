// The contract between Python and the compute kernels: plain structs, and one table of functions per
// instruction set. A kernel allocates nothing, starts no thread, throws nothing, and keeps no state.
#pragma once
#include <cstddef>
#include <cstdint>

namespace skipgrad {

struct Kernels {
    const char* isa;
    int lanes;  // floats in one vector register
};

// The table for `isa` ("v2", "v3", "v4", "neon", "plain"), or nullptr where this machine cannot run it.
const Kernels* find_kernels(const char* isa);

// The fastest table that this machine runs.
const Kernels* best_kernels();

}  // namespace skipgrad
