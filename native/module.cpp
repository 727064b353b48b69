// The only file that knows Python: checks and converts arguments, releases the GIL, calls the native core.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "kernels.h"
#include "sampling.h"
#include "tokens.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// ---------------------------------------------------------------- kernels

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Groups = nb::ndarray<const int32_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void check(bool holds, const char* sentence) {
    if (!holds) throw nb::value_error(sentence);
}

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const char* isa : {"v2", "v3", "v4", "neon", "plain"})
        if (skipgrad::find_kernels(isa)) names.emplace_back(isa);
    return names;
}

const skipgrad::Kernels& kernels_for(const std::string& isa) {
    const skipgrad::Kernels* found = skipgrad::find_kernels(isa.c_str());
    if (!found) throw nb::value_error(("This machine does not run the instruction set '" + isa + "'.").c_str());
    return *found;
}

// Gflop/s of one core in a loop of fused multiply-adds that touches registers only.
double fma_peak(const std::string& isa, double seconds) {
    const skipgrad::Kernels& kernels = kernels_for(isa);
    nb::gil_scoped_release released;
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    double flop = 0, passed = 0;
    while (passed < seconds) {
        flop += kernels.fma_loop(1 << 20);
        passed = std::chrono::duration<double>(Clock::now() - start).count();
    }
    return flop / passed / 1e9;
}

// Negative sampling on a pair of tables; holds on to the arrays that it was given. Calls may run at once.
class NegativeKernel {
  public:
    using Sums = std::tuple<int64_t, int64_t, double, double>;

    NegativeKernel(const std::string& isa, Table input, Table output, int32_t dim, Vector<const uint64_t> cumulative,
                   Vector<const uint32_t> keep, int32_t negatives, int32_t draws, int32_t window, int32_t block)
        : kernels_(kernels_for(isa)),
          input_(input),
          output_(output),
          cumulative_(cumulative),
          keep_(keep),
          head_{negatives, draws},
          window_(window),
          block_(block) {
        const size_t words = input.shape(0), stride = input.shape(1);
        check(output.shape(0) == words && output.shape(1) == stride, "The two tables differ in shape.");
        check(cumulative.shape(0) == words && keep.shape(0) == words, "The tables and the words differ in number.");
        check(dim > 0 && static_cast<size_t>(dim) <= stride && stride % 16 == 0, "The stride is not a multiple of 16.");
        check(
            reinterpret_cast<uintptr_t>(input.data()) % 64 == 0 && reinterpret_cast<uintptr_t>(output.data()) % 64 == 0,
            "The tables are not aligned to 64 bytes.");
        check(negatives > 0 && draws > 0 && draws % 8 == 0 && window > 0 && block > 0, "An option is out of range.");
        tables_ = {input_.data(), output_.data(), dim, static_cast<int32_t>(stride)};
        fill_guide();
    }

    size_t scratch(int64_t count) const {
        return kernels_.negative_scratch(head_, tables_.stride, window_, block_, count);
    }

    // Trains on (or, with update = false, evaluates) the sentences ids, which stand at `position` of the corpus.
    Sums run(bool update, Vector<const int32_t> ids, int64_t position, uint64_t key, uint64_t heldout_key,
             double heldout, float lr_begin, float lr_end, Vector<uint8_t> scratch) const {
        const int64_t count = static_cast<int64_t>(ids.shape(0));
        check(count == 0 || ids.data()[count - 1] == -1, "The last sentence does not end with -1.");
        void* aligned = align(scratch, this->scratch(count));
        const skipgrad::Shard shard{ids.data(),     count,   position, keep_.data(), key,   heldout_key,
                                    share(heldout), window_, block_,   lr_begin,     lr_end};
        const skipgrad::Noise noise{cumulative_.data(), guide_.data(), guide_bits_};
        skipgrad::Totals totals{0, 0, 0.0, 0.0};
        nb::gil_scoped_release released;
        (update ? kernels_.negative_train : kernels_.negative_evaluate)(tables_, noise, head_, shard, aligned, &totals);
        return {totals.raw, totals.trained, totals.pairs, totals.loss};
    }

