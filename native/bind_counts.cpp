// Python's view of co-occurrence counts and of the heads that score all words: checks, conversion, GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "counts.h"
#include "kernels.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Made = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

void check(bool holds, const char* sentence) {
    if (!holds) throw nb::value_error(sentence);
}

bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 64 == 0; }

template <typename T>
Made<T> give(std::vector<T>&& vector) {
    auto* kept = new std::vector<T>(std::move(vector));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Made<T>(kept->data(), {kept->size()}, owner);
}

// ---------------------------------------------------------------- counts

// Holds on to the arrays that it was given.
class CooccurrenceCounter {
  public:
    CooccurrenceCounter(Vector<const int32_t> ids, Vector<const float> keep, int32_t window, uint64_t heldout_key,
                        double heldout)
        : ids_(ids),
          keep_(keep),
          counter_({ids.data(), static_cast<int64_t>(ids.shape(0)), keep.data(), static_cast<int32_t>(keep.shape(0)),
                    window, heldout_key, static_cast<uint64_t>(heldout * 4294967296.0)}) {
        check(window > 0, "The window is not positive.");
        const int32_t words = static_cast<int32_t>(keep.shape(0));
        check(std::all_of(ids.data(), ids.data() + ids.shape(0), [&](int32_t id) { return id < words; }),
              "An id is not of a word.");
    }

    void find(int32_t begin, int32_t end) {
        check(0 <= begin && begin <= end && end <= static_cast<int32_t>(keep_.shape(0)), "The words are out of range.");
        nb::gil_scoped_release released;
        counter_.find(begin, end);
        begin_ = begin;
        end_ = end;
    }

    nb::tuple rows(int32_t begin, int32_t end, bool heldout, float least) const {
        check(begin_ <= begin && begin <= end && end <= end_, "The places of these words were not found.");
        skipgrad::Triangle rows;
        {
            nb::gil_scoped_release released;
            rows = counter_.rows(begin, end, heldout, least);
        }
        return nb::make_tuple(give(std::move(rows.sizes)), give(std::move(rows.columns)), give(std::move(rows.values)),
                              rows.dropped);
    }

  private:
    Vector<const int32_t> ids_;
    Vector<const float> keep_;
    skipgrad::Cooccurrence counter_;
    int32_t begin_ = 0, end_ = 0;
};

nb::tuple mirror(Vector<const int64_t> offsets, Vector<const int32_t> columns, Vector<const float> values) {
    const size_t words = offsets.shape(0) - 1, stored = columns.shape(0);
    check(values.shape(0) == stored && offsets.data()[words] == static_cast<int64_t>(stored),
          "Offsets, columns and values do not fit one another.");
    std::vector<int64_t> whole_offsets(words + 1);
    std::vector<int32_t> whole_columns;
    std::vector<float> whole_values;
    {
        nb::gil_scoped_release released;
        size_t diagonal = 0;
        for (size_t row = 0; row < words; row++)
            for (int64_t k = offsets.data()[row]; k < offsets.data()[row + 1]; k++) {
                if (columns.data()[k] < 0 || columns.data()[k] > static_cast<int32_t>(row))
                    throw nb::value_error("A column is not on or under the diagonal.");
                diagonal += columns.data()[k] == static_cast<int32_t>(row);
            }
        whole_columns.resize(2 * stored - diagonal);
        whole_values.resize(2 * stored - diagonal);
        skipgrad::mirror(static_cast<int32_t>(words), offsets.data(), columns.data(), values.data(),
                         whole_offsets.data(), whole_columns.data(), whole_values.data());
    }
    return nb::make_tuple(give(std::move(whole_offsets)), give(std::move(whole_columns)),
                          give(std::move(whole_values)));
}

// ---------------------------------------------------------------- heads

// An output table that is scored whole. Holds on to the arrays that it was given; calls on different rows may run at once.
class DenseKernel {
  public:
    DenseKernel(const std::string& isa, Table output, int32_t dim, std::optional<Vector<float>> bias,
                std::optional<Vector<const float>> noise)
        : kernels_(skipgrad::find_kernels(isa.c_str())), output_(output), dim_(dim), bias_(bias), noise_(noise) {
        check(kernels_, "This machine does not run the instruction set.");
        check(dim > 0 && static_cast<size_t>(dim) <= output.shape(1) && output.shape(1) % 16 == 0,
              "The stride is not a multiple of 16.");
        check(aligned(output.data()), "The table is not aligned to 64 bytes.");
        check(!bias || bias->shape(0) == output.shape(0), "The biases and the rows differ in number.");
        check(!noise || noise->shape(0) == output.shape(0), "The noise and the rows differ in number.");
    }

