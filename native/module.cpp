// The Python module: text is bound here, and the kernels in bind_heads.cpp. No other file knows Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <optional>

#include "tokens.h"

namespace nb = nanobind;
using namespace nb::literals;

void bind_heads(nb::module_& m);

namespace {

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
    bind_heads(m);
    bind_text(m);
    bind_counts(m);
}