    // The noise words of one block after the other, as `run` would draw them from a stream.
    nb::ndarray<nb::numpy, int32_t, nb::ndim<1>> draw(uint64_t key, size_t blocks) const {
        const size_t n = blocks * static_cast<size_t>(head_.draws);
        int32_t* words = new int32_t[n];
        nb::capsule owner(words, [](void* p) noexcept { delete[] static_cast<int32_t*>(p); });
        const skipgrad::Noise noise{cumulative_.data(), guide_.data(), guide_bits_};
        skipgrad::Random random{key};
        for (size_t i = 0; i < n; i += static_cast<size_t>(head_.draws))
            skipgrad::draw_stratified(noise, random, words + i, head_.draws);
        return nb::ndarray<nb::numpy, int32_t, nb::ndim<1>>(words, {n}, owner);
    }

    // One step on the given block and noise words. A row of `groups`: tokens, places, lead.
    double step(Vector<const int32_t> input, Vector<const int32_t> output, Groups groups, Vector<const int32_t> noise,
                float lr) const {
        const int32_t tokens = static_cast<int32_t>(input.shape(0)), places = static_cast<int32_t>(output.shape(0));
        check(static_cast<int32_t>(noise.shape(0)) == head_.draws, "The noise words differ in number from draws.");
        const auto* group = reinterpret_cast<const skipgrad::Group*>(groups.data());
        std::vector<float> pairs;
        int64_t seen = 0;
        for (const auto* g = group; g < group + groups.shape(0); g++) {
            check(g->tokens > 0 && g->tokens <= skipgrad::kGroup && g->lead >= 0 && g->lead <= window_ &&
                      g->lead + g->tokens <= g->places && g->places <= g->lead + g->tokens + window_,
                  "A group is out of range.");
            for (int32_t at = g->lead; at < g->lead + g->tokens; at++) {
                double sum = 0;
                for (int32_t place = 0; place < g->places; place++)
                    if (place != at) sum += std::max(0, window_ + 1 - std::abs(place - at));
                pairs.push_back(static_cast<float>(sum / window_));
            }
            seen += g->places;
        }
        check(static_cast<int32_t>(pairs.size()) == tokens && seen == places,
              "The groups do not fit the tokens and places.");
        // Filled with NaN: what a kernel has not written must not matter.
        std::vector<uint8_t> memory(kernels_.negative_scratch(head_, tables_.stride, window_, tokens, 0) + 64, 0xff);
        uint8_t* aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
        const skipgrad::Block block{
            tokens, places, static_cast<int32_t>(groups.shape(0)), input.data(), output.data(), pairs.data(), group};
        std::vector<uint8_t> words(static_cast<size_t>(head_.draws) * 4 + 128, 0xff);  // -1 beyond the draws
        uint8_t* drawn = words.data() + (64 - reinterpret_cast<uintptr_t>(words.data()) % 64) % 64;
        std::memcpy(drawn, noise.data(), static_cast<size_t>(head_.draws) * 4);
        return kernels_.negative_step(tables_, block, head_, reinterpret_cast<const int32_t*>(drawn), lr, window_,
                                      aligned);
    }

