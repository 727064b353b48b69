// The only file that knows Python: checks and converts arguments, releases the GIL, calls the native core.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "kernels.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// ---------------------------------------------------------------- kernels

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const char* isa : {"v2", "v3", "v4", "neon", "plain"})
        if (skipgrad::find_kernels(isa)) names.emplace_back(isa);
    return names;
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "The native core of skipgrad: kernels, sampling and text.";
    m.def("instruction_sets", &instruction_sets, "The instruction sets that this machine can run, slowest first.");
}
