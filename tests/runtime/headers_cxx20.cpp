#include "tests/runtime/headers.h"

HeaderView headers_as_cxx20(void)
#include "tests/runtime/headers_view.inc"