  private:
    // The first word of every one of 2^guide_bits equal parts of the distribution.
    void fill_guide() {
        const uint64_t* cumulative = cumulative_.data();
        check(cumulative[cumulative_.shape(0) - 1] == ~uint64_t{0}, "The distribution does not end at 2^64 - 1.");
        guide_bits_ = 8;
        while (guide_bits_ < 24 && (size_t{1} << guide_bits_) < cumulative_.shape(0)) guide_bits_++;
        guide_.resize(size_t{1} << guide_bits_);
        uint32_t word = 0;
        for (uint64_t i = 0; i < guide_.size(); i++) {
            while (cumulative[word] <= i << (64 - guide_bits_)) word++;
            guide_[i] = word;
        }
    }
    static void* align(const Vector<uint8_t>& scratch, size_t need) {
        const size_t skip = (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
        check(scratch.shape(0) >= need + skip, "The scratch memory is too small.");
        return scratch.data() + skip;
    }
    static uint64_t share(double heldout) { return static_cast<uint64_t>(heldout * 4294967296.0); }

    const skipgrad::Kernels& kernels_;
    Table input_, output_;
    Vector<const uint64_t> cumulative_;
    Vector<const uint32_t> keep_;
    skipgrad::Negative head_;
    int32_t window_, block_;
    skipgrad::Tables tables_;
    std::vector<uint32_t> guide_;
    int32_t guide_bits_;
};

void bind_kernels(nb::module_& m) {
    m.def("instruction_sets", &instruction_sets, "The instruction sets that this machine can run, slowest first.");
    m.def("fma_peak", &fma_peak, "isa"_a, "seconds"_a = 0.2,
          "Gflop/s of one core in a loop of fused multiply-adds that touches registers only.");
    nb::class_<NegativeKernel>(m, "NegativeKernel", "Negative sampling on a pair of tables.")
        .def(nb::init<const std::string&, Table, Table, int32_t, Vector<const uint64_t>, Vector<const uint32_t>,
                      int32_t, int32_t, int32_t, int32_t>(),
             "isa"_a, "input"_a.noconvert(), "output"_a.noconvert(), "dim"_a, "cumulative"_a.noconvert(),
             "keep"_a.noconvert(), "negatives"_a, "draws"_a, "window"_a, "block"_a)
        .def("scratch", &NegativeKernel::scratch, "count"_a,
             "Bytes of scratch memory that a run over `count` ids needs, if they start at a multiple of 64.")
        .def("run", &NegativeKernel::run, "update"_a, "ids"_a.noconvert(), "position"_a, "key"_a, "heldout_key"_a,
             "heldout"_a, "lr_begin"_a, "lr_end"_a, "scratch"_a.noconvert(),
             "Trains on sentences, or evaluates those held out; returns raw and trained tokens, pairs and loss.")
        .def("draw", &NegativeKernel::draw, "key"_a, "blocks"_a, "The noise words of so many blocks.")
        .def(
            "step", &NegativeKernel::step, "input"_a.noconvert(), "output"_a.noconvert(), "groups"_a.noconvert(),
            "noise"_a.noconvert(), "lr"_a,
            "One step on a block with the given noise words; returns the loss. A row of groups: tokens, places, lead.");
}

// ---------------------------------------------------------------- text

using Text = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ids = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Offsets = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Classes = nb::ndarray<const uint32_t, nb::shape<0x110000>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Made = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

const char* chars(const Text& text) { return reinterpret_cast<const char*>(text.data()); }

// A new NumPy array with room for `room` elements, of which fill(data) says how many it wrote. Pages that are
// not written are never given memory, so a generous room costs nothing.
template <typename T, typename Fill>
Made<T> make_array(size_t room, Fill fill) {
    auto* data = static_cast<T*>(std::malloc(std::max<size_t>(room, 1) * sizeof(T)));
    if (!data) throw std::bad_alloc();
    nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
    size_t size;
    {
        nb::gil_scoped_release release;
        size = fill(data);
    }
    return Made<T>(data, {size}, owner);
}

void bind_text(nb::module_& m) {
    using skipgrad::Counter;
    using skipgrad::Encoder;
    m.attr("LONGEST_WORD") = skipgrad::LONGEST_WORD;
    m.def(
        "invalid_utf8",
        [](Text text) {
            nb::gil_scoped_release release;
            return skipgrad::invalid_utf8(chars(text), text.size());
        },
        "text"_a.noconvert(), "The position of the first byte that is not valid UTF-8, or is NUL; -1: none.");
    m.def(
        "last_break",
        [](Text text, std::optional<Classes> classes) {
            return skipgrad::last_break(chars(text), text.size(), classes ? classes->data() : nullptr);
        },
        "text"_a.noconvert(), "classes"_a.noconvert().none(),
        "The position behind the last character that is in no word, or 0.");
    nb::class_<Counter>(m, "Counter", "Finds, interns and counts words; one thread at a time.")
        .def(
            "__init__",
            [](Counter* self, std::optional<Classes> classes) {
                new (self) Counter(classes ? classes->data() : nullptr);
            },
            "classes"_a.noconvert().none() = nb::none(), nb::keep_alive<1, 2>())
        .def(
            "feed",
            [](Counter& self, Text text, bool ends, bool inside) {
                return make_array<int32_t>(text.size() + 2, [&](int32_t* ids) {
                    return self.feed(chars(text), text.size(), ends, inside, ids);
                });
            },
            "text"_a.noconvert(), "ends"_a, "inside"_a, "The ids of the words of valid UTF-8, -1 for each newline.")
        .def(
            "feed_tokens",
            [](Counter& self, Text data, Offsets words, Offsets sentences) {
                return make_array<int32_t>(words.size() + sentences.size(), [&](int32_t* ids) {
                    return self.feed_tokens(chars(data), words.data(), sentences.data(), sentences.size() - 1, ids);
                });
            },
            "data"_a.noconvert(), "words"_a.noconvert(), "sentences"_a.noconvert(),
            "The ids of words that are given by offsets, -1 behind each sentence.")
        .def(
            "restrict",
            [](Counter& self, Text data, Offsets words) {
                self.restrict_to(chars(data), words.data(), words.size() - 1);
            },
            "data"_a.noconvert(), "words"_a.noconvert(), "Gives these words ids in their order, and no other word any.")
        .def(
            "merge",
            [](Counter& self, const Counter& other) {
                return make_array<int32_t>(other.size(), [&](int32_t* mapping) {
                    self.merge(other, mapping);
                    return other.size();
                });
            },
            "other"_a, "Adds another counter's words; the ids here of its ids.")
        .def(
            "prune",
            [](Counter& self) {
                size_t size = self.size();
                return make_array<int32_t>(size, [&](int32_t* renumbered) {
                    self.prune(renumbered);
                    return size;
                });
            },
            "Forgets at least half of the words, the rarest; the new ids of the old ones.")
        .def(
            "words",
            [](const Counter& self) {
                size_t n = self.size();
                auto counts = make_array<int64_t>(n, [&](int64_t*) { return n; });
                auto offsets = make_array<int64_t>(n + 1, [&](int64_t*) { return n + 1; });
                auto bytes = make_array<uint8_t>(self.arena_bytes(), [&](uint8_t* data) {
                    self.words(counts.data(), offsets.data(), reinterpret_cast<char*>(data));
                    return self.arena_bytes();
                });
                return nb::make_tuple(counts, offsets, bytes);
            },
            nb::sig("def words(self) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.uint8]]"),
            "Counts, offsets into the bytes (one more), and the bytes of all words, in the order of their ids.")
        .def("__len__", &Counter::size)
        .def_prop_ro("memory", &Counter::memory, "Bytes, the next growth of the table included.")
        .def_ro("tokens", &Counter::tokens)
        .def_ro("too_long", &Counter::too_long)
        .def_ro("pruned_words", &Counter::pruned_words)
        .def_ro("pruned_tokens", &Counter::pruned_tokens);
    nb::class_<Encoder>(m, "Encoder", "Turns a counter's ids into ids of the vocabulary, and sentences into blocks.")
        .def(nb::init<int64_t, int64_t>(), "max_sentence"_a, "block"_a)
        .def(
            "feed",
            [](Encoder& self, Ids ids, Ids mapping) {
                return make_array<int32_t>(2 * ids.size() + 1, [&](int32_t* out) {
                    return self.feed(ids.data(), ids.size(), mapping.data(), out);
                });
            },
            "ids"_a.noconvert(), "mapping"_a.noconvert(), "The ids of whole sentences, each ended by -1.")
        .def_ro("sentences", &Encoder::sentences)
        .def_ro("split", &Encoder::split)
        .def_prop_ro("blocks", [](const Encoder& self) { return self.blocks; });
}

}  // namespace

void bind_counts(nb::module_& m);  // bind_counts.cpp

NB_MODULE(_native, m) {
    m.doc() = "The native core of skipgrad: kernels, sampling and text.";
    bind_kernels(m);
    bind_text(m);
    bind_counts(m);
}
