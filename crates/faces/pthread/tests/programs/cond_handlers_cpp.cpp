// The same as C++, with a destructor.
#include "cond_handlers.c"
