/* uses: window, least_of, dot_VARIANT, constant_dot_VARIANT, rescaled_VARIANT */
struct conv_2d_VARIANT_params {
#include "convolution_fields.part"
#include "dilation_fields.part"
    int32_t groups;
#include "range_fields.part"
};

struct conv_2d_VARIANT_tables {
    const weight_t *weights; /* [out_channels, kernel_height, kernel_width, in_channels / groups] */
#include "folded_scales.part"
};

#include "conv_taps.part"

#include "conv_place.part"

#include "conv_rows.part"
