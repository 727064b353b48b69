// Binds the kernels: checks and converts arguments, releases the GIL, calls the native core.
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

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Maybe = std::optional<Vector<T>>;
using Groups = nb::ndarray<const int32_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Lists = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Bytes = std::vector<uint8_t>;

void check(bool holds, const char* sentence) {
    if (!holds) throw nb::value_error(sentence);
}

template <typename T>
int32_t size(const T& array) {
    return static_cast<int32_t>(array.shape(0));
}

template <typename T>
auto* data_or_null(const std::optional<T>& array) {
    return array ? array->data() : nullptr;
}

uint8_t* aligned(uint8_t* p) { return p + (64 - reinterpret_cast<uintptr_t>(p) % 64) % 64; }

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

// Which of the names it is.
template <typename Kind>
Kind kind_of(const std::string& name, std::initializer_list<const char*> names) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) throw nb::value_error(("There is no native kernel for '" + name + "'.").c_str());
    return static_cast<Kind>(found - names.begin());
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

// The distribution that words are drawn from, with its guide: the first word of each of 2^guide_bits equal parts.
class Draws {
  public:
    explicit Draws(Vector<const uint64_t> cumulative) : cumulative_(cumulative) {
        const uint64_t* sums = cumulative_.data();
        check(size(cumulative_) > 0 && sums[cumulative_.shape(0) - 1] == ~uint64_t{0},
              "The distribution does not end at 2^64 - 1.");
        while (bits_ < 24 && (size_t{1} << bits_) < cumulative_.shape(0)) bits_++;
        guide_.resize(size_t{1} << bits_);
        uint32_t word = 0;
        for (uint64_t i = 0; i < guide_.size(); i++) {
            while (sums[word] <= i << (64 - bits_)) word++;
            guide_[i] = word;
        }
    }
    skipgrad::Noise noise() const { return {cumulative_.data(), guide_.data(), bits_}; }
    int32_t words() const { return size(cumulative_); }

  private:
    Vector<const uint64_t> cumulative_;
    std::vector<uint32_t> guide_;
    int32_t bits_ = 8;
};

// A head on a pair of tables; holds on to the arrays that it was given. Calls of `run` may go on at once.
class Kernel {
  public:
    using Sums = std::tuple<int64_t, int64_t, double, double, double>;

    Kernel(const std::string& isa, const std::string& head, const std::string& encoder, Table input, Table output,
           Maybe<float> bias, int32_t dim, Vector<const uint32_t> keep, int32_t window, int32_t block,
           Maybe<const uint64_t> cumulative, Maybe<const float> offset, int32_t draws, int32_t exact, float share,
           bool included, Maybe<const int64_t> begins, Maybe<const int32_t> steps, Maybe<float> mass,
           std::optional<Lists<const int32_t>> near_words, std::optional<Lists<const float>> near_cumulative,
           Maybe<const float> near_probability, Maybe<const int64_t> ends)
        : kernels_(kernels_for(isa)),
          encoder_(kind_of<skipgrad::Encoder>(encoder, {"skipgram", "mean", "sum"})),
          input_(input),
          output_(output),
          bias_(bias),
          keep_(keep),
          offset_(offset),
          begins_(begins),
          steps_(steps),
          mass_(mass),
          near_words_(near_words),
          near_cumulative_(near_cumulative),
          near_probability_(near_probability),
          ends_(ends),
          window_(window),
          block_(block),
          tables_{input_.data(), output_.data(), data_or_null(bias_), dim, size(input) ? width(input) : 0} {
        const auto kind = kind_of<skipgrad::HeadKind>(
            head, {"negative", "nce", "importance", "sampled", "hierarchical", "softmax", "adaptive"});
        if (cumulative) draws_.emplace(*cumulative);
        check_tables();
        check(window > 0 && window <= skipgrad::kMaxWindow && block > 0, "An option is out of range.");
        if (kind == skipgrad::kHierarchical) {
            check(begins && steps && size(*begins) == size(input) + 1, "The tree has no paths.");
        } else if (kind == skipgrad::kSoftmax || kind == skipgrad::kAdaptive) {
            check(ends && size(*ends) > 0 && ends->data()[size(*ends) - 1] == size(input) &&
                      block <= skipgrad::kHiddenTile,
                  "The levels do not end with the last word.");
            check(size(output) >= size(input) + size(*ends) - 1, "The clusters have no rows.");
        } else {
            check(draws_ && draws_->words() == size(input), "The tables and the words differ in number.");
            check(draws > exact && exact >= 0 && exact < size(input) + 8 && draws % 8 == 0 && exact % 8 == 0,
                  "The number of draws is out of range.");
            check(!offset || size(*offset) == size(input), "The offsets and the words differ in number.");
            check(!mass || size(*mass) == size(input), "The masses and the words differ in number.");
            check_near();
        }
        const skipgrad::Near near{data_or_null(near_words_), data_or_null(near_cumulative_),
                                  data_or_null(near_probability_), near_words ? list_length() : 0};
        head_ = {kind,
                 draws_ ? draws_->noise() : skipgrad::Noise{},
                 draws,
                 exact,
                 share,
                 data_or_null(offset_),
                 near,
                 data_or_null(mass_),
                 included,
                 data_or_null(begins_),
                 data_or_null(steps_),
                 longest_path(),
                 size(input) - 1,
                 data_or_null(ends_),
                 ends ? size(*ends) : 0};
    }

