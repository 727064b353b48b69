// Text to ids: words are found, interned and counted in one pass. Plain C++: nothing here knows Python.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace skipgrad {

constexpr int32_t SENTENCE_END = -1;
constexpr int32_t UNKNOWN = -2;         // a word that has no id: too long, or not among the words given
constexpr size_t LONGEST_WORD = 65535;  // bytes; what is longer is no word

// What the `words` tokenizer knows of a code point: 0x110000 entries, lower << 2 | flags.
constexpr uint32_t IS_WORD = 1;    // part of a word
constexpr uint32_t IS_JOINER = 2;  // part of a word only between two word characters: the apostrophe of "don't"

// The position of the first byte that is not valid UTF-8, or is NUL; -1 where there is none.
int64_t invalid_utf8(const char* text, size_t size);

// Where text can be cut: the position behind its last character that is in no word, or 0. `classes` as in
// Counter.
size_t last_break(const char* text, size_t size, const uint32_t* classes);

// An interner that counts: an open-addressing table over a byte arena; ids in order of appearance.
// One thread at a time. About 60 bytes a different word, and the word's bytes twice while the arena grows.
class Counter {
  public:
    // Words between white space, as str.split() finds them; or, given the table `classes`, the words that it
    // describes.
    explicit Counter(const uint32_t* classes = nullptr);

    // Writes the ids of the words of valid UTF-8, and SENTENCE_END for each newline; `ids` has room for size
    // + 2. `ends`: the last sentence ends with the text. `inside`: the text begins in the middle of a word
    // that is skipped.
    size_t feed(const char* text, size_t size, bool ends, bool inside, int32_t* ids);

    // The same for words that were found elsewhere: word i is data[words[i], words[i + 1]), sentence j holds
    // words [sentences[j], sentences[j + 1]). Empty words are left out.
    size_t feed_tokens(const char* data, const int64_t* words, const int64_t* sentences, size_t n_sentences,
                       int32_t* ids);

    // Gives n words ids in their order; from now on other words get none.
    void restrict_to(const char* data, const int64_t* words, size_t n);

    // Adds the words and counts of another counter; mapping[its id] = id here.
    void merge(const Counter& other, int32_t* mapping);

    // Forgets the words with the lowest counts, at least half of all; renumbered[old id] = new id, or
    // UNKNOWN.
    void prune(int32_t* renumbered);

    // Copies counts (size()), and the words as offsets (size() + 1) into bytes (arena_bytes()).
    void words(int64_t* counts, int64_t* offsets, char* bytes) const;

    size_t size() const { return starts_.size() - 1; }
    size_t arena_bytes() const { return arena_.size(); }
    size_t memory() const;      // bytes, the next growth of the table included
    int64_t tokens = 0;         // words fed, those without id included
    int64_t too_long = 0;       // of these, longer than LONGEST_WORD
    int64_t pruned_words = 0;   // words forgotten; one that comes back and is forgotten again counts twice
    int64_t pruned_tokens = 0;  // their occurrences

  private:
    struct Slot {            // 32 bytes: a word of up to 16 bytes is compared without leaving the cache line
        uint64_t low, high;  // the word, zero-padded; for a longer one its hash and its place in the arena
        int64_t count;
        uint32_t length;  // bytes; 0: the slot is free
        int32_t id;
    };
    struct Key {
        uint64_t low, high, hash;
        const char* at;
        uint32_t length;  // 0: a sentence ends
    };
    static constexpr size_t BATCH = 32;  // words hashed and prefetched before the first one is looked up

    static Key key_of(const char* at, size_t length);
    Slot* find(const Key& key);
    int32_t intern(const Key& key, int64_t count);
    void push(const Key& key);
    void flush();
    void rebuild(size_t slots);
    void split_spaces(const char* p, const char* end, bool inside);
    void split_words(const char* p, const char* end, bool inside);
    const char* one_word(const char* p, const char* end, bool skip);

    const uint32_t* classes_;
    uint32_t ascii_[128];
    std::vector<Slot> table_;
    std::vector<char> arena_;
    std::vector<uint64_t> starts_;  // id -> place in the arena, and the end of the last word
    bool frozen_ = false;
    Key batch_[BATCH];
    size_t batched_ = 0;
    int32_t* out_ = nullptr;
    std::vector<char> lowered_;  // the bytes of the batched words that were lower-cased
    size_t lowered_used_ = 0;
};

// Turns the ids of a counter into ids of the vocabulary, and whole sentences into blocks.
class Encoder {
  public:
    Encoder(int64_t max_sentence, int64_t block) : max_sentence_(max_sentence), block_(block) {}

    // `mapping`: id -> final id, or negative where the word is left out. Leaves out empty sentences, splits
    // those of more than max_sentence words. `out` has room for 2 * size + 1. A sentence may go on in the
    // next call.
    size_t feed(const int32_t* ids, size_t size, const int32_t* mapping, int32_t* out);

    int64_t sentences = 0, split = 0;
    std::vector<int64_t> blocks{0};

  private:
    int64_t max_sentence_, block_;
    int64_t written_ = 0, length_ = 0;
    bool was_split_ = false;
};

}  // namespace skipgrad
