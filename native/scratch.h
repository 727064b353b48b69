// Lays arrays out in memory that the caller allocated: kernels allocate nothing.
#pragma once
#include <cstddef>
#include <cstdint>

namespace skipgrad {
namespace {

// Hands out 64-byte aligned arrays one after the other; started at 0, its end is the size that is needed.
struct Carver {
    uintptr_t end;

    template <typename T>
    void take(T** array, int64_t n) {
        *array = reinterpret_cast<T*>(end);
        end += (static_cast<uintptr_t>(n) * sizeof(T) + 63) / 64 * 64;
    }
};

}  // namespace
}  // namespace skipgrad