    size_t scratch(int64_t count) const {
        return kernels_.scratch(head_, encoder_, tables_.stride, window_, block_, count);
    }

    // Trains on (or, with update = false, evaluates) the sentences ids, which stand at `position` of the corpus.
    Sums run(bool update, Vector<const int32_t> ids, int64_t position, uint64_t key, uint64_t heldout_key,
             double heldout, float lr_begin, float lr_end, Vector<uint8_t> scratch) const {
        const int64_t count = static_cast<int64_t>(ids.shape(0));
        check(count == 0 || ids.data()[count - 1] == -1, "The last sentence does not end with -1.");
        uint8_t* memory = aligned(scratch.data());
        check(scratch.shape(0) >= this->scratch(count) + static_cast<size_t>(memory - scratch.data()),
              "The scratch memory is too small.");
        const auto share = static_cast<uint64_t>(heldout * 4294967296.0);
        const skipgrad::Shard shard{ids.data(), count,   position, keep_.data(), key,   heldout_key,
                                    share,      window_, block_,   lr_begin,     lr_end};
        skipgrad::Totals totals{};
        nb::gil_scoped_release released;
        kernels_.run(tables_, head_, encoder_, shard, update, memory, &totals);
        return sums(totals);
    }

    // The draws of one block after the other, as `run` would draw them from a stream.
    nb::ndarray<nb::numpy, int32_t, nb::ndim<1>> draw(uint64_t key, size_t blocks) const {
        check(draws_.has_value(), "This head draws nothing.");
        const int32_t each = head_.draws - head_.exact;
        const size_t n = blocks * static_cast<size_t>(each);
        int32_t* words = new int32_t[n];
        nb::capsule owner(words, [](void* p) noexcept { delete[] static_cast<int32_t*>(p); });
        skipgrad::Random random{key};
        for (int32_t* w = words; w < words + n; w += each) skipgrad::draw_stratified(head_.noise, random, w, each);
        return nb::ndarray<nb::numpy, int32_t, nb::ndim<1>>(words, {n}, owner);
    }

    // One step on the given block and draws. A row of `groups`: tokens, places, lead.
    Sums step(Vector<const int32_t> token, Vector<const int32_t> place, Groups groups, Vector<const int32_t> draws,
              uint64_t key, float lr) const {
        check(size(draws) == head_.draws, "The words that were drawn differ in number from draws.");
        const auto* group = reinterpret_cast<const skipgrad::Group*>(groups.data());
        const std::vector<float> pairs = pairs_of(group, size(groups), size(token), size(place));
        // Filled with NaN: what a kernel has not written must not matter.
        Bytes memory(kernels_.scratch(head_, encoder_, tables_.stride, window_, size(token), 0) + 64, 0xff);
        const skipgrad::Block block{size(token),  size(place),  size(groups), token.data(),
                                    place.data(), pairs.data(), group};
        Bytes words(static_cast<size_t>(head_.draws) * 4 + 128, 0xff);  // -1 beyond the draws
        if (head_.draws) std::memcpy(aligned(words.data()), draws.data(), static_cast<size_t>(head_.draws) * 4);
        skipgrad::Totals totals{};
        kernels_.step(tables_, head_, encoder_, block, reinterpret_cast<const int32_t*>(aligned(words.data())), key, lr,
                      window_, aligned(memory.data()), &totals);
        return sums(totals);
    }

  private:
    static int32_t width(const Table& table) { return static_cast<int32_t>(table.shape(1)); }
    static Sums sums(const skipgrad::Totals& t) { return {t.raw, t.trained, t.pairs, t.loss, t.effective}; }

