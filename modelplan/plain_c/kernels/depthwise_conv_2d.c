/* uses: window, least_of, four_sums_VARIANT, rescaled_VARIANT */
struct depthwise_conv_2d_VARIANT_params {
#include "depthwise_fields.part"
#include "dilation_fields.part"
#include "range_fields.part"
};

struct depthwise_conv_2d_VARIANT_tables {
    const weight_t *weights; /* of 4 channels, then of the next 4: [kernel_height, kernel_width, 4] */
#include "folded_scales.part"
};

#include "depthwise_taps.part"

#include "depthwise_place.part"

#include "depthwise_rows.part"
