#include "tokens.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "utf8.h"

namespace skipgrad {
namespace {

constexpr size_t FIRST_SLOTS = 1024;
constexpr uint64_t MASK[9] = {
    0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff, 0xffffffffffffffff};

uint64_t load(const char* p, size_t n) {  // n <= 8 bytes, zero-padded
    uint64_t x = 0;
    std::memcpy(&x, p, n);
    return x;
}

uint64_t mix(uint64_t a, uint64_t b) {
    auto m = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(m) ^ static_cast<uint64_t>(m >> 64);
}

uint64_t hash_of(uint64_t low, uint64_t high) { return mix(low ^ 0xa0761d6478bd642f, high ^ 0xe7037ed1a0b428db); }

}  // namespace

int64_t invalid_utf8(const char* text, size_t size) {
    auto p = reinterpret_cast<const unsigned char*>(text);
    size_t i = 0;
    while (i < size) {
        for (; i + 32 <= size; i += 32) {  // four words at a time, all bytes in 1..127
            uint64_t bad = 0;
            for (int j = 0; j < 4; j++) {
                uint64_t x = load8(text + i + 8 * j);
                bad |= x | (x - ONES);
            }
            if (bad & HIGHS) break;
        }
        for (size_t stop = std::min(size, i + 32); i < stop;) {
            if (p[i] == 0) return static_cast<int64_t>(i);
            int n = p[i] < 0x80 ? 1 : sequence_length(p + i, size - i);
            if (n == 0) return static_cast<int64_t>(i);
            i += static_cast<size_t>(n);
        }
    }
    return -1;
}

size_t last_break(const char* text, size_t size, const uint32_t* classes) {
    for (size_t i = size; i > 0; i--)
        if (ascii_space(static_cast<unsigned char>(text[i - 1]))) return i;
    for (size_t i = size; i > 0; i--) {
        if ((text[i - 1] & 0xc0) == 0x80) continue;
        auto at = reinterpret_cast<const unsigned char*>(text) + i - 1;
        if (*at >= 0x80 && !sequence_length(at, size - i + 1)) continue;  // not valid, or not all of it is here
        const char* next = text + i - 1;
        uint32_t c = decode(next, text + size);
        if (classes ? !(classes[c] & (IS_WORD | IS_JOINER)) : is_space(c)) return static_cast<size_t>(next - text);
    }
    return 0;
}

Counter::Counter(const uint32_t* classes) : classes_(classes), table_(FIRST_SLOTS), starts_{0} {
    for (uint32_t c = 0; c < 128; c++) ascii_[c] = classes ? classes[c] : 0;
    if (classes) lowered_.resize(BATCH * (LONGEST_WORD + 16));
}

Counter::Key Counter::key_of(const char* at, size_t length) {
    Key key{0, 0, 0, at, static_cast<uint32_t>(length)};
    if (length <= 16) {
        key.low = load(at, std::min<size_t>(length, 8));
        key.high = length > 8 ? load(at + 8, length - 8) : 0;
        key.hash = hash_of(key.low, key.high);
    } else {
        uint64_t h = length;
        size_t i = 0;
        for (; i + 16 <= length; i += 16) h = mix(load8(at + i) ^ h, load8(at + i + 8) ^ 0x8ebc6af09c88c6e3);
        h = mix(load8(at + length - 16) ^ h, load8(at + length - 8) ^ 0x589965cc75374cc3);
        key.low = key.hash = h;
    }
    return key;
}

// The slot that holds the word, or the free one where it belongs.
Counter::Slot* Counter::find(const Key& key) {
    size_t mask = table_.size() - 1;
    for (size_t i = key.hash & mask;; i = (i + 1) & mask) {
        Slot& slot = table_[i];
        if (slot.length == key.length && slot.low == key.low) {
            if (key.length <= 16 ? slot.high == key.high : !std::memcmp(&arena_[slot.high], key.at, key.length))
                return &slot;
        }
        if (slot.length == 0) return &slot;
    }
}

int32_t Counter::intern(const Key& key, int64_t count) {
    Slot* slot = find(key);
    if (slot->length) {
        slot->count += count;
        return slot->id;
    }
    if (frozen_) return UNKNOWN;
    if (size() >= INT32_MAX) throw std::length_error("more than 2^31 different words");
    if (4 * (size() + 1) > 3 * table_.size()) {
        rebuild(2 * table_.size());
        slot = find(key);
    }
    *slot = {key.low, key.length > 16 ? arena_.size() : key.high, count, key.length, static_cast<int32_t>(size())};
    arena_.insert(arena_.end(), key.at, key.at + key.length);
    starts_.push_back(arena_.size());
    return slot->id;
}

void Counter::rebuild(size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(table_);
    for (const Slot& slot : old) {
        if (!slot.length) continue;
        uint64_t h = slot.length > 16 ? slot.low : hash_of(slot.low, slot.high);
        size_t i = h & (slots - 1);
        while (table_[i].length) i = (i + 1) & (slots - 1);
        table_[i] = slot;
    }
}

void Counter::push(const Key& key) {
    __builtin_prefetch(&table_[key.hash & (table_.size() - 1)], 1);
    batch_[batched_++] = key;
    if (batched_ == BATCH) flush();
}

void Counter::flush() {
    for (size_t i = 0; i < batched_; i++) {
        const Key& key = batch_[i];
        if (key.length == 0) {
            *out_++ = SENTENCE_END;
            continue;
        }
        tokens++;
        if (key.length > LONGEST_WORD) {
            too_long++;
            *out_++ = UNKNOWN;
        } else {
            *out_++ = intern(key, 1);
        }
    }
    batched_ = lowered_used_ = 0;
}

size_t Counter::feed(const char* text, size_t size, bool ends, bool inside, int32_t* ids) {
    out_ = ids;
    if (classes_)
        split_words(text, text + size, inside);
    else
        split_spaces(text, text + size, inside);
    if (ends) push({});
    flush();
    return static_cast<size_t>(out_ - ids);
}

size_t Counter::feed_tokens(const char* data, const int64_t* words, const int64_t* sentences, size_t n_sentences,
                            int32_t* ids) {
    out_ = ids;
    for (size_t s = 0; s < n_sentences; s++) {
        for (int64_t w = sentences[s]; w < sentences[s + 1]; w++) {
            auto length = static_cast<size_t>(words[w + 1] - words[w]);
            if (length) push(key_of(data + words[w], std::min(length, LONGEST_WORD + 1)));
        }
        push({});
    }
    flush();
    return static_cast<size_t>(out_ - ids);
}

void Counter::restrict_to(const char* data, const int64_t* words, size_t n) {
    for (size_t i = 0; i < n; i++) intern(key_of(data + words[i], static_cast<size_t>(words[i + 1] - words[i])), 0);
    frozen_ = true;
}

void Counter::split_spaces(const char* p, const char* end, bool inside) {
    if (inside) p = space_after(p, end);
    while (p < end) {
        auto c = static_cast<unsigned char>(*p);
        if (ascii_space(c)) {
            if (c == '\n') push({});
            p++;
            continue;
        }
        // Short words: find the end in one or two words of eight bytes, which then are the key.
        if (end - p >= 24) {
            auto stops = [](uint64_t x) { return ((x - 0x21 * ONES) & ~x & HIGHS) | (x & HIGHS); };
            uint64_t low = load8(p), high = 0, stop = stops(low);
            size_t length = 8;
            if (stop) {
                length = static_cast<size_t>(__builtin_ctzll(stop)) / 8;
                low &= MASK[length];
            } else {
                high = load8(p + 8);
                stop = stops(high);
                if (stop) {
                    size_t n = static_cast<size_t>(__builtin_ctzll(stop)) / 8;
                    length += n;
                    high &= MASK[n];
                }
            }
            if (stop && ascii_space(static_cast<unsigned char>(p[length]))) {
                push({low, high, hash_of(low, high), p, static_cast<uint32_t>(length)});
                p += length;
                continue;
            }
        }
        const char* stop = space_after(p, end);
        if (stop == p) {
            decode(p, end);  // a space that is not ASCII
        } else {
            push(key_of(p, std::min(static_cast<size_t>(stop - p), LONGEST_WORD + 1)));
            p = stop;
        }
    }
}

void Counter::split_words(const char* p, const char* end, bool inside) {
    if (inside) p = one_word(p, end, true);
    while (p < end) {
        auto c = static_cast<unsigned char>(*p);
        if (c < 128) {
            if (ascii_[c] & IS_WORD) {
                p = one_word(p, end, false);
            } else {
                if (c == '\n') push({});
                p++;
            }
            continue;
        }
        const char* next = p;
        p = classes_[decode(next, end)] & IS_WORD ? one_word(p, end, false) : next;
    }
}

// Lower-cases and pushes the word at p (unless `skip`); returns its end.
const char* Counter::one_word(const char* p, const char* end, bool skip) {
    constexpr uint32_t SIGMA = 0x3a3, FINAL_SIGMA = 0x3c2, DOTTED_I = 0x130;
    char* begin = &lowered_[lowered_used_];
    char* limit = begin + LONGEST_WORD;
    char* to = begin;
    char* sigma = nullptr;  // where a capital sigma was written that may turn out to be the last letter
    const char* stop = p;
    while (p < end) {
        const char* next = p;
        uint32_t c = decode(next, end);
        uint32_t entry = c < 128 ? ascii_[c] : classes_[c];
        if (!(entry & IS_WORD)) {
            if (!(entry & IS_JOINER) || next >= end) break;
            const char* after = next;
            if (!(classes_[decode(after, end)] & IS_WORD)) break;
        }
        sigma = c == SIGMA ? to : nullptr;
        if (to <= limit) {
            to = encode(c == DOTTED_I ? 'i' : entry >> 2, to);
            if (c == DOTTED_I) to = encode(0x307, to);  // str.lower() makes two characters of it
        }
        stop = p = next;
    }
    if (skip) return stop;
    if (sigma && sigma > begin && sigma < to) encode(FINAL_SIGMA, sigma);
    auto length = static_cast<size_t>(to - begin);
    if (length <= 16) {
        std::memset(to, 0, 16 - length);
        uint64_t low = load8(begin), high = load8(begin + 8);
        lowered_used_ += 16;
        push({low, high, hash_of(low, high), begin, static_cast<uint32_t>(length)});
    } else {
        lowered_used_ += length;
        push(key_of(begin, length));
    }
    return stop;
}

void Counter::merge(const Counter& other, int32_t* mapping) {
    std::vector<int64_t> counts(other.size());
    for (const Slot& slot : other.table_)
        if (slot.length) counts[static_cast<size_t>(slot.id)] = slot.count;
    for (size_t i = 0; i < other.size(); i++) {
        uint64_t start = other.starts_[i];
        mapping[i] = intern(key_of(&other.arena_[start], other.starts_[i + 1] - start), counts[i]);
    }
    tokens += other.tokens;
    too_long += other.too_long;
    pruned_words += other.pruned_words;
    pruned_tokens += other.pruned_tokens;
}

void Counter::prune(int32_t* renumbered) {
    std::vector<int64_t> counts;
    for (const Slot& slot : table_)
        if (slot.length) counts.push_back(slot.count);
    if (counts.empty()) return;
    auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
    std::nth_element(counts.begin(), middle, counts.end());
    int64_t threshold = *middle;  // words with this count are forgotten too

    Counter kept;
    std::vector<const Slot*> by_id(size());
    for (const Slot& slot : table_)
        if (slot.length) by_id[static_cast<size_t>(slot.id)] = &slot;
    for (size_t i = 0; i < by_id.size(); i++) {
        if (by_id[i]->count <= threshold) {
            renumbered[i] = UNKNOWN;
            pruned_words++;
            pruned_tokens += by_id[i]->count;
        } else {
            renumbered[i] = kept.intern(key_of(&arena_[starts_[i]], starts_[i + 1] - starts_[i]), by_id[i]->count);
        }
    }
    table_.swap(kept.table_);
    arena_.swap(kept.arena_);
    starts_.swap(kept.starts_);
}

void Counter::words(int64_t* counts, int64_t* offsets, char* bytes) const {
    for (const Slot& slot : table_)
        if (slot.length) counts[slot.id] = slot.count;
    std::copy(starts_.begin(), starts_.end(), offsets);
    std::copy(arena_.begin(), arena_.end(), bytes);
}

size_t Counter::memory() const {
    return 3 * table_.size() * sizeof(Slot) + arena_.capacity() + starts_.capacity() * sizeof(starts_[0]);
}

size_t Encoder::feed(const int32_t* ids, size_t size, const int32_t* mapping, int32_t* out) {
    int32_t* begin = out;
    auto end_sentence = [&] {
        *out++ = SENTENCE_END;
        sentences++;
        length_ = 0;
        int64_t position = written_ + (out - begin);
        if (position - blocks.back() >= block_) blocks.push_back(position);
    };
    for (size_t i = 0; i < size; i++) {
        if (ids[i] == SENTENCE_END) {
            if (length_) end_sentence();
            was_split_ = false;
            continue;
        }
        int32_t id = ids[i] < 0 ? UNKNOWN : mapping[ids[i]];
        if (id < 0) continue;
        if (length_ == max_sentence_) {
            end_sentence();
            split += !was_split_;
            was_split_ = true;
        }
        *out++ = id;
        length_++;
    }
    written_ += out - begin;
    return static_cast<size_t>(out - begin);
}

}  // namespace skipgrad