    void pack(Table hidden, Vector<float> packed) const {
        check_hidden(hidden, packed);
        nb::gil_scoped_release released;
        kernels_->pack_hidden(hidden.data(), static_cast<int32_t>(hidden.shape(0)), dim_, stride(), packed.data());
    }

    void forward(int64_t begin, int64_t end, Table hidden, Vector<float> packed, Vector<float> peaks,
                 Vector<float> totals) const {
        const skipgrad::Hidden given = check_hidden(hidden, packed);
        check_lanes(given, peaks);
        check_lanes(given, totals);
        const skipgrad::Rows part = rows(begin, end);
        nb::gil_scoped_release released;
        kernels_->softmax_forward(part, given, peaks.data(), totals.data());
    }

    // The gradients of rows begin .. end-1 are added to d_rows (end - begin, stride) and d_bias (end - begin).
    double backward(int64_t begin, int64_t end, Table hidden, Vector<float> packed, Vector<float> weight,
                    std::optional<Vector<float>> lse, Vector<const int64_t> starts, Vector<const int64_t> ends,
                    Vector<const int32_t> columns, Vector<const float> values, float scale, Table d_hidden,
                    Table d_rows, std::optional<Vector<float>> d_bias) const {
        skipgrad::Hidden given = check_hidden(hidden, packed);
        check_lanes(given, weight);
        given.weight = weight.data();
        check(lse.has_value() != noise_.has_value(), "A softmax has lse, the other head has noise.");
        if (lse) check_lanes(given, *lse);
        const skipgrad::Rows part = rows(begin, end);
        check(d_hidden.shape(0) == hidden.shape(0) && d_hidden.shape(1) == hidden.shape(1) && aligned(d_hidden.data()),
              "The gradient of the hidden vectors has another shape.");
        check(d_rows.shape(0) == static_cast<size_t>(end - begin) && d_rows.shape(1) == output_.shape(1) &&
                  aligned(d_rows.data()),
              "The gradient of the rows has another shape.");
        check(!d_bias || d_bias->shape(0) == static_cast<size_t>(end - begin), "There are not as many biases as rows.");
        check(starts.shape(0) == hidden.shape(0) && ends.shape(0) == hidden.shape(0),
              "The hidden vectors and their true pairs differ in number.");
        nb::gil_scoped_release released;
        std::vector<int64_t> next(starts.shape(0));
        for (size_t i = 0; i < next.size(); i++)  // the columns of a hidden vector ascend
            next[i] = std::lower_bound(columns.data() + starts.data()[i], columns.data() + ends.data()[i], begin) -
                      columns.data();
        const skipgrad::Truth truth{columns.data(), values.data(), next.data(), ends.data(), begin};
        const skipgrad::Gradients to{d_hidden.data(), d_rows.data(), d_bias ? d_bias->data() : nullptr, scale};
        return lse ? kernels_->softmax_backward(part, given, lse->data(), truth, to)
                   : kernels_->logistic_backward(part, given, noise_->data() + begin, truth, to);
    }

    void adam(nb::ndarray<float, nb::c_contig, nb::device::cpu> x, nb::ndarray<float, nb::c_contig, nb::device::cpu> g,
              nb::ndarray<float, nb::c_contig, nb::device::cpu> m, nb::ndarray<float, nb::c_contig, nb::device::cpu> s,
              float rate, float root, float beta1, float beta2, float epsilon) const {
        check(x.size() == g.size() && x.size() == m.size() && x.size() == s.size(), "The arrays differ in size.");
        nb::gil_scoped_release released;
        kernels_->adam_step(x.data(), g.data(), m.data(), s.data(), static_cast<int64_t>(x.size()),
                            {rate, root, beta1, beta2, epsilon});
    }

