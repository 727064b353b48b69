// Characters of UTF-8 text, for native/tokens.cpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace skipgrad {

constexpr uint64_t ONES = 0x0101010101010101, HIGHS = 0x8080808080808080;  // of eight bytes at a time

inline uint64_t load8(const char* p) {
    uint64_t x;
    std::memcpy(&x, p, 8);
    return x;
}

inline bool ascii_space(unsigned char c) { return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31); }

// The white space of str.split().
inline bool is_space(uint32_t c) {
    if (c < 128) return ascii_space(static_cast<unsigned char>(c));
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

// Decodes one character; text that is not valid gives some character, but never reads behind `end`.
inline uint32_t decode(const char*& p, const char* end) {
    auto c = static_cast<unsigned char>(*p++);
    if (c < 0xc0) return c;
    int more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    uint32_t code = c & (0x3f >> more);
    for (; more && p < end; more--) code = code << 6 | (static_cast<unsigned char>(*p++) & 0x3f);
    return code <= 0x10ffff ? code : 0xfffd;
}

inline char* encode(uint32_t c, char* p) {
    if (c < 0x80) {
        *p++ = static_cast<char>(c);
    } else if (c < 0x800) {
        *p++ = static_cast<char>(0xc0 | c >> 6);
        *p++ = static_cast<char>(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *p++ = static_cast<char>(0xe0 | c >> 12);
        *p++ = static_cast<char>(0x80 | (c >> 6 & 0x3f));
        *p++ = static_cast<char>(0x80 | (c & 0x3f));
    } else {
        *p++ = static_cast<char>(0xf0 | c >> 18);
        *p++ = static_cast<char>(0x80 | (c >> 12 & 0x3f));
        *p++ = static_cast<char>(0x80 | (c >> 6 & 0x3f));
        *p++ = static_cast<char>(0x80 | (c & 0x3f));
    }
    return p;
}

// The end of the word at p, by single characters.
inline const char* space_after(const char* p, const char* end) {
    while (p < end) {
        const char* next = p;
        if (is_space(decode(next, end))) return p;
        p = next;
    }
    return end;
}

// The length of the valid UTF-8 sequence at p (not ASCII), or 0.
inline int sequence_length(const unsigned char* p, size_t left) {
    auto in = [&](size_t i, int low, int high) { return i < left && p[i] >= low && p[i] <= high; };
    unsigned char c = p[0];
    if (c >= 0xc2 && c <= 0xdf) return in(1, 0x80, 0xbf) ? 2 : 0;
    if (c >= 0xe0 && c <= 0xef)
        return in(1, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf) && in(2, 0x80, 0xbf) ? 3 : 0;
    if (c >= 0xf0 && c <= 0xf4)
        return in(1, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf) && in(2, 0x80, 0xbf) && in(3, 0x80, 0xbf) ? 4
                                                                                                                 : 0;
    return 0;
}

}  // namespace skipgrad
