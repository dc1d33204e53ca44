/* What is said of an extent that breaks a rule, up to the number that was expected; what came follows as ", not 17". Kernels say it
 * (tess_status_message), and whatever is given extents before there is a kernel. */
#ifndef TESSERA_RUNTIME_EXTENT_WORDS_H
#define TESSERA_RUNTIME_EXTENT_WORDS_H

#define TESS_WORDS_EXTENT_FIXED "extent must be "
#define TESS_WORDS_EXTENT_MIN "extent must be at least "
#define TESS_WORDS_EXTENT_MAX "extent must be at most "
#define TESS_WORDS_EXTENT_MULTIPLE "extent must be a multiple of "
#define TESS_WORDS_EXTENT_EQUAL "extent must equal that of " /* where, then ", " and the number */

#endif