    void check_tables() const {
        check(width(output_) == tables_.stride, "The two tables differ in width.");
        check(size(keep_) == size(input_) && size(output_) >= size(input_),
              "The tables and the words differ in number.");
        check(!bias_ || size(*bias_) == size(output_), "The bias and the output table differ in number.");
        check(tables_.dim > 0 && tables_.dim <= tables_.stride && tables_.stride % 16 == 0,
              "The stride is not a multiple of 16.");
        for (const float* table : {tables_.input, tables_.output})
            check(reinterpret_cast<uintptr_t>(table) % 64 == 0, "The tables are not aligned to 64 bytes.");
    }
    int32_t list_length() const { return static_cast<int32_t>(near_words_->shape(1)); }
    void check_near() const {
        if (!near_words_) return;
        check(near_cumulative_ && near_probability_, "The near words have no probabilities.");
        check(size(*near_words_) == size(input_) && size(*near_cumulative_) == size(input_) &&
                  static_cast<int32_t>(near_cumulative_->shape(1)) == list_length() && list_length() > 0 &&
                  size(*near_probability_) == size(input_),
              "The lists of near words and the words differ in number.");
    }
    int32_t longest_path() const {
        int64_t longest = 0;
        for (int32_t w = 0; begins_ && w + 1 < size(*begins_); w++)
            longest = std::max(longest, begins_->data()[w + 1] - begins_->data()[w]);
        return static_cast<int32_t>(longest);
    }
    // The weights of the places that each token sees, summed.
    std::vector<float> pairs_of(const skipgrad::Group* group, int32_t groups, int32_t tokens, int32_t places) const {
        std::vector<float> pairs;
        for (const auto* g = group; g < group + groups; places -= g++->places) {
            check(g->tokens > 0 && g->tokens <= skipgrad::kGroup && g->lead >= 0 && g->lead <= window_ &&
                      g->lead + g->tokens <= g->places && g->places <= g->lead + g->tokens + window_,
                  "A group is out of range.");
            for (int32_t at = g->lead; at < g->lead + g->tokens; at++) {
                double sum = 0;
                for (int32_t place = 0; place < g->places; place++)
                    if (place != at) sum += std::max(0, window_ + 1 - std::abs(place - at));
                pairs.push_back(static_cast<float>(sum / window_));
            }
        }
        check(static_cast<int32_t>(pairs.size()) == tokens && places == 0,
              "The groups do not fit the tokens and places.");
        return pairs;
    }

    const skipgrad::Kernels& kernels_;
    skipgrad::Encoder encoder_;
    Table input_, output_;
    Maybe<float> bias_;
    Vector<const uint32_t> keep_;
    Maybe<const float> offset_;
    Maybe<const int64_t> begins_;
    Maybe<const int32_t> steps_;
    Maybe<float> mass_;
    std::optional<Lists<const int32_t>> near_words_;
    std::optional<Lists<const float>> near_cumulative_;
    Maybe<const float> near_probability_;
    Maybe<const int64_t> ends_;
    std::optional<Draws> draws_;
    int32_t window_, block_;
    skipgrad::Tables tables_;
    skipgrad::Head head_;
};

}  // namespace

void bind_heads(nb::module_& m) {
    m.def("instruction_sets", &instruction_sets, "The instruction sets that this machine can run, slowest first.");
    m.def("fma_peak", &fma_peak, "isa"_a, "seconds"_a = 0.2,
          "Gflop/s of one core in a loop of fused multiply-adds that touches registers only.");
    nb::class_<Kernel>(m, "Kernel", "A head on a pair of tables.")
        .def(nb::init<const std::string&, const std::string&, const std::string&, Table, Table, Maybe<float>, int32_t,
                      Vector<const uint32_t>, int32_t, int32_t, Maybe<const uint64_t>, Maybe<const float>, int32_t,
                      int32_t, float, bool, Maybe<const int64_t>, Maybe<const int32_t>, Maybe<float>,
                      std::optional<Lists<const int32_t>>, std::optional<Lists<const float>>, Maybe<const float>,
                      Maybe<const int64_t>>(),
             "isa"_a, "head"_a, "encoder"_a, "input"_a.noconvert(), "output"_a.noconvert(), "bias"_a.noconvert().none(),
             "dim"_a, "keep"_a.noconvert(), "window"_a, "block"_a, "cumulative"_a.noconvert().none() = nb::none(),
             "offset"_a.noconvert().none() = nb::none(), "draws"_a = 0, "exact"_a = 0, "share"_a = 0.0f,
             "included"_a = false, "begins"_a.noconvert().none() = nb::none(),
             "steps"_a.noconvert().none() = nb::none(), "mass"_a.noconvert().none() = nb::none(),
             "near_words"_a.noconvert().none() = nb::none(), "near_cumulative"_a.noconvert().none() = nb::none(),
             "near_probability"_a.noconvert().none() = nb::none(), "ends"_a.noconvert().none() = nb::none())
        .def("scratch", &Kernel::scratch, "count"_a,
             "Bytes of scratch memory that a run over `count` ids needs, if they start at a multiple of 64.")
        .def("run", &Kernel::run, "update"_a, "ids"_a.noconvert(), "position"_a, "key"_a, "heldout_key"_a, "heldout"_a,
             "lr_begin"_a, "lr_end"_a, "scratch"_a.noconvert(),
             "Trains on sentences, or evaluates those held out: raw and trained tokens, pairs, loss, effective draws.")
        .def("draw", &Kernel::draw, "key"_a, "blocks"_a, "The draws of so many blocks.")
        .def("step", &Kernel::step, "token"_a.noconvert(), "place"_a.noconvert(), "groups"_a.noconvert(),
             "draws"_a.noconvert(), "key"_a, "lr"_a,
             "One step on a block with the given draws; sums as of `run`. A row of groups: tokens, places, lead.");
}
