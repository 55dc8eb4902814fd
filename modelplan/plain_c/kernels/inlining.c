/* Functions that become part of their callers, and others that never do: their loops need all registers, and their */
/* memory on the stack is free again when they end. */
#if defined(__GNUC__)
#define WITHIN static inline __attribute__((always_inline, unused))
#define APART static __attribute__((noinline))
#else
#define WITHIN static inline
#define APART static
#endif
