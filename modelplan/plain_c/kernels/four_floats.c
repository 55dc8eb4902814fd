/* Four floats that lie side by side, where the core computes them at once; they may begin anywhere. */
#if defined(__GNUC__) && (defined(__SSE__) || defined(__ARM_NEON) || (defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE > 1))
typedef float four_floats __attribute__((vector_size(16), aligned(4), may_alias));
#define FOUR_FLOATS(at) (*(four_floats *)(void *)(at))
#define FOUR_CONSTANTS(at) (*(const four_floats *)(const void *)(at))
#endif
