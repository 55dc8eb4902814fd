/* uses: inlining */
/* a b + c, rounded once: by an instruction where there is one, else in double, which has all digits of a code's product. */
WITHIN float fused(float a, float b, float c)
{
#if defined(FP_FAST_FMAF) || defined(__FP_FAST_FMAF)
    return fmaf(a, b, c);
#else
    return (float)((double)a * (double)b + (double)c);
#endif
}
