/** By what a training scales its loss, and in which of two numerics policies of one program its next step runs. C99 and C++20; the library
 *  is tessera_state.
 *
 *  A narrow policy keeps gradients in few bits: what is small becomes zero there, what is large infinite. So the loss is multiplied by a
 *  scale before its gradients are taken, and gradients are divided by it. The scale doubles after enough steps in which all was finite, and
 *  halves where something was not, in a step that then does not count (Micikevicius et al., Mixed precision training, ICLR 2018). Where
 *  that happens again and again, the wide policy takes over, until its gradients have fitted the narrow type for long enough: the longer,
 *  the sooner the narrow one failed the last time, so that a training between the two does not go back and forth.
 *
 *      TessPrecisionConfig config = tess_precision_config();
 *      TessPrecision precision;
 *      tess_precision_start(&config, &precision, &error);
 *      for each step:
 *          gradients of precision.is_wide ? wide : narrow, of the loss times tess_precision_scale(&precision)
 *          if (tess_precision_step(&config, &precision, largest magnitude of the gradients / that scale)) update the weights
 */
#ifndef TESSERA_STATE_PRECISION_H
#define TESSERA_STATE_PRECISION_H

#include "runtime/state/state.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TessPrecisionConfig {
    uint64_t size;    /**< sizeof of it, as tess_precision_config has it */
    double range;     /**< the largest number of the narrow type, such as 65504 of f16 (infinite) */
    int32_t first;    /**< the scale of the first step is 2^first (16) */
    int32_t least;    /**< it stays at 2^least or more (0; at least -126) */
    int32_t most;     /**< and at 2^most or less (24; at most 126) */
    int32_t patience; /**< so many overflows, and not `grow` steps without one in a row between them, bring in the wide policy (4) */
    int64_t grow;     /**< after so many steps in a row without an overflow the scale doubles (1000) */
    int64_t stay;     /**< the wide policy stays for so many steps in a row whose gradients would have fitted (100), twice as many each
                           time that the narrow one gave way again before it made `grow` steps without an overflow; at most 2^40 */
} TessPrecisionConfig;

/** What there is to keep: in a checkpoint a tensor of i64, [TESS_PRECISION_FIELDS]. */
typedef struct TessPrecision {
    int64_t exponent;  /**< of the narrow policy's scale, 2^exponent */
    int64_t is_wide;   /**< 1: the next step runs in the wide policy; 0 in the narrow one */
    int64_t clean;     /**< steps in a row whose gradients fitted, since the scale or the policy changed */
    int64_t overflows; /**< that the patience counts */
    int64_t stay;      /**< steps that the wide policy stays, the next time */
    int64_t updates;   /**< steps that counted; what corrects the moments of Adam for their beginning */
    int64_t skipped;   /**< steps that did not */
} TessPrecision;
enum { TESS_PRECISION_FIELDS = 7 };

TessPrecisionConfig tess_precision_config(void);

/** TESS_STATE_ARGUMENT where exponents are not least <= first <= most within their range, or a number of steps is below 1. */
TessStateStatus tess_precision_start(const TessPrecisionConfig *config, TessPrecision *precision, TessStateError *error);

/** Whether the fields are ones that steps of this config leave, for a state that was read from elsewhere. TESS_STATE_ARGUMENT, with the
 *  field: exponent not within least and most, is_wide neither 0 nor 1, stay not within 1 and 2^40, a negative number of steps. */
TessStateStatus tess_precision_check(const TessPrecisionConfig *config, const TessPrecision *precision, TessStateError *error);

/** What the next step's loss is multiplied by: a power of two, 1 in the wide policy. */
double tess_precision_scale(const TessPrecision *precision);

/** A step was made. `largest` is the largest magnitude of its gradients, without the scale, or something that is not smaller, such as their
 *  length; infinite or NaN where one of them is. 1: the step counts, update the weights; 0: it does not, leave them as they are. */
int32_t tess_precision_step(const TessPrecisionConfig *config, TessPrecision *precision, double largest);

#ifdef __cplusplus
}
#endif
#endif
