#include "kernels.h"

/* The version of the functions' arguments; `library.py` refuses a library with another one. */
EXPORT int olapdb_abi(void) { return 34; }