  private:
    int32_t stride() const { return static_cast<int32_t>(output_.shape(1)); }
    skipgrad::Rows rows(int64_t begin, int64_t end) const {
        check(0 <= begin && begin <= end && end <= static_cast<int64_t>(output_.shape(0)),
              "The rows are out of range.");
        return {output_.data() + begin * stride(), bias_ ? bias_->data() + begin : nullptr, end - begin, dim_,
                stride()};
    }
    skipgrad::Hidden check_hidden(const Table& hidden, const Vector<float>& packed) const {
        check(hidden.shape(1) == output_.shape(1) && hidden.shape(0) % skipgrad::kHiddenTile == 0 &&
                  aligned(hidden.data()),
              "The hidden vectors are not aligned, or not a multiple of HIDDEN_TILE.");
        check(packed.shape(0) >= hidden.shape(0) * static_cast<size_t>(dim_) && aligned(packed.data()),
              "The memory for packed vectors is not aligned, or too small.");
        return {hidden.data(), packed.data(), nullptr, static_cast<int32_t>(hidden.shape(0))};
    }
    static void check_lanes(const skipgrad::Hidden& hidden, const Vector<float>& values) {
        check(static_cast<int32_t>(values.shape(0)) == hidden.n && aligned(values.data()),
              "An array is not aligned, or not as long as there are hidden vectors.");
    }

    const skipgrad::Kernels* kernels_;
    Table output_;
    int32_t dim_;
    std::optional<Vector<float>> bias_;
    std::optional<Vector<const float>> noise_;
};

}  // namespace

void bind_counts(nb::module_& m) {
    m.attr("HIDDEN_TILE") = skipgrad::kHiddenTile;
    nb::class_<CooccurrenceCounter>(m, "CooccurrenceCounter", "Expected co-occurrence counts of sentences.")
        .def(nb::init<Vector<const int32_t>, Vector<const float>, int32_t, uint64_t, double>(), "ids"_a.noconvert(),
             "keep"_a.noconvert(), "window"_a, "heldout_key"_a, "heldout"_a)
        .def("find", &CooccurrenceCounter::find, "begin"_a, "end"_a, "Finds the places of the words: 8 bytes each.")
        .def("rows", &CooccurrenceCounter::rows, "begin"_a, "end"_a, "heldout"_a, "least"_a,
             nb::sig("def rows(self, begin: int, end: int, heldout: bool, least: float) -> "
                     "tuple[NDArray[numpy.int64], NDArray[numpy.int32], NDArray[numpy.float32], float]"),
             "Sizes, columns and values of rows, up to the diagonal; and the sum of what was less than `least`.");
    m.def(
        "mirror", &mirror, "offsets"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert(),
        nb::sig("def mirror(offsets: NDArray[numpy.int64], columns: NDArray[numpy.int32], values: "
                "NDArray[numpy.float32]) -> tuple[NDArray[numpy.int64], NDArray[numpy.int32], NDArray[numpy.float32]]"),
        "The whole of a symmetric matrix, from its part on and under the diagonal.");
    nb::class_<DenseKernel>(m, "DenseKernel", "Scores hidden vectors against every row of a table.")
        .def(nb::init<const std::string&, Table, int32_t, std::optional<Vector<float>>,
                      std::optional<Vector<const float>>>(),
             "isa"_a, "output"_a.noconvert(), "dim"_a, "bias"_a.noconvert().none() = nb::none(),
             "noise"_a.noconvert().none() = nb::none())
        .def("pack", &DenseKernel::pack, "hidden"_a.noconvert(), "packed"_a.noconvert(),
             "Brings hidden vectors into the order in which they are scored.")
        .def("forward", &DenseKernel::forward, "begin"_a, "end"_a, "hidden"_a.noconvert(), "packed"_a.noconvert(),
             "peaks"_a.noconvert(), "totals"_a.noconvert(),
             "Adds rows to the running maximum of scores and the sum of exp(score - maximum).")
        .def("backward", &DenseKernel::backward, "begin"_a, "end"_a, "hidden"_a.noconvert(), "packed"_a.noconvert(),
             "weight"_a.noconvert(), "lse"_a.noconvert().none(), "starts"_a.noconvert(), "ends"_a.noconvert(),
             "columns"_a.noconvert(), "values"_a.noconvert(), "scale"_a, "d_hidden"_a.noconvert(),
             "d_rows"_a.noconvert(), "d_bias"_a.noconvert().none(),
             "Adds the gradients of rows; returns their loss, for a softmax without weight * lse.")
        .def("adam", &DenseKernel::adam, "x"_a.noconvert(), "g"_a.noconvert(), "m"_a.noconvert(), "s"_a.noconvert(),
             "rate"_a, "root"_a, "beta1"_a, "beta2"_a, "epsilon"_a, "A step of Adam; sets the gradient to 0.");
}
