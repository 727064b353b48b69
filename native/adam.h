// Adam (Kingma and Ba 2015, arXiv:1412.6980), fused: one pass over the parameters, their moments and their gradient.
#pragma once
#include "kernels.h"

namespace skipgrad {
namespace {

// m <- b1 m + (1 - b1) g; s <- b2 s + (1 - b2) g^2; x <- x - rate m / (sqrt(s) + epsilon). The gradient is set to 0 for
// the next step. Where g is 0 from the start, as in the padding of rows, x stays as it is.
inline void adam_step(float* x, float* g, float* m, float* s, int64_t n, const Adam& adam) {
    const float b1 = adam.beta1, b2 = adam.beta2, rate = adam.rate, root = adam.root, epsilon = adam.epsilon;
    for (int64_t i = 0; i < n; i++) {
        m[i] += (1.0f - b1) * (g[i] - m[i]);
        s[i] += (1.0f - b2) * (g[i] * g[i] - s[i]);
        x[i] -= rate * m[i] / (root * __builtin_sqrtf(s[i]) + epsilon);
        g[i] = 0.0f;
    }
}

}  // namespace
}  // namespace skipgrad
