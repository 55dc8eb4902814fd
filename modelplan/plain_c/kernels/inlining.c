/* Functions that become part of their callers, and others that never do: their loops need all registers, and their */
/* memory on the stack is free again when they end. Of stages callers know nothing: GCC 12 takes a loop that reads and */
/* writes one array by different steps for one that writes nothing, and leaves out its call. */
#if defined(__GNUC__)
#define WITHIN static inline __attribute__((always_inline, unused))
#define APART static __attribute__((noinline))
#else
#define WITHIN static inline
#define APART static
#endif
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define STAGE static __attribute__((noipa))
#else
#define STAGE APART
#endif
