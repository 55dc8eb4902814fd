/* uses: several */
/* What memmove does, which small libraries do byte by byte: by words where the core reads them anywhere, or where both */
/* sides lie at multiples of 4. */
#if defined(__ARM_FEATURE_UNALIGNED)
#define WORDS_AT(place) (place)
#define MOVES_WORDS(to, from) 1
#elif defined(__GNUC__) && (defined(__arm__) || defined(__riscv) || defined(__XTENSA__))
#define WORDS_AT(place) __builtin_assume_aligned(place, 4)
#define MOVES_WORDS(to, from) ((((uintptr_t)(to) | (uintptr_t)(from)) & 3u) == 0u)
#endif

#if defined(WORDS_AT)
/* Moves 16 bytes, all of which are read before one is written. */
WITHIN void move_bytes_many(uint8_t *to, const uint8_t *from)
{
#if defined(__ARM_FEATURE_MVE)
    vstrbq_u8(to, vldrbq_u8(from));
#else
    uint32_t words[4];
    (void)memcpy(words, WORDS_AT(from), sizeof words);
    (void)memcpy(WORDS_AT(to), words, sizeof words);
#endif
}
#endif

static void move_bytes(void *to, const void *from, int32_t n)
{
#if defined(WORDS_AT)
    if (MOVES_WORDS(to, from)) {
        enum { MANY = 16, WORD = 4 };
        const uint8_t *f = (const uint8_t *)from;
        uint8_t *t = (uint8_t *)to;
        uint32_t word;
        const int up = t > f;
        int32_t rest = n & (WORD - 1);
        if (up) { /* the last bytes first */
            f += n;
            t += n;
            for (; rest > 0; rest--) {
                *--t = *--f;
            }
            for (n &= ~(WORD - 1); n >= MANY; n -= MANY) {
                f -= MANY;
                t -= MANY;
                move_bytes_many(t, f);
            }
            for (; n > 0; n -= WORD) {
                f -= WORD;
                t -= WORD;
                (void)memcpy(&word, WORDS_AT(f), WORD);
                (void)memcpy(WORDS_AT(t), &word, WORD);
            }
            return;
        }
        for (n &= ~(WORD - 1); n >= MANY; n -= MANY) {
            move_bytes_many(t, f);
            f += MANY;
            t += MANY;
        }
        for (; n > 0; n -= WORD) {
            (void)memcpy(&word, WORDS_AT(f), WORD);
            (void)memcpy(WORDS_AT(t), &word, WORD);
            f += WORD;
            t += WORD;
        }
        for (; rest > 0; rest--) {
            *t++ = *f++;
        }
        return;
    }
#endif
    (void)memmove(to, from, (size_t)n);
}
