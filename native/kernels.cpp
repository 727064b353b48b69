// Compiled once for each instruction set. Only <cstdint> and <cstddef> may be included from here: an inline
// std:: function built for AVX-512 becomes a weak symbol that the linker may keep for every caller.
#include "kernels.h"

#define SKIPGRAD_STRING2(x) #x
#define SKIPGRAD_STRING(x) SKIPGRAD_STRING2(x)
#define SKIPGRAD_JOIN2(a, b) a##b
#define SKIPGRAD_JOIN(a, b) SKIPGRAD_JOIN2(a, b)

namespace skipgrad {
extern const Kernels SKIPGRAD_JOIN(kernels_, SKIPGRAD_ISA);
const Kernels SKIPGRAD_JOIN(kernels_, SKIPGRAD_ISA) = {SKIPGRAD_STRING(SKIPGRAD_ISA), 16};
}  // namespace skipgrad
