#include "tests/runtime/headers.h"

HeaderView headers_as_c99(void)
#include "tests/runtime/headers_view.inc"
